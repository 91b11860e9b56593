import type { NewItem, NewOutboxMessage, NewTask, RawItem, Task } from '@redrive/engine';

export interface ReviewOptions {
  reviewQueue: string;
  nowMs?: () => number;
}

/** What is known of a message that is no task. */
export interface RawFacts {
  originalQueue?: string;
  retryCount?: number;
}

/** The message of MANUAL_REVIEW_QUEUE for a task that enters the inbox. */
export function reviewOf(options: ReviewOptions) {
  return (task: Task | NewTask, item: NewItem): NewOutboxMessage => {
    const { messageId, destination, payload, attempt, maxAttempts } = task;
    return messageOf(options, item, {
      messageId,
      payload,
      // A URL or a handler is no queue.
      ...(destination.kind === 'queue' ? { originalQueue: destination.address } : {}),
      retryCount: Math.max(0, attempt - 1),
      maxRetries: Math.max(0, maxAttempts - 1),
    });
  };
}

/** The same for a message that was never a task, with its bytes as they came. */
export function reviewOfRaw(options: ReviewOptions) {
  return (item: RawItem, known: RawFacts): NewOutboxMessage => {
    const { messageId, payload } = item;
    return messageOf(options, item, { messageId, payload, ...known });
  };
}

interface Facts extends RawFacts {
  messageId: string;
  payload: Uint8Array;
  maxRetries?: number;
}

function messageOf(options: ReviewOptions, item: NewItem, facts: Facts): NewOutboxMessage {
  const { reviewQueue, nowMs = Date.now } = options;
  const { reason, failure } = item;
  const { originalQueue } = facts;
  const body = {
    message_id: facts.messageId,
    original_queue: originalQueue ?? null,
    original_payload: base64Of(facts.payload),
    error_reason: failure.message ?? failure.code ?? null,
    retry_count: facts.retryCount ?? null,
    max_retries: facts.maxRetries ?? null,
    classification: failure.class.toUpperCase(),
    failed_at: new Date(nowMs()).toISOString(),
  };
  const isExhausted = reason === 'EXHAUSTED';
  return {
    destination: { kind: 'queue', address: reviewQueue },
    payload: Buffer.from(JSON.stringify(body)),
    headers: {
      'content-type': 'application/json',
      ...(isExhausted ? { 'x-max-retries-exceeded': 'true' } : { 'x-review-reason': reason }),
      ...(originalQueue === undefined ? {} : { 'x-original-queue': originalQueue }),
    },
  };
}

/** RabbitMQ 4 refuses messages over 16 MiB and closes the channel. What is over it is in the inbox. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Of the rest of the body, whatever its error has to be written as. */
const OTHER_BYTES = 64 * 1024;
/** Base64 adds a third. */
const MAX_PAYLOAD_BYTES = ((MAX_MESSAGE_BYTES - OTHER_BYTES) / 4) * 3;

function base64Of(payload: Uint8Array): string | null {
  if (payload.length > MAX_PAYLOAD_BYTES) return null;
  const { buffer, byteOffset, byteLength } = payload;
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}
