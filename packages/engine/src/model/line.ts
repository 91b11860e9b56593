/** The order of tasks that share an ordering key. Pure: every store applies this, by calling it or by a statement that does the same. */
import type { NewTask, Task } from './task.ts';

/** Tasks of one key in one lane. The place of each is its id. */
export interface Line {
  lane: string;
  key: string;
}

export function lineOf({
  lane,
  orderingKey,
}: Pick<Task, 'lane' | 'orderingKey'>): Line | undefined {
  return orderingKey === undefined ? undefined : { lane, key: orderingKey };
}

/** What every settlement of a task begins with. */
export function leaseOf(task: Task): { id: number; lease: number; line?: Line } {
  const { id, lease = 0 } = task;
  const line = lineOf(task);
  return line ? { id, lease, line } : { id, lease };
}

/** Whether those behind it must wait: while it is pending, and while it lies in the inbox unless it lets them pass. */
export function holdsPlace({ orderingKey, status, onDead }: Task | NewTask): boolean {
  if (orderingKey === undefined) return false;
  return status === 'pending' || (status === 'failed' && onDead !== 'release');
}

/**
 * Whose turn it is, after something has changed in a line: `first` is the one with the smallest id that holds its place,
 * `active` those that are not blocked: one at most, unless somebody else wrote them. One that is in delivery is awaited,
 * even where an older one came back before it: its settle asks again.
 */
export function turnOf(
  first: Pick<Task, 'id' | 'status'> | undefined,
  active: readonly Pick<Task, 'id' | 'lease'>[],
): { block: number[]; unblock?: number } {
  if (!first) return { block: [] };
  const others = active.filter(({ id }) => id !== first.id);
  const block = others.filter(({ lease }) => lease === undefined).map(({ id }) => id);
  const isAwaited = block.length < others.length;
  const isItsTurn = first.status === 'pending' && !isAwaited && others.length === active.length;
  return { block, ...(isItsTurn ? { unblock: first.id } : {}) };
}
