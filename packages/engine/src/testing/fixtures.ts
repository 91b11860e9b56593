import { deepEqual } from 'node:assert/strict';
import type { Failure } from 'redrive';
import { definePolicy } from 'redrive';
import { itemOf } from '../model/item.ts';
import { leaseOf } from '../model/line.ts';
import type { Arrival } from '../model/moves.ts';
import type { RawItem } from '../ports/inbox.ts';
import type {
  Claim,
  ClaimRequest,
  NewOutboxMessage,
  Schedule,
  Settlement,
} from '../ports/schedule.ts';
import type { Store } from '../ports/store.ts';
import { laneOf, type NewTask, type Task } from '../model/task.ts';

/** Far enough that no case comes near it by a real clock. */
export const HOUR_MS = 3_600_000;
/** A lease that is to run out. */
export const SHORT_MS = 20;
const PLENTY_BYTES = 1 << 30;

export const unreachable: Failure = {
  class: 'transient',
  code: 'ECONNREFUSED',
  message: 'connect ECONNREFUSED 10.0.0.7:443',
  notExecuted: true,
};

export const broken: Failure = { class: 'technical', code: 'EBROKEN', message: 'It is broken.' };

let lastNumber = 0;

/** A fresh UUID; later ones sort after earlier ones. */
export function uuid(): string {
  lastNumber += 1;
  return `0${lastNumber.toString(16).padStart(7, '0')}-0000-4000-8000-00000000c0de`;
}

/** A fresh fencing token. Large, as the real ones are: a store must not round it. */
export function token(): number {
  lastNumber += 1;
  return 2 ** 52 - lastNumber;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A task of a queue, due now, with nothing special about it. */
export function newTask(changes: Partial<NewTask> = {}): NewTask {
  const destination = changes.destination ?? { kind: 'queue', address: 'orders' };
  return {
    messageId: uuid(),
    destination,
    lane: laneOf(destination),
    payload: bytes('{"order":1}'),
    status: 'pending',
    attempt: 0,
    maxAttempts: 4,
    uncounted: 0,
    delayMs: 0,
    generation: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: false,
    due: { inMs: 0 },
    ...changes,
  };
}

/** One in a lane of that name. */
export function inLane(lane: string, changes: Partial<NewTask> = {}): NewTask {
  return newTask({ lane, ...changes });
}

/** One in the line of that key, in lane a unless it says otherwise. Its turn is for the store to find out. */
export function inLine(orderingKey: string, changes: Partial<NewTask> = {}): NewTask {
  return newTask({ lane: 'a', orderingKey, blocked: true, ...changes });
}

/** Stores one task and gives its row. */
export async function put(store: Store, task: NewTask = newTask()): Promise<Task> {
  const [id] = await store.insert([task]);
  if (id === undefined) throw new Error('The task is known already.');
  return row(store, id);
}

export async function row(store: Store, id: number): Promise<Task> {
  const task = await store.get({ id });
  if (!task) throw new Error(`Task ${id} is gone.`);
  return task;
}

type ClaimOptions = Partial<Omit<ClaimRequest, 'from'>>;

function claimFrom(
  store: Schedule,
  from: ClaimRequest['from'],
  options: ClaimOptions = {},
): Promise<Claim> {
  const request = { lease: token(), leaseMs: HOUR_MS, maxBytes: PLENTY_BYTES, ...options };
  return store.claim({ from, ...request });
}

/** Claims what is due in lanes, each up to 100 unless it says otherwise. */
export function claimDue(
  store: Schedule,
  lanes: string | readonly (string | { lane: string; limit: number })[],
  options: ClaimOptions = {},
): Promise<Claim> {
  const wanted = typeof lanes === 'string' ? [lanes] : lanes;
  const limits = wanted.map((one) => (typeof one === 'string' ? { lane: one, limit: 100 } : one));
  return claimFrom(store, { kind: 'due', lanes: limits }, options);
}

export function claimLost(
  store: Schedule,
  lanes: readonly string[],
  { limit = 100, ...options }: ClaimOptions & { limit?: number } = {},
): Promise<Claim> {
  return claimFrom(store, { kind: 'lost', lanes, limit }, options);
}

export function claimExpired(
  store: Schedule,
  { limit = 100, ...options }: ClaimOptions & { limit?: number } = {},
): Promise<Claim> {
  return claimFrom(store, { kind: 'expired', limit }, options);
}

/** Stores a task and claims it: in delivery. */
export async function putClaimed(
  store: Store,
  task: NewTask = newTask(),
  options: ClaimOptions = {},
): Promise<Task> {
  const { id, lane } = await put(store, task);
  const { tasks } = await claimDue(store, lane, options);
  const claimed = tasks.find((one) => one.id === id);
  if (!claimed) throw new Error(`Task ${id} is due and was not claimed.`);
  return claimed;
}

export function at(task: Task): { id: number; lease: number } {
  return { id: task.id, lease: task.lease ?? 0 };
}

export function outboxMessage(text: string): NewOutboxMessage {
  return {
    destination: { kind: 'queue', address: 'manual-review.pending' },
    payload: bytes(text),
    headers: { 'x-review-reason': text },
  };
}

/** A message that could not be read. */
export function rawItem(text: string, changes: Partial<RawItem> = {}): RawItem {
  const failure: Failure = { class: 'technical', code: 'UNREADABLE', message: `What is ${text}?` };
  return {
    ...itemOf('UNREADABLE', failure, 'source:retry.scheduled'),
    messageId: uuid(),
    source: 'retry.scheduled',
    payload: bytes(text),
    ...changes,
  };
}

type To = Settlement['to'];

/** A settlement of each kind, with all that it can carry. */
export const settlements: Readonly<Record<To | 'released', (task: Task) => Settlement>> = {
  done: (task) => ({ ...leaseOf(task), to: 'done' }),
  retried: (task) => ({ ...leaseOf(task), to: 'retried' }),
  cancelled: (task) => ({ ...leaseOf(task), to: 'cancelled' }),
  pending: (task) => ({
    ...leaseOf(task),
    to: 'pending',
    delayMs: HOUR_MS,
    attempt: task.attempt + 1,
    uncounted: 0,
    claims: 0,
    reschedule: true,
    record: { attempt: task.attempt + 1, failure: unreachable, durationMs: 40 },
  }),
  released: ({ attempt, uncounted, ...task }) => ({
    ...leaseOf({ attempt, uncounted, ...task }),
    to: 'pending',
    delayMs: 0,
    attempt,
    uncounted,
    claims: task.claims - 1,
    reschedule: false,
  }),
  failed: (task) => ({
    ...leaseOf(task),
    to: 'failed',
    attempt: task.attempt + 1,
    item: itemOf('EXHAUSTED', broken, task.lane),
    outbox: outboxMessage(task.messageId),
    record: { attempt: task.attempt + 1, failure: broken, durationMs: 40 },
  }),
};

const hourly = definePolicy({ maxAttempts: 10, strategy: 'fixed', base: '1h', jitter: 'none' });

/** A failure of this message that comes back from elsewhere, to be retried in an hour. */
export function arrivalOf(task: Task | NewTask, changes: Partial<Arrival> = {}): Arrival {
  const { messageId, destination } = task;
  const came = newTask({ messageId, destination, attempt: 1, failure: unreachable });
  return { type: 'failure', task: came, policy: hourly, ...changes };
}

/** Bytes compare as bytes, whatever class of array a store gives. */
export function plain<T>(value: T): T {
  if (value instanceof Uint8Array) return Uint8Array.from(value) as T;
  if (Array.isArray(value)) return value.map((one: unknown) => plain(one)) as T;
  if (typeof value === 'object' && value !== null && 'payload' in value) {
    return { ...value, payload: plain(value.payload) };
  }
  return value;
}

export function ids(tasks: readonly { id: number }[]): number[] {
  return tasks.map(({ id }) => id);
}

/** The row is exactly this. */
export async function expectRow(store: Store, expected: Task): Promise<void> {
  deepEqual(plain(await row(store, expected.id)), plain(expected));
}

/** The outbox messages that can be taken now, by their texts. */
export async function outboxTexts(store: Store): Promise<string[]> {
  const messages = await store.takeOutbox(100, HOUR_MS);
  return messages.map(({ payload }) => new TextDecoder().decode(payload));
}
