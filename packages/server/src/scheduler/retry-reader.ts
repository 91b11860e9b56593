import { type FailureReport, type Reading, type Received, uuidOf } from '@redrive/engine';
import type { Failure, FailureClass } from 'redrive';
import { carriedOn, firstPublishOf } from './carried.ts';
import { countOf, generationOf, MAX_COUNT, textOf } from './headers.ts';
import { latin1Of, type RawOptions, rawReading } from './raw-item.ts';
import { readRetryMessage, type RetryMessage } from './retry-message.ts';

interface RetryReaderOptions extends RawOptions {
  defaultMaxRetries: number;
  /** Messages over this are not even looked into. */
  maxPayloadBytes: number;
}

/** Reads what comes through RETRY_QUEUE. Pure but for the clock, and total. */
export function retryReader(options: RetryReaderOptions): (received: Received) => Reading {
  const { source, maxPayloadBytes } = options;
  const raw = rawReading(options);
  return (received) => {
    const { payload, headers } = received;
    const inbox = (reason: 'TOO_LARGE' | 'UNREADABLE', why: string) => {
      const messageId = uuidOf(source, latin1Of(payload));
      return raw(received, { messageId, reason, code: reason, why }, {});
    };
    if (payload.length > maxPayloadBytes) {
      const why = `The message has ${payload.length} bytes; the limit is ${maxPayloadBytes}.`;
      return inbox('TOO_LARGE', why);
    }
    const queue = textOf(headers['x-original-queue']);
    const reading = readRetryMessage(payload, received.contentType, queue);
    if (reading.type === 'unreadable') return inbox('UNREADABLE', reading.why);
    return { type: 'failure', report: reportOf(reading.message, received, options) };
  };
}

/** A leap year too. What lies further away is a mistake, microseconds mostly. */
const YEAR_MS = 366 * 86_400_000;

function reportOf(
  message: RetryMessage,
  received: Received,
  options: RetryReaderOptions,
): FailureReport {
  const { messageId, originalQueue, originalPayload, nextRetryAtMs = 0 } = message;
  const { headers } = received;
  const count = Math.max(message.retryCount, countOf(headers['x-retry-count']) ?? 0);
  const attempt = Math.min(count + 1, MAX_COUNT);
  const most = Math.max(0, message.maxRetries ?? options.defaultMaxRetries);
  const maxAttempts = Math.min(most + 1, MAX_COUNT);
  const { context, isTooLarge } = carriedOn(bare(received), options.carry, firstPublishOf(headers));
  const contentType = contentTypeOf(textOf(headers['x-original-content-type']));
  const isTooFar = nextRetryAtMs > options.nowMs() + YEAR_MS;
  const generation = generationOf(headers, messageId, originalPayload);
  return {
    messageId,
    to: { kind: 'queue', address: originalQueue },
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
