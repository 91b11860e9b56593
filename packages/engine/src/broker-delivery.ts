import { classify } from 'redrive';
import { Coalescer } from './coalescer.ts';
import type { Host } from './host.ts';
import type { Broker, Publication, Published } from './ports/broker.ts';
import type { Delivery, Outcome } from './ports/delivery.ts';
import type { Task } from './task.ts';

const MAX_BATCH = 500;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 4;
const PUBLISH_SHARE = 0.8;

/** Hands tasks over to a broker, in batches, each confirmed by itself. */
export class BrokerDelivery implements Delivery {
  readonly kind: string;
  readonly handsOver = true;
  readonly #nowMs: () => number;
  readonly #together: Coalescer<Publication, Published>;
  readonly #alone: Coalescer<Publication, Published>;

  constructor(broker: Broker, host: Host, timeoutMs: number) {
    this.kind = broker.kind;
    this.#nowMs = () => host.clock.now();
    // Before the time limit of the delivery is over: an answer, even that there is none, is better.
    const publishMs = Math.ceil(timeoutMs * PUBLISH_SHARE);
    const publish = (batch: readonly Publication[]) => broker.publish(batch, publishMs);
    const limits = {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: ({ payload }: Publication) => payload.length,
      maxUnderway: MAX_UNDERWAY,
      defer: host.defer,
    };
    this.#together = new Coalescer(publish, limits);
    this.#alone = new Coalescer(publish, { ...limits, maxItems: 1 });
  }

  async deliver(task: Task): Promise<Outcome> {
    // One that nobody confirmed before may be what breaks its batch: it goes alone.
    const batches = task.uncounted > 0 ? this.#alone : this.#together;
    let published: Published;
    try {
      published = await batches.add(publicationOf(task));
    } catch (error) {
      published = { outcome: 'unknown', failure: classify(error, { nowMs: this.#nowMs() }) };
    }
    switch (published.outcome) {
      case 'confirmed':
        return { type: 'taken' };
      case 'unroutable': {
        const message = `Nobody listens at ${task.destination.address}.`;
        return { type: 'unroutable', failure: { class: 'technical', code: 'UNROUTABLE', message } };
      }
      case 'refused':
      case 'unknown':
        return { type: 'refused', failure: published.failure };
    }
  }
}

const MAX_ERROR_BYTES = 1024;

/** The message as it goes out again, with what a consumer needs to tell a retry and a duplicate. */
function publicationOf(task: Task): Publication {
  const { context, failure } = task;
  const error = failure?.message ?? failure?.code;
  return {
    address: task.destination.address,
    payload: task.payload,
    ...(context?.contentType ? { contentType: context.contentType } : {}),
    ...(context?.extra ? { extra: context.extra } : {}),
    headers: {
      ...context?.headers,
      ...(context?.traceparent ? { traceparent: context.traceparent } : {}),
      'x-retry-count': task.attempt,
      ...(error ? { 'x-original-error': cut(error) } : {}),
      'x-retry-scheduler': 'true',
      'x-message-id': task.messageId,
      'x-redrive-generation': task.generation,
    },
  };
}

function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_ERROR_BYTES) return text;
  return bytes
    .subarray(0, MAX_ERROR_BYTES)
    .toString()
    .replace(/\uFFFD+$/, '');
}
