/** Notifications that are created: checked, each by itself, and stored together. */
import { isNotificationError, NotificationError } from '../errors.ts';
import type { NotificationRecord } from '../model/notification.ts';
import { newRecord } from '../model/record.ts';
import type { Created, NotificationRepository } from '../ports/repository.ts';
import { recordFault } from '../repository/limits.ts';
import { checkedNotification, isSameRequest, type NewNotification } from './checks.ts';
import type { CreatedNotification, Refused } from './notifications.ts';
import type { NotificationOptions } from './options.ts';
import type { Parts } from './parts.ts';

interface CreationParts extends Pick<Parts, 'repository' | 'host' | 'tell'> {
  newId: () => string;
  existing: NotificationOptions['existing'];
}

/** One with faults is refused by itself. */
export async function createAll(
  given: readonly NewNotification[],
  { repository, host, tell, newId, existing }: CreationParts,
): Promise<(CreatedNotification | Refused)[]> {
  const nowMs = host.clock.now();
  const answers: (CreatedNotification | Refused)[] = [];
  const good: { index: number; asked: NewNotification; record: NotificationRecord }[] = [];
  for (const [index, asked] of given.entries()) {
    try {
      const id = asked.id ?? newId();
      const record = newRecord(id, checkedNotification(asked, id, nowMs), nowMs);
      good.push({ index, asked, record });
    } catch (error) {
      if (!(error instanceof NotificationError)) throw error;
      answers[index] = { error };
    }
  }
  if (good.length === 0) return answers;
  const records = good.map(({ record }) => record);
  const created = await createEach(repository, records);
  for (const [i, { index, asked, record }] of good.entries()) {
    const answer = created[i]!;
    if ('error' in answer) {
      answers[index] = answer;
      continue;
    }
    const { isNew, record: stored } = answer;
    if (isNew) tell({ type: 'created', priority: stored.notification.priority });
    answers[index] = isNew ? { isNew, record: stored } : known(stored, record, asked, existing);
  }
  return answers;
}

function known(
  stored: NotificationRecord,
  { notification }: NotificationRecord,
  asked: NewNotification,
  existing: NotificationOptions['existing'],
): CreatedNotification | Refused {
  const key = JSON.stringify(notification.idempotencyKey);
  if (!isSameRequest(stored.notification, notification, asked)) {
    const message = `A different notification has the id or the idempotency_key ${key}. Use another one.`;
    return {
      error: new NotificationError('IDEMPOTENCY_KEY_REUSED', message, { ids: [stored.id] }),
    };
  }
  if (existing !== 'conflict') return { isNew: false, record: stored };
  const message = `Notification ${stored.id} was created with idempotency_key ${key} before.`;
  return { error: new NotificationError('NOTIFICATION_EXISTS', message, { ids: [stored.id] }) };
}

/** Creates records. One that no repository takes is refused by itself: nothing is stored where there is one among them. */
async function createEach(
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
