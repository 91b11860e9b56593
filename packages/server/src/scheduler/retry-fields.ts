/** In the order of their numbers on the wire. */
export const classifications = ['TRANSIENT', 'BUSINESS', 'TECHNICAL', 'UNKNOWN'] as const;

export type Classification = (typeof classifications)[number];

/** An execution that failed, as it comes through RETRY_QUEUE. */
export interface RetryMessage {
  /** A UUID in lower case. */
  messageId: string;
  originalPayload: Uint8Array;
  originalQueue: string;
  errorReason?: string;
  retryCount: number;
  /** Absent: DEFAULT_MAX_RETRIES. Below 0 there is no retry, as for 0. */
  maxRetries?: number;
  /** Whole milliseconds; absent or past: computed. */
  nextRetryAtMs?: number;
  classification: Classification;
}

/** What a body says, each value by itself in order; whether all is there that must be is another question. */
export type RetryFields = Partial<RetryMessage>;

export type Decoded = { type: 'fields'; fields: RetryFields } | Unreadable;

export interface Unreadable {
  type: 'unreadable';
  /** A sentence that quotes nothing of the message. */
  why: string;
}

export function unreadable(why: string): Unreadable {
  return { type: 'unreadable', why };
}

export function isInt32(value: number): boolean {
  return Number.isInteger(value) && value <= INT32_MAX && value >= -INT32_MAX - 1;
}

export function isUuid(text: string | undefined): text is string {
  return text !== undefined && uuid.test(text);
}

/** What a broker and every store take as the name of a queue. */
export function isQueueName(name: string | undefined): name is string {
  return (
    name !== undefined &&
    name !== '' &&
    name.length <= MAX_QUEUE_BYTES &&
    Buffer.byteLength(name) <= MAX_QUEUE_BYTES &&
    name.isWellFormed() &&
    !name.includes('\0')
  );
}

const INT32_MAX = 0x7fff_ffff;
const MAX_QUEUE_BYTES = 255;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
