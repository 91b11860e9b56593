import { randomUUID } from 'node:crypto';
import { type Reading, type Reason, type Received, uuidOf } from '@redrive/engine';
import {
  classify,
  type ClassifyRule,
  classifyText,
  type Failure,
  type FailureClass,
} from 'redrive';
import { carriedOn, firstPublishOf } from './carried.ts';
import { brokerWord, type Death, deathsOf, originOf } from './deaths.ts';
import {
  countOf,
  generationOf,
  isMarked,
  isRepublished,
  MAX_COUNT,
  sentIdOf,
  textOf,
  type Headers,
} from './headers.ts';
import { latin1Of, type RawCause, type RawOptions, rawReading } from './raw-item.ts';
import { isUuid } from './retry-fields.ts';

interface DeadLetterReaderOptions extends RawOptions {
  maxPayloadBytes: number;
  /** What a dead letter without a text counts as. */
  unclassifiedAs: FailureClass;
  /** Asked before what is built in. */
  rules: readonly ClassifyRule[];
  /** What dies in one of these is never sent there again. */
  ownQueues: readonly string[];
  /** A UUID for a message that has none; random unless given. */
  newId?: () => string;
}

/** Reads what a dead-letter exchange hands over. Pure but for clock and chance, and total. */
export function deadLetterReader(
  options: DeadLetterReaderOptions,
): (received: Received) => Reading {
  const { ownQueues, maxPayloadBytes, reviewQueue, carry, newId = randomUUID } = options;
  const raw = rawReading(options);
  return (received) => {
    const { headers, payload } = received;
    const deaths = deathsOf(headers);
    const origin = originOf(headers, deaths);
    const count = countOf(headers['x-retry-count']) ?? 0;
    const known = { ...(origin ? { originalQueue: origin.queue } : {}), retryCount: count };
    const inbox = (cause: Omit<RawCause, 'messageId'>) =>
      raw(received, { messageId: rawIdOf(received, options.source, newId), ...cause }, known);

    // Also where it only expired there: it may be a message to us that carries the headers of another.
    const queues = [origin?.queue, deaths[0]?.queue];
    const own = ownQueues.find((queue) => queues.includes(queue));
    if (own !== undefined) {
      const why = `It died in ${own}, a queue of Redrive's own.`;
      // The review of a review that died would die there too, and so on.
      const isTold = !queues.includes(reviewQueue);
      return inbox({ reason: 'PERMANENT', code: 'OWN_QUEUE', why, isTold });
    }
    if (!origin) return inbox({ reason: 'UNREADABLE', code: 'NO_ORIGIN', why: noOrigin });
    if (payload.length > maxPayloadBytes) {
      const why = `The message has ${payload.length} bytes; the limit is ${maxPayloadBytes}.`;
      return inbox({ reason: 'TOO_LARGE', code: 'TOO_LARGE', why });
    }

    const { messageId, otherId } = idOf(received, origin.queue, newId);
    const first = { ...origin, ...firstPublishOf(headers) };
    const { context, isTooLarge } = carriedOn(received, carry, first);
    const { failure, verdict } = judged(headers, origin, options);
    const generation = generationOf(headers, messageId, payload);
    const reason = verdict ?? (isTooLarge ? 'HEADERS_TOO_LARGE' : undefined);
    return {
      type: 'failure',
      report: {
        messageId,
        to: { kind: 'queue', address: origin.queue },
        payload,
        context,
        failure,
        attempt: Math.min(count + 1, MAX_COUNT),
        ...(generation === undefined ? {} : { generation }),
        ...(otherId === undefined ? {} : { otherId }),
        ...(reason ? { verdict: reason } : {}),
      },
    };
  };
}

const noOrigin =
  'Its queue is unknown. Publish with the header x-original-queue, or replay it with --destination queue:NAME.';

/**
 * Ours, else its own, else a new one. Two messages must never become one, and who published them may have used an id
 * twice: by the other id the second one of another body is told apart.
 */
function idOf(
  received: Received,
  queue: string,
  newId: () => string,
): { messageId: string; otherId?: string } {
  const { headers, payload } = received;
  const sent = sentIdOf(headers, payload);
  if (sent !== undefined && isMarked(headers)) return { messageId: sent };
  const id = sent ?? publishedIdOf(received);
  if (id === undefined) return { messageId: newId() };
  const otherId = uuidOf(queue, id, latin1Of(payload));
  return isUuid(id) ? { messageId: id.toLowerCase(), otherId } : { messageId: otherId };
}

/** With the bytes, since there is no queue that would tell two messages of one id apart. */
function rawIdOf(received: Received, source: string, newId: () => string): string {
  const id = textOf(received.headers['x-message-id']) ?? publishedIdOf(received);
  return id === undefined ? newId() : uuidOf(source, id, latin1Of(received.payload));
}

function publishedIdOf({ extra }: Received): string | undefined {
  const { properties } = Object(extra) as { properties?: unknown };
  return textOf((Object(properties) as { messageId?: unknown }).messageId);
}

/** What killed it, and whether that settles it. */
function judged(
  headers: Headers,
  { reason }: Death,
  { unclassifiedAs, rules }: DeadLetterReaderOptions,
): { failure: Failure; verdict?: Reason } {
  const text = errorTextOf(headers);
  if (text !== undefined) return { failure: spoken(text, rules) };
  if (reason === 'expired') {
    const message = 'It expired in its queue.';
    const failure: Failure = { class: 'unknown', code: 'DEAD_LETTER_EXPIRED', message };
    return { failure, verdict: 'EXPIRED' };
  }
  if (reason === 'maxlen') {
    const message = 'Its queue was full.';
    const failure: Failure = { class: 'unknown', code: 'DEAD_LETTER_MAXLEN', message };
    return { failure, verdict: 'PERMANENT' };
  }
  const isKnown = reason === 'rejected' || reason === 'delivery_limit';
  const code = isKnown ? `DEAD_LETTER_${reason.toUpperCase()}` : 'DEAD_LETTER_UNCLASSIFIED';
  const before = textOf(headers['x-original-error']);
  // Of a failure without a text the republish wrote its code there.
  const isText = before !== undefined && !/^DEAD_LETTER_[A-Z_]+$/.test(before);
  const message = isText ? { message: before.slice(0, MAX_TEXT) } : {};
  return { failure: { class: unclassifiedAs, code, ...message } };
}

/**
 * The text of this failure. The `x-original-error` of a message that Redrive sent tells of the one before: by that, a
 * plain rejection would be judged as whatever happened then.
 */
function errorTextOf(headers: Headers): string | undefined {
  const texts = [headers['x-exception-stacktrace'], headers['x-death-reason']];
  if (!isRepublished(headers)) texts.push(headers['x-original-error']);
  return texts.map(textOf).find((text) => text !== undefined && brokerWord(text) === undefined);
}

const MAX_TEXT = 8192;

/** A rule's `counted: false` counts for nothing here: the count has come with the message. */
function spoken(text: string, rules: readonly ClassifyRule[]): Failure {
  const message = text.slice(0, MAX_TEXT);
  const kind = classifyText(text, rules)?.class ?? 'unknown';
  const { class: same, code } = classify(message, { rules });
  return { class: kind, ...(code !== undefined && same === kind ? { code } : {}), message };
}
