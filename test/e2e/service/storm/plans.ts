/** What a producer sends in a storm, and what has to become of it. By the number of a message alone, so that everybody agrees. */
import { createHash } from 'node:crypto';
import { json, protobuf, type RetryFields } from '../retry-wire.ts';

export const queues = ['storm.orders', 'storm.billing', 'storm.mail'] as const;
export const NOWHERE = 'storm.nowhere';
/** A queue that is deleted while messages are on their way to it. */
export const VANISHING = 'storm.vanishing';
/** From this number on messages are for that queue. */
export const FIRST_VANISHING = 1_000_000_000;

/** The service's settings: what a delay cannot be below is known from outside. */
export const BASE_DELAY_MS = 1000;
export const MAX_DELAY_MS = 4000;

const USUAL_RETRIES = 5;

/**
 * `taken`: by its consumer at last, after it failed so often more. The rest goes to review: used up when it arrives, used up
 * by one more failure, for a queue that is not there, not to be retried, not to be read. `vanishing`: taken by its
 * consumer, or in review once its queue is deleted.
 */
export type Kind =
  | 'taken'
  | 'usedUp'
  | 'usesUp'
  | 'nowhere'
  | 'business'
  | 'unreadable'
  | 'vanishing';

/** How a consumer sends back what failed: with all headers that came, with the count in the body only, or with none. */
export type Manner = 'headers' | 'body' | 'forgetful';

export interface Plan {
  readonly number: number;
  readonly kind: Kind;
  readonly id: string;
  readonly queue: string;
  readonly payload: Buffer;
  /** Executions that failed before it was sent. */
  readonly retryCount: number;
  readonly maxRetries: number;
  /** Deliveries that its consumer fails. */
  readonly failures: number;
  readonly manner: Manner;
  readonly format: 'protobuf' | 'json';
  /** Its producer says when it is due: so long after it is sent. */
  readonly dueInMs?: number;
  /** Why it lies in review at the end. */
  readonly reason?: string;
}

export function planOf(number: number): Plan {
  const place = number % 100;
  const kind = number >= FIRST_VANISHING ? 'vanishing' : kindAt(place);
  const fresh = {
    number,
    kind,
    id: idOf(number),
    queue: kind === 'nowhere' ? `${NOWHERE}.${number % 3}` : queues[number % queues.length]!,
    payload: payloadOf(number),
    retryCount: 0,
    maxRetries: USUAL_RETRIES,
    failures: 0,
    manner: (['headers', 'body', 'headers', 'forgetful'] as const)[Math.floor(number / 3) % 4]!,
    format: number % 2 === 0 ? ('protobuf' as const) : ('json' as const),
  };
  switch (kind) {
    case 'taken':
      return { ...fresh, ...wayOf(place) };
    case 'usedUp':
      return { ...fresh, retryCount: USUAL_RETRIES, reason: 'EXHAUSTED' };
    case 'usesUp':
      return { ...fresh, maxRetries: 1, failures: 1, reason: 'EXHAUSTED' };
    case 'nowhere':
      return { ...fresh, reason: 'UNROUTABLE' };
    case 'vanishing':
      return { ...fresh, queue: VANISHING, reason: 'UNROUTABLE' };
    case 'business':
      return { ...fresh, reason: 'PERMANENT' };
    case 'unreadable':
      return { ...fresh, reason: 'UNREADABLE' };
  }
}

/** The counts that its deliveries carry, each once. */
export function countsOf({ kind, retryCount, failures }: Plan): number[] {
  const deliveries = kind === 'taken' || kind === 'vanishing' ? failures + 1 : failures;
  return Array.from({ length: deliveries }, (_, i) => retryCount + 1 + i);
}

/** Whether its consumer fails a delivery of this count. */
export function failsAt({ kind, retryCount, failures }: Plan, count: number): boolean {
  if (kind === 'vanishing') return false;
  return kind !== 'taken' || count <= retryCount + failures;
}

/** The least time between the failure before a delivery of this count and that delivery: jitter only adds to it. */
export function leastDelayMs(count: number): number {
  return Math.min(BASE_DELAY_MS * 2 ** (count - 1), MAX_DELAY_MS);
}

/** As it goes to the retry queue. */
export function messageOf(plan: Plan, nowMs: number): { body: Buffer; contentType: string } {
  const { id, queue, payload, retryCount, maxRetries, kind, format, dueInMs } = plan;
  if (kind === 'unreadable') return { body: payload, contentType: 'application/json' };
  return bodyOf(format, {
    message_id: id,
    original_payload: payload,
    original_queue: queue,
    error_reason: kind === 'business' ? 'already exists' : 'connect ETIMEDOUT',
    retry_count: retryCount,
    max_retries: maxRetries,
    ...(kind === 'business' ? { classification: 1 } : {}),
    ...(dueInMs === undefined ? {} : { next_retry_at_ms: nowMs + dueInMs }),
  });
}

/** The same after a delivery that its consumer failed. */
export function failedAgain(plan: Plan, count: number): { body: Buffer; contentType: string } {
  const { id, queue, payload, maxRetries, manner, format } = plan;
  return bodyOf(format, {
    message_id: id,
    original_payload: payload,
    original_queue: queue,
    error_reason: `it failed with count ${count}`,
    retry_count: manner === 'body' ? count : 0,
    max_retries: maxRetries,
  });
}

function bodyOf(format: Plan['format'], fields: RetryFields) {
  if (format === 'json') return { body: json(fields), contentType: 'application/json' };
  return { body: protobuf(fields), contentType: 'application/x-protobuf' };
}

/** Of a hundred messages. */
function kindAt(place: number): Kind {
  if (place < 88) return 'taken';
  if (place < 92) return 'usedUp';
  if (place < 95) return 'usesUp';
  if (place < 97) return 'nowhere';
  return place < 99 ? 'business' : 'unreadable';
}

function wayOf(place: number): Pick<Plan, 'retryCount' | 'failures' | 'dueInMs'> {
  if (place < 16) return { retryCount: 0, failures: 1 };
  if (place < 24) return { retryCount: 0, failures: 2 };
  if (place < 30) return { retryCount: 1, failures: 0 };
  // Far enough away: what is past when it is taken in is not looked at.
  if (place < 45) return { retryCount: 0, failures: 0, dueInMs: 3000 + (place % 7) * 400 };
  return { retryCount: 0, failures: 0 };
}

function idOf(number: number): string {
  const hash = createHash('sha1').update(`storm ${number}`).digest('hex');
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** From 20 bytes to some 2 KiB, and told by its first word. */
function payloadOf(number: number): Buffer {
  return Buffer.from(`${number} ${'storm '.repeat(3 + ((number * 7919) % 340))}`);
}

export function numberIn(payload: Uint8Array): number {
  return Number.parseInt(Buffer.from(payload.subarray(0, 20)).toString(), 10);
}
