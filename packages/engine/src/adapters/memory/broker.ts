import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Consumer,
  Publication,
  Published,
  Received,
} from '../../ports/broker.ts';
import { MemoryQueue } from './queue.ts';
import { checkNames } from 'redrive/internal';

export interface MemoryBrokerOptions {
  /** The `kind` of the destinations that it serves (`queue`). */
  kind?: string;
  /** The queues that exist from the beginning. */
  queues?: readonly string[];
  /** True: a queue exists as soon as something is published to it. False (the default): nobody is there. */
  createQueues?: boolean;
  /** Messages that a queue holds before it refuses more (100 000). */
  maxMessages?: number;
}

export interface MemoryBroker extends Broker {
  /** Makes a queue; one that exists stays as it is. */
  declare(queue: string): void;
  /** Messages in a queue, those included that a consumer holds. */
  depth(queue: string): number;
}

/** A broker in this process alone. It has no timers and draws no numbers: the same calls have the same effects. */
export function memoryBroker(options: MemoryBrokerOptions = {}): MemoryBroker {
  checkNames('The options of memoryBroker', options, names);
  return new InProcessBroker(options);
}

const names = ['kind', 'queues', 'createQueues', 'maxMessages'];
const MAX_MESSAGES = 100_000;
const MAX_QUEUES = 10_000;

class InProcessBroker implements MemoryBroker {
  readonly kind: string;
  readonly capabilities: BrokerCapabilities = {
    returnsUnroutable: true,
    confirms: true,
    typedHeaders: true,
    redeliversInOrder: true,
    acknowledgesOutOfOrder: true,
    marksRedelivered: true,
    sharesByMessage: true,
    maxMessageBytes: Infinity,
  };
  readonly #createQueues: boolean;
  readonly #maxMessages: number;
  readonly #queues = new Map<string, MemoryQueue>();
  readonly #consumers = new Set<Consumer>();
  readonly #listeners = new Set<() => void>();
  #isOpen = false;

  constructor({ kind, queues, createQueues, maxMessages }: MemoryBrokerOptions) {
    this.kind = kind ?? 'queue';
    this.#createQueues = createQueues ?? false;
    this.#maxMessages = maxMessages ?? MAX_MESSAGES;
    for (const queue of queues ?? []) this.declare(queue);
  }

  async open(): Promise<void> {
    this.#become(true);
  }

  /** As a connection that ends: what nobody acknowledged is delivered again, to whoever comes next. */
  async close(): Promise<void> {
    this.#become(false);
    for (const consumer of this.#consumers) await consumer.stop();
  }

  declare(queue: string): void {
    this.#declared(queue);
  }

  depth(queue: string): number {
    return this.#queues.get(queue)?.size ?? 0;
  }

  get isReady(): boolean {
    return this.#isOpen;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  publish(messages: readonly Publication[]): Promise<Published>[] {
    return messages.map(async (message) => this.#publish(message));
  }

  /** The queue is made where it is missing: who listens wants it to be there. */
  async consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<Consumer> {
    const consumer = this.#declared(source).consume(limits, receive);
    const tracked: Consumer = {
      ...consumer,
      stop: async () => {
        this.#consumers.delete(tracked);
        await consumer.stop();
      },
    };
    this.#consumers.add(tracked);
    return tracked;
  }

  #publish(message: Publication): Published {
    if (!this.#isOpen)
      return { ...refused('NOT_CONNECTED', 'The broker is not open.'), outcome: 'away' };
    const known = this.#queues.get(message.address);
    if (!known && !this.#createQueues) return { outcome: 'unroutable' };
    if (!known && this.#queues.size >= MAX_QUEUES) {
      return refused('TOO_MANY_QUEUES', `There are ${MAX_QUEUES} queues already.`);
    }
    const queue = known ?? this.#declared(message.address);
    if (queue.size >= this.#maxMessages) {
      return refused('QUEUE_FULL', `${message.address} holds ${queue.size} messages.`);
    }
    queue.add(message);
    return { outcome: 'confirmed' };
  }

  #become(isOpen: boolean): void {
    if (this.#isOpen === isOpen) return;
    this.#isOpen = isOpen;
    for (const listener of this.#listeners) listener();
  }

  #declared(name: string): MemoryQueue {
    let queue = this.#queues.get(name);
    if (!queue) this.#queues.set(name, (queue = new MemoryQueue()));
    return queue;
  }
}

function refused(code: string, message: string): Extract<Published, { failure: unknown }> {
  return { outcome: 'refused', failure: { class: 'transient', code, message, notExecuted: true } };
}
