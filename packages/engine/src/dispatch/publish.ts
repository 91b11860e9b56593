import { classify, type Failure } from 'redrive';
import type { Broker, Publication, Published, PublishOptions } from '../ports/broker.ts';

/** One answer for each message, whatever becomes of the broker's own code. */
export function publish(
  broker: Broker,
  messages: readonly Publication[],
  options: PublishOptions,
): Promise<Published>[] {
  try {
    const published = broker.publish(messages, options);
    return messages.map((_, i) => (published[i] ?? Promise.resolve(unanswered)).catch(fault));
  } catch (error) {
    return messages.map(async () => fault(error));
  }
}

function fault(error: unknown): Published {
  return { outcome: 'unknown', failure: classify(error) };
}

const unanswered: Published = Object.freeze({
  outcome: 'unknown',
  failure: Object.freeze({
    class: 'transient',
    code: 'NO_ANSWER',
    message: 'The broker gave no answer to this message.',
  } satisfies Failure),
});
