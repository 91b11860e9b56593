/** Items of a request as what the engine takes: fresh work, or an execution that failed. */
import { randomUUID } from 'node:crypto';
import {
  type Destination,
  type FailureReport,
  type Submission,
  type TaskContext,
  uuidOf,
} from '@redrive/engine';
import { definePolicy, type Failure, isConfigError } from 'redrive';
import { durationMs } from 'redrive/internal';
import type { Static } from 'typebox';
import { readDestination } from './reading/destination.ts';
import { pointer, type WireFault, wireFaults } from './reading/faults.ts';
import { readBase64 } from './reading/payload.ts';
import { isRetryMessage, readRetryMessage } from './retry-message-item.ts';
import { RetryItem } from './schemas/retries.ts';
import { checkOf } from './reading/validate.ts';

export type GivenItem = Static<typeof RetryItem>;

/** What an item asks for, or what is wrong with it, and its `usable` parts, in which the engine may find more faults. */
export type Wish =
  | { type: 'fresh'; submission: Submission<Destination>; destination: Destination }
  | { type: 'failure'; report: FailureReport; destination: Destination }
  | { type: 'faulty'; faults: readonly WireFault[]; usable?: Submission<Destination> };

/** What goes for all items of a request. */
export interface Around {
  /** Makes the message id of an item that has none. */
  key?: string | undefined;
  traceparent?: string | undefined;
  /** The time of the store: one instance whose clock is ahead or behind must not change when a message is due. */
  nowMs(this: void): number;
}

const check = checkOf(RetryItem);

export function wishOf(given: unknown, around: Around): Wish {
  const read = isRetryMessage(given) ? readRetryMessage(given) : undefined;
  if (read && 'faults' in read) return { type: 'faulty', faults: read.faults };
  return wishOfItem(read ? read.item : given, around);
}

function wishOfItem(given: unknown, around: Around): Wish {
  const faults = check(given, 'body') ?? [];
  const item = Object(given) as GivenItem;
  // What the schema has found is not said twice, and what it cannot see is said in the same answer.
  const isWhole = (part: string) =>
    !faults.some(({ path }) => path === '' || path.startsWith(part));
  const read = isWhole('/destination') ? readDestination(item.destination) : undefined;
  const payload = isWhole('/payload') ? payloadOf(item) : undefined;
  if (read && 'fault' in read) faults.push(read.fault);
  if (payload && 'fault' in payload) faults.push(payload.fault);
  if (isWhole('/delay')) faults.push(...delayFaults(item));
  // Without other faults the engine looks at the policy, laid over the one that would have applied.
  if (faults.length > 0) faults.push(...policyFaults(item.policy));
  if (faults.length > 0 || !read || 'fault' in read || !payload || 'fault' in payload) {
    if (faults.some(({ path }) => path === '')) return { type: 'faulty', faults };
    const to = read && 'destination' in read ? read.destination : ANYWHERE;
    const value = payload && 'value' in payload ? payload.value : null;
    return { type: 'faulty', faults, usable: usableOf(item, faults, to, value) };
  }
  const { destination } = read;
  const context = contextOf(item, around.traceparent, destination);
  return item.retry_count === undefined
    ? {
        type: 'fresh',
        destination,
        submission: submissionOf(item, destination, payload.value, context, around.key),
      }
    : failureOf(item, item.retry_count, destination, payload.value, context, around);
}

/** Stands for a destination that cannot be read: of this one the engine finds no fault. */
const ANYWHERE: Destination = { kind: 'queue', address: 'unknown' };

/** The fields, and of the headers those, in which nothing was found wrong. */
function usableOf(
  item: GivenItem,
  faults: readonly WireFault[],
  to: Destination,
  payload: unknown,
): Submission<Destination> {
  const isFaulty = (path: string) =>
    faults.some((fault) => fault.path === path || fault.path.startsWith(`${path}/`));
  const whole = Object.entries(item).filter(([name]) => !isFaulty(pointer([name])));
  const headers = Object.entries(Object(item.headers) as Record<string, string>).filter(
    ([name]) => !isFaulty(pointer(['headers', name])),
  );
  const usable = {
    ...Object.fromEntries(whole),
    ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
  } as GivenItem;
  return submissionOf(usable, to, payload, contextOf(usable, undefined, to), undefined);
}

function delayFaults({ delay, due_at }: GivenItem): WireFault[] {
  if (delay === undefined) return [];
  const bad = (message: string): WireFault[] => [
    { in: 'body', path: '/delay', code: 'INVALID_VALUE', message },
  ];
  const ms = durationMs(delay);
  if (!(ms >= 0)) {
    return bad(`${JSON.stringify(delay)} is not a duration. Write '90s', '10m' or '1h', or ms.`);
  }
  return due_at === undefined ? [] : bad('Give either delay or due_at, not both.');
}

function policyFaults(policy: unknown): WireFault[] {
  if (typeof policy !== 'object' || policy === null) return [];
  try {
    definePolicy(policy);
    return [];
  } catch (error) {
    if (!isConfigError(error)) throw error;
    return wireFaults(error.faults, ['policy']);
  }
}

function submissionOf(
  item: GivenItem,
  to: Destination,
  payload: unknown,
  context: TaskContext | undefined,
  key: string | undefined,
): Submission<Destination> {
  const { message_id: id, policy, max_retries, due_at, expires_at, ordering_key, on_dead } = item;
  const { on_conflict, delay } = item;
  return {
    to,
    payload,
    ...(id === undefined ? (key === undefined ? {} : { dedupeKey: key }) : { id }),
    ...(policy === undefined ? {} : { policy }),
    ...(max_retries === undefined ? {} : { maxAttempts: max_retries + 1 }),
    ...(due_at === undefined ? {} : { dueAt: Date.parse(due_at) }),
    ...(delay === undefined ? {} : { delay: durationMs(delay) }),
    ...(expires_at === undefined ? {} : { expiresAt: Date.parse(expires_at) }),
    ...(ordering_key === undefined ? {} : { orderingKey: ordering_key }),
    ...(on_dead === undefined ? {} : { onDead: on_dead }),
    ...(on_conflict === undefined ? {} : { onConflict: on_conflict }),
    ...(context ? { context } : {}),
  };
}

function failureOf(
  item: GivenItem,
  retryCount: number,
  to: Destination,
  payload: unknown,
  context: TaskContext | undefined,
  { key, nowMs }: Around,
): Wish {
  const { policy, due_at, expires_at, ordering_key, max_retries } = item;
  // The key makes the id, so the key has to be that of this message, as for fresh work.
  const byKey = item.message_id === undefined && key !== undefined ? 'reject' : undefined;
  const onConflict = item.on_conflict ?? byKey;
  const report: FailureReport = {
    messageId:
      item.message_id ??
      (key === undefined ? randomUUID() : uuidOf(`${to.kind}:${to.address}`, key)),
    to,
    payload: bytesOf(payload),
    failure: failureIn(item),
    attempt: retryCount + 1,
    // An old count is an old failure, whatever became of the message since then.
    generation: 'present',
    ...(max_retries === undefined ? {} : { maxAttempts: max_retries + 1 }),
    ...(policy === undefined ? {} : { policy }),
    ...(due_at === undefined ? {} : { dueAtMs: Date.parse(due_at) }),
    ...(item.delay === undefined ? {} : { dueAtMs: nowMs() + durationMs(item.delay) }),
    ...(expires_at === undefined ? {} : { expiresAtMs: Date.parse(expires_at) }),
    ...(ordering_key === undefined ? {} : { orderingKey: ordering_key }),
    ...(item.on_dead === 'release' ? { onDead: item.on_dead } : {}),
    ...(onConflict === undefined ? {} : { onConflict }),
    ...(context ? { context } : {}),
  };
  return { type: 'failure', destination: to, report };
}

const classes = {
  TRANSIENT: 'transient',
  BUSINESS: 'business',
  TECHNICAL: 'technical',
  UNKNOWN: 'unknown',
} as const satisfies Record<NonNullable<GivenItem['classification']>, Failure['class']>;

function failureIn({ classification = 'TRANSIENT', error_reason: message }: GivenItem): Failure {
  return { class: classes[classification], ...(message === undefined ? {} : { message }) };
}

function payloadOf(item: GivenItem): { value: unknown } | { fault: WireFault } {
  const isJson = Object.hasOwn(item, 'payload');
  const { payload, payload_base64: base64 } = item;
  if (isJson !== (base64 === undefined)) {
    const code = isJson ? 'INVALID_VALUE' : 'MISSING_FIELD';
    const message = 'Either payload or payload_base64 is needed, and not both.';
    return { fault: { in: 'body', path: '/payload', code, message } };
  }
  if (base64 === undefined) return { value: payload };
  const value = readBase64(base64);
  const message = 'It is not base64.';
  return value
    ? { value }
    : { fault: { in: 'body', path: '/payload_base64', code: 'INVALID_VALUE', message } };
}

/** What travels with the payload; undefined: nothing does. */
function contextOf(
  item: GivenItem,
  traceparent: string | undefined,
  { kind }: Destination,
): TaskContext | undefined {
  const { headers, content_type, method, secret } = item;
  // For fresh work the engine says so itself.
  const isJson =
    kind === 'http' && item.retry_count !== undefined && Object.hasOwn(item, 'payload');
  const contentType = content_type ?? (isJson ? 'application/json' : undefined);
  if (!headers && !contentType && !method && !secret && !traceparent) return undefined;
  return {
    ...(headers ? { headers } : {}),
    ...(contentType ? { contentType } : {}),
    ...(method ? { method } : {}),
    ...(secret ? { secret } : {}),
    ...(traceparent ? { traceparent } : {}),
  };
}

/** Bytes as they are, anything else as JSON. What a request brought can be written again: its depth has a limit. */
function bytesOf(payload: unknown): Uint8Array {
  return payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload));
}
