import { type Reading, type Received, uuidOf } from '@redrive/engine';
import type { NatsExtra } from '@redrive/engine/nats';
import type { Failure, FailureClass } from 'redrive';
import { carriedOn } from './carried.ts';
import { countOf, generationOf, isMarked, MAX_COUNT, sentIdOf, textOf } from './headers.ts';
import { latin1Of, type RawCause, type RawOptions, rawReading } from './raw-item.ts';
import { isUuid } from './retry-fields.ts';

interface MaxDeliveriesReaderOptions extends RawOptions {
  maxPayloadBytes: number;
  /** What a message counts as that a consumer gave up: NATS knows no reason. */
  unclassifiedAs: FailureClass;
  /** Messages of this subject are never sent there again. */
  ownSubject: string;
}

/** Reads messages that a consumer of JetStream has given up. Pure, and total. */
export function maxDeliveriesReader(
  options: MaxDeliveriesReaderOptions,
): (received: Received) => Reading {
  const { source, ownSubject, maxPayloadBytes, carry, unclassifiedAs } = options;
  const raw = rawReading(options);
  return (received) => {
    const { headers, payload, extra } = received;
    const { subject, storedAtMs, maxDeliveries } = Object(extra?.['nats']) as Partial<NatsExtra>;
    const count = countOf(headers['x-retry-count']) ?? 0;
    const inbox = (cause: Omit<RawCause, 'messageId'>, known = {}) =>
      raw(received, { messageId: uuidOf(source, latin1Of(payload)), ...cause }, known);

    if (!maxDeliveries || subject === undefined) {
      return inbox({ reason: 'UNREADABLE', code: 'NO_ADVISORY', why: noAdvisory });
    }
    const { stream, consumer, sequence, deliveries } = maxDeliveries;
    if (maxDeliveries.isGone) {
      const why = `Message ${sequence} of stream ${stream}, which consumer ${consumer} gave up, is gone from the stream. Let the stream keep its messages longer.`;
      return inbox({ reason: 'UNREADABLE', code: 'MESSAGE_GONE', why });
    }
    const known = { originalQueue: subject, retryCount: count };
    if (subject === ownSubject || subject.startsWith('$')) {
      const why = `It was given up at ${subject}, a subject of Redrive's own or of the server.`;
      return inbox({ reason: 'PERMANENT', code: 'OWN_QUEUE', why }, known);
    }
    if (payload.length > maxPayloadBytes) {
      const why = `The message has ${payload.length} bytes; the limit is ${maxPayloadBytes}.`;
      return inbox({ reason: 'TOO_LARGE', code: 'TOO_LARGE', why }, known);
    }
    const place = `${stream} ${sequence} ${storedAtMs}`;
    const { messageId, otherId } = idOf(received, subject, place);
    const { context, isTooLarge } = carriedOn(received, carry, {});
    const generation = generationOf(headers, messageId, payload);
    const failure: Failure = {
      class: unclassifiedAs,
      code: 'DEAD_LETTER_MAX_DELIVERIES',
      message: `Consumer ${consumer} of stream ${stream} did not acknowledge it in ${deliveries} deliveries.`,
    };
    return {
      type: 'failure',
      report: {
        messageId,
        to: { kind: 'nats', address: subject },
        payload,
        context,
        failure,
        attempt: Math.min(count + 1, MAX_COUNT),
        ...(generation === undefined ? {} : { generation }),
        ...(otherId === undefined ? {} : { otherId }),
        ...(isTooLarge ? { verdict: 'HEADERS_TOO_LARGE' } : {}),
      },
    };
  };
}

const noAdvisory =
  'It is not an advisory of the server about a message that was given up. Let nobody publish to the subjects of this stream.';

/** Ours, else that of its publisher, else its place in the stream: the same message has the same id, and no other one has it. */
function idOf(
  { headers, payload }: Received,
  subject: string,
  place: string,
): { messageId: string; otherId?: string } {
  const sent = sentIdOf(headers, payload);
  if (sent !== undefined && isMarked(headers)) return { messageId: sent };
  const id = sent ?? textOf(headers['Nats-Msg-Id']);
  if (id === undefined) return { messageId: uuidOf(subject, place) };
  const otherId = uuidOf(subject, id, latin1Of(payload));
  return isUuid(id) ? { messageId: id.toLowerCase(), otherId } : { messageId: otherId };
}
