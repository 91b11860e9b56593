import type { Failure } from 'redrive';
import { remember } from './remember.ts';

/** Where a task goes: a local handler, a URL, or a broker's queue (`kind` is the broker's). */
export interface Destination {
  kind: 'handler' | 'http' | (string & {});
  /** The handler's name, the URL, or the queue's name. */
  address: string;
}

/** What travels with the payload. Credentials are named here, never written. */
export interface TaskContext {
  headers?: Readonly<Record<string, string>>;
  contentType?: string;
  /** HTTP only; POST unless given. */
  method?: string;
  /** HTTP only: the name of a secret that the engine's `secrets` resolves when it sends. */
  secret?: string;
  traceparent?: string;
  /** Anything else an adapter wants back: the properties of a broker's message. */
  extra?: Readonly<Record<string, unknown>>;
}

/**
 * `pending`: waiting, or in delivery while it has a lease. `retried`: a broker took it over. `done`: its
 * destination said that it worked. `failed`: one open item in the inbox. `cancelled`: by an operator.
 */
export type TaskStatus = 'pending' | 'retried' | 'done' | 'failed' | 'cancelled';

/** One row of the schedule. Times are ms since the epoch by the store's clock. */
export interface Task {
  /** The store's own number. */
  id: number;
  /** A UUID. With the destination it is the identity of the task. */
  messageId: string;
  destination: Destination;
  lane: string;
  payload: Uint8Array;
  context?: TaskContext;
  status: TaskStatus;
  /** Executions that failed so far, in this generation. The next one is number `attempt + 1`. */
  attempt: number;
  maxAttempts: number;
  /** Failures in a row that consumed no attempt. */
  uncounted: number;
  /** The delay before the present wait, for the decorrelated jitter. */
  delayMs: number;
  /** The fingerprint of a policy of its own; absent: what its destination uses. */
  policy?: string;
  /** How often it was replayed. Counts are compared within one generation only. */
  generation: number;
  /** What was promised: not before this. */
  dueAtMs: number;
  /** What a claim looks at: the due time, or the end of the lease. */
  visibleAtMs: number;
  expiresAtMs?: number;
  createdAtMs: number;
  /** When the first execution began, once one has failed: the policy's deadline counts from there. */
  firstAtMs?: number;
  finishedAtMs?: number;
  /** The fencing token of the claim that holds it; absent: not in delivery. */
  lease?: number;
  /** Leases since the last settle, the present one included. */
  claims: number;
  /** The token of the last arrival that was written here: the same one again is no second one. */
  arrival?: number;
  /** A failure arrived while it was in delivery: the next settle makes it pending, whatever its own outcome. */
  arrived: boolean;
  /** An arrival in delivery that must not be retried: the next claim moves it to the inbox for this reason. */
  verdict?: Reason;
  /** Cancelled while in delivery: takes effect unless that delivery succeeds. */
  cancelling: boolean;
  /** Tasks of one lane and one key are delivered one after the other, in the order in which they were stored. */
  orderingKey?: string;
  /** Lets its followers pass once it lies in the inbox; absent: they wait until somebody has dealt with it. */
  onDead?: 'release';
  /** Waits behind another task of its ordering key: no claim looks at it. */
  blocked: boolean;
  /** The bulk job that replayed it last. */
  job?: number;
  /** Replayed to try whether it works now: one execution, whatever its policy says. */
  trial?: true;
  /** The generation in which an operator changed it last: it is another message since then. */
  edited?: number;
  /** The last failure, as far as it is known. */
  failure?: Failure;
}

/** Why something is in the inbox. */
export const reasons = [
  'EXHAUSTED',
  'PERMANENT',
  'EXPIRED',
  'GAVE_UP',
  'WORKER_LOST',
  'UNROUTABLE',
  'UNREADABLE',
  'TOO_LARGE',
  'TOO_FAR',
  'HEADERS_TOO_LARGE',
  'RETRY_AFTER_TOO_LONG',
  'TOO_MANY_UNCOUNTED',
  'INVALID_PAYLOAD',
  'CAME_BACK',
  'EVALUATION_FAILED',
  'DEAD_TOKEN',
  'CONFIGURATION',
] as const;
export type Reason = (typeof reasons)[number];

/** A task that is not stored yet. */
export type NewTask = Omit<
  Task,
  'id' | 'dueAtMs' | 'visibleAtMs' | 'createdAtMs' | 'firstAtMs' | 'finishedAtMs' | 'lease'
> & {
  due: Due;
  /** The execution that failed elsewhere, for a task that begins with a failure. */
  record?: AttemptRecord;
};

/** A delay counts from the store's clock; a time that has passed means now. */
export type Due = { inMs: number } | { atMs: number };

/** One execution that failed, kept as long as the task. */
export interface AttemptRecord {
  /** 1-based number of the execution. */
  attempt: number;
  failure: Failure;
  durationMs: number;
  /** HTTP: the first 4 KiB of the answer. */
  answer?: string;
}

/** What a lane is called: an HTTP origin, or `kind:address`. */
export function laneOf({ kind, address }: Destination): string {
  return kind === 'http' ? originOf(address) : `${kind}:${address}`;
}

const originOf = remember((address) => new URL(address).origin);

/** The same for every execution, so that a receiver can tell a repetition. What an operator changed is another message. */
export function idempotencyKeyOf({ messageId, edited }: Task): string {
  return edited === undefined ? messageId : `${messageId}.${edited}`;
}
