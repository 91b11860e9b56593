import { type FailureReport, type Reading, type Received, uuidOf } from '@redrive/engine';
import type { Failure, FailureClass } from 'redrive';
import { carriedOn, firstPublishOf } from './carried.ts';
import { countOf, generationOf, type Headers, MAX_COUNT, textOf } from './headers.ts';
import { latin1Of, type RawOptions, rawReading } from './raw-item.ts';
import { readRetryMessage, type RetryMessage } from './retry-message.ts';
import type { RawFacts } from './review-message.ts';

interface RetryReaderOptions extends RawOptions {
  defaultMaxRetries: number;
  /** What `original_queue` is a name of (`queue`). */
  kind?: 'queue' | 'nats' | 'kafka';
  /** For the original payload. The envelope around it may be larger: see `envelopeLimit`. */
  maxPayloadBytes: number;
}

/** Reads what comes through RETRY_QUEUE. Pure but for the clock, and total. */
export function retryReader(options: RetryReaderOptions): (received: Received) => Reading {
  const { source, maxPayloadBytes } = options;
  const maxEnvelopeBytes = envelopeLimit(maxPayloadBytes);
  const raw = rawReading(options);
  return (received) => {
    const { payload, headers } = received;
    const inbox = (reason: 'TOO_LARGE' | 'UNREADABLE', why: string, known: RawFacts = {}) => {
      const messageId = uuidOf(source, latin1Of(payload));
      return raw(received, { messageId, reason, code: reason, why }, known);
    };
    if (payload.length > maxEnvelopeBytes) {
      const why = `The message has ${payload.length} bytes; with REDRIVE_MAX_PAYLOAD_BYTES=${maxPayloadBytes} at most ${maxEnvelopeBytes} are read.`;
      return inbox('TOO_LARGE', why);
    }
    const queue = textOf(headers['x-original-queue']);
    const reading = readRetryMessage(payload, received.contentType, queue);
    if (reading.type === 'unreadable') return inbox('UNREADABLE', reading.why);
    const { message } = reading;
    const { length } = message.originalPayload;
    if (length > maxPayloadBytes) {
      const why = `The original payload has ${length} bytes; REDRIVE_MAX_PAYLOAD_BYTES is ${maxPayloadBytes}.`;
      const { originalQueue } = message;
      return inbox('TOO_LARGE', why, { originalQueue, retryCount: countIn(message, headers) });
    }
    return { type: 'failure', report: reportOf(message, received, options) };
  };
}

/**
 * How large a message around a payload may be. Base64 adds a third. The list of numbers that Node makes of a Buffer has up
 * to 4 bytes for each. The rest is for the other fields.
 */
function envelopeLimit(maxPayloadBytes: number): number {
  return Math.min(5 * maxPayloadBytes + 64 * KiB, MAX_STORED_BYTES);
}

const KiB = 1024;
/** What the inbox takes at most. */
const MAX_STORED_BYTES = 16 * 1024 * KiB;

/** A leap year too. What lies further away is a mistake, microseconds mostly. */
const YEAR_MS = 366 * 86_400_000;

function reportOf(
  message: RetryMessage,
  received: Received,
  options: RetryReaderOptions,
): FailureReport {
  const { messageId, originalQueue, originalPayload, nextRetryAtMs = 0 } = message;
  const { headers } = received;
  const attempt = Math.min(countIn(message, headers) + 1, MAX_COUNT);
  const most = Math.max(0, message.maxRetries ?? options.defaultMaxRetries);
  const maxAttempts = Math.min(most + 1, MAX_COUNT);
  const { context, isTooLarge } = carriedOn(bare(received), options.carry, firstPublishOf(headers));
  const contentType = contentTypeOf(textOf(headers['x-original-content-type']));
  const isTooFar = nextRetryAtMs > options.nowMs() + YEAR_MS;
  const generation = generationOf(headers, messageId, originalPayload);
  return {
    messageId,
    to: { kind: options.kind ?? 'queue', address: originalQueue },
    payload: originalPayload,
    context: contentType === undefined ? context : { ...context, contentType },
    failure: failureOf(message),
    attempt,
    maxAttempts,
    // Past or not is for the store's clock to say.
    ...(nextRetryAtMs > 0 && !isTooFar ? { dueAtMs: nextRetryAtMs } : {}),
    ...(generation === undefined ? {} : { generation }),
    // Used up is used up, whatever else is wrong.
    ...(attempt < maxAttempts && (isTooLarge || isTooFar)
      ? { verdict: isTooLarge ? 'HEADERS_TOO_LARGE' : 'TOO_FAR' }
      : {}),
  };
}

/** The larger of body and header: a producer may always write 0 into one of them. */
function countIn({ retryCount }: RetryMessage, headers: Headers): number {
  return Math.max(retryCount, countOf(headers['x-retry-count']) ?? 0);
}

function failureOf({ classification, errorReason }: RetryMessage): Failure {
  return {
    class: classification.toLowerCase() as FailureClass,
    ...(errorReason ? { message: errorReason } : {}),
  };
}

/** As short as AMQP has it, and nothing that is no type anyway. */
function contentTypeOf(type: string | undefined): string | undefined {
  return type !== undefined && /^[!-~][ -~]{0,254}$/.test(type) ? type : undefined;
}

/** Type and encoding are those of the envelope: the payload inside has others. */
function bare(received: Received): Received {
  const { contentType: _, extra, ...rest } = received;
  const { properties } = Object(extra) as { properties?: unknown };
  if (typeof properties !== 'object' || properties === null)
    return extra ? { ...rest, extra } : rest;
  const {
    contentType: __,
    contentEncoding: ___,
    ...others
  } = properties as Record<string, unknown>;
  return { ...rest, extra: { ...extra, properties: others } };
}
