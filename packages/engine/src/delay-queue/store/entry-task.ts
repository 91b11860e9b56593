/** An entry of a delay queue as a task of the engine's store. Pure. */
import type { Change } from '../../model/moves.ts';
import { type Destination, laneOf, type NewTask, type Task } from '../../model/task.ts';
import { uuidOf } from '../../model/uuid.ts';
import type { DelayedEntry, DueEntry } from '../../ports/delay-queue.ts';

/** No engine delivers to this kind, so none claims what is in such a lane. */
export const DELAY_QUEUE_KIND = 'delay-queue';

/** The lanes of all delay queues begin so. They are none of an engine's business. */
export const DELAY_QUEUE_LANES = `${DELAY_QUEUE_KIND}:`;

/**
 * An entry that is over has nothing to be remembered for: the same id may come again. It is dated so long ago that any
 * pruning removes it first, and that a pruning of just these is possible.
 */
const LONG_AGO_MS = 0;
/** Nothing else is that old: about 27 years. */
export const OLDER_THAN_ALL_ELSE_MS = 10_000 * 86_400_000;

export interface QueuePlace {
  readonly destination: Destination;
  readonly lane: string;
}

export function placeOf(name: string): QueuePlace {
  const destination = { kind: DELAY_QUEUE_KIND, address: name };
  return { destination, lane: laneOf(destination) };
}

export function keyOf({ destination }: QueuePlace, id: string) {
  return { messageId: uuidOf(DELAY_QUEUE_KIND, destination.address, id), destination };
}

type EntryTask = NewTask & { due: { inMs: number } };

export function newTask(place: QueuePlace, { id, delayMs, payload, key }: DelayedEntry): EntryTask {
  return {
    ...keyOf(place, id),
    lane: place.lane,
    payload,
    context: { extra: key === undefined || key === id ? { id } : { id, key } },
    status: 'pending',
    // Counts redeliveries: how often a handler had it and gave no answer.
    attempt: 0,
    maxAttempts: 1,
    uncounted: 0,
    // Of a backoff, which there is none of: a row that has only what every new one has costs half as much to insert.
    delayMs: 0,
    generation: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: false,
    due: { inMs: delayMs },
  };
}

/** What becomes of an entry whose id has a task already. */
export function schedule(fresh: EntryTask, task: Task | undefined, nowMs: number): Change<void> {
  if (!task) return { result: undefined, task: fresh };
  if (task.status === 'pending') return { result: undefined };
  const { due, ...fields } = fresh;
  const { finishedAtMs: __, lease: ___, ...kept } = task;
  const dueAtMs = nowMs + due.inMs;
  const times = { createdAtMs: nowMs, dueAtMs, visibleAtMs: dueAtMs };
  return { result: undefined, task: { ...kept, ...fields, ...times } };
}

/** What an answer `done` does. */
export function finish(task: Task | undefined, lease: number): Change<void> {
  if (task?.lease !== lease || task.status !== 'pending') return { result: undefined };
  return { result: undefined, task: { ...over(task), status: 'done' } };
}

/** Whether it was there and waited. */
export function cancel(task: Task | undefined, nowMs: number): Change<boolean> {
  const isInHand = task?.lease !== undefined && task.visibleAtMs > nowMs;
  if (task?.status !== 'pending' || isInHand) return { result: false };
  return { result: true, task: { ...over(task), status: 'cancelled' } };
}

export function dueEntry(task: Task, nowMs: number): DueEntry {
  const { id, key } = (task.context?.extra ?? {}) as { id: string; key?: string };
  return {
    id,
    key: key ?? id,
    payload: task.payload,
    lateMs: Math.max(0, Math.floor(nowMs - task.dueAtMs)),
    // Leases that ended without an answer count too. The present one does not.
    redeliveries: task.attempt + Math.max(0, task.claims - 1),
  };
}

function over(task: Task): Task {
  const { lease: _, ...rest } = task;
  return { ...rest, claims: 0, finishedAtMs: LONG_AGO_MS };
}
