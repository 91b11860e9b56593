import { EngineError } from '../errors.ts';
import type { Destination } from '../model/task.ts';
import type { Schedule, TaskKey } from '../ports/schedule.ts';
import { checkedId, destinationOf } from './submission.ts';

/** The one task of that id, or that of the destination; undefined: there is none. */
export async function taskKeyOf(
  store: Schedule,
  id: string,
  to: string | Destination | undefined,
): Promise<TaskKey | undefined> {
  const messageId = checkedId(id);
  if (to !== undefined) return { messageId, destination: destinationOf(to) };
  const [task, another] = await store.list({ messageId, limit: 2 });
  if (another) {
    const message = `There are several tasks ${id}: say which destination is meant.`;
    throw new EngineError('INVALID_TASK', message);
  }
  return task && { id: task.id };
}
