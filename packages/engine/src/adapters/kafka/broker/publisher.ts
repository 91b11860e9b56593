import { impossible, unpublished } from '../../../broker/answers.ts';
import type { Publication, Published, PublishOptions } from '../../../ports/broker.ts';
import { Code, nameOf } from '../client/errors.ts';
import type { Producer, Stored } from '../client/producer.ts';
import { prepare } from './prepare.ts';

/** Publishes each message with acknowledgement of all replicas in sync, and answers for each by itself. */
export function publishTo(
  producer: Producer,
  messages: readonly Publication[],
  { timeoutMs }: PublishOptions,
  isReady: () => boolean,
): Promise<Published>[] {
  const places: number[] = [];
  const prepared = messages.map((message, i) => {
    const ready = prepare(message);
    if ('outcome' in ready) return ready;
    places.push(i);
    return ready;
  });
  const resolvers: ((published: Published) => void)[] = [];
  const answers = prepared.map((ready, i) =>
    'outcome' in ready
      ? Promise.resolve<Published>(ready)
      : new Promise<Published>((resolve) => {
          resolvers[i] = resolve;
        }),
  );
  const records = prepared.flatMap((ready) => ('outcome' in ready ? [] : [ready]));
  if (records.length > 0) {
    // Not again where it may be in the log: the engine knows of the duplicate then.
    producer.send(records, { timeoutMs, insist: false }, (k, stored) => {
      const place = places[k]!;
      resolvers[place]!(publishedOf(stored, messages[place]!, isReady()));
    });
  }
  return answers;
}

/** What an answer of Kafka means. Pure. */
function publishedOf(stored: Stored, { address }: Publication, isReady: boolean): Published {
  switch (stored.type) {
    case 'stored':
      return confirmed;
    case 'unsure':
      return stored.isLost
        ? unpublished('lost', 'CONNECTION_LOST', stored.why)
        : unpublished('unknown', 'CONFIRM_TIMEOUT', stored.why);
    case 'unsent':
      return isReady
        ? unpublished(
            'refused',
            'NO_LEADER',
            `Topic ${address} takes no messages for now: ${stored.why}`,
          )
        : unpublished('away', 'BROKER_AWAY', stored.why);
    case 'refused':
      return refusedOf(stored.errorCode, address);
  }
}

function refusedOf(errorCode: number, address: string): Published {
  switch (errorCode) {
    case Code.unknownTopic: {
      const message = `Topic ${address} does not exist. Create it, or correct the destination, then replay the message.`;
      return {
        outcome: 'unroutable',
        failure: { class: 'technical', code: 'NO_TOPIC', message, notExecuted: true },
      };
    }
    case Code.messageTooLarge:
    case Code.recordListTooLarge: {
      const sentence = `The message is larger than topic ${address} takes. Raise max.message.bytes of the topic, or send less.`;
      return impossible('MESSAGE_TOO_LARGE', sentence);
    }
    case Code.invalidRecord:
    case Code.invalidTopic: {
      const sentence = `Topic ${address} does not take the message as it is (${nameOf(errorCode)}).`;
      return impossible('INVALID_MESSAGE', sentence);
    }
    case Code.topicAuthorizationFailed: {
      const sentence = `The user of the connection may not write to topic ${address}. Give it the permission.`;
      return unpublished('refused', 'NOT_PERMITTED', sentence);
    }
    default:
      return unpublished(
        'refused',
        'BROKER_REFUSED',
        `Kafka refused the message: ${nameOf(errorCode)}`,
      );
  }
}

const confirmed: Published = Object.freeze({ outcome: 'confirmed' });
