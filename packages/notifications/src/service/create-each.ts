import { isNotificationError, type NotificationError } from '../errors.ts';
import type { NotificationRecord } from '../model/notification.ts';
import type { Created, NotificationRepository } from '../ports/repository.ts';
import { recordFault } from '../repository/limits.ts';

/** Creates records. One that no repository takes is refused by itself: nothing is stored where there is one among them. */
export async function createEach(
  repository: NotificationRepository,
  records: readonly NotificationRecord[],
): Promise<(Created | { error: NotificationError })[]> {
  try {
    return await repository.create(records);
  } catch (error) {
    if (!isNotificationError(error)) throw error;
    const faults = records.map(recordFault);
    const good = records.filter((_, i) => !faults[i]);
    if (good.length === records.length) throw error;
    const created = good.length === 0 ? [] : await repository.create(good);
    const rest = created.values();
    return faults.map((fault) => (fault ? { error: fault } : rest.next().value!));
  }
}
