import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Consumer,
  Publication,
  Published,
  Received,
} from '../ports/broker.ts';

/** A broker in this process, for tests: it keeps what is published, and hands out what is put into it. */
export interface TestBroker extends Broker {
  /** Every message that was taken over, oldest first. */
  readonly published: readonly Publication[];
  /** What becomes of a message; all are confirmed unless this is replaced. */
  answer: (message: Publication) => Published | Promise<Published>;
  /** Puts a message into a source, for whoever consumes it. */
  put(source: string, message: Partial<Omit<Received, 'tag' | 'redelivered'>>): void;
  /** Messages of a source that nobody has acknowledged. */
  unacknowledged(source: string): number;
}

export function createTestBroker(kind = 'queue'): TestBroker {
  return new InProcessBroker(kind);
}

class InProcessBroker implements TestBroker {
  readonly kind: string;
  readonly capabilities: BrokerCapabilities = { returnsUnroutable: true, confirms: true };
  readonly published: Publication[] = [];
  readonly #sources = new Map<string, Source>();
  answer: (message: Publication) => Published | Promise<Published> = () => confirmed;

  constructor(kind: string) {
    this.kind = kind;
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async publish(messages: readonly Publication[]): Promise<Published[]> {
    const outcomes = await Promise.all(messages.map(async (message) => this.answer(message)));
    for (const [i, message] of messages.entries()) {
      if (outcomes[i]?.outcome === 'confirmed') this.published.push(message);
    }
    return outcomes;
  }

  async consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<Consumer> {
    return this.#source(source).consume(limits, receive);
  }

  put(source: string, message: Partial<Omit<Received, 'tag' | 'redelivered'>>): void {
    this.#source(source).put(message);
  }

  unacknowledged(source: string): number {
    return this.#source(source).size;
  }

  #source(name: string): Source {
    let source = this.#sources.get(name);
    if (!source) this.#sources.set(name, (source = new Source()));
    return source;
  }
}

const confirmed: Published = { outcome: 'confirmed' };

interface Subscription {
  limits: ConsumeLimits;
  receive: (message: Received) => void;
  /** Handed over and not acknowledged. */
  held: Set<Received>;
}

class Source {
  readonly #waiting: Received[] = [];
  readonly #subscriptions = new Set<Subscription>();
  #lastTag = 0;

  get size(): number {
    let size = this.#waiting.length;
    for (const { held } of this.#subscriptions) size += held.size;
    return size;
  }

  put(message: Partial<Omit<Received, 'tag' | 'redelivered'>>): void {
    this.#lastTag += 1;
    const defaults = { payload: new Uint8Array(), headers: {} };
    this.#waiting.push({ ...defaults, ...message, tag: this.#lastTag, redelivered: false });
    this.#handOut();
  }

  consume(limits: ConsumeLimits, receive: (message: Received) => void): Consumer {
    const subscription: Subscription = { limits, receive, held: new Set() };
    this.#subscriptions.add(subscription);
    // Not before its consumer has been returned.
    queueMicrotask(() => this.#handOut());
    const back = (messages: Iterable<Received>) => {
      for (const message of [...messages].toReversed()) {
        if (subscription.held.delete(message))
          this.#waiting.unshift({ ...message, redelivered: true });
      }
      queueMicrotask(() => this.#handOut());
    };
    return {
      ack: async (messages) => {
        for (const message of messages) subscription.held.delete(message);
        this.#handOut();
      },
      requeue: async (messages) => back(messages),
      stop: async () => {
        this.#subscriptions.delete(subscription);
        back(subscription.held);
      },
    };
  }

  #handOut(): void {
    for (const { limits, receive, held } of this.#subscriptions) {
      while (this.#waiting.length > 0 && held.size < limits.maxMessages) {
        const bytes = [...held].reduce((sum, { payload }) => sum + payload.length, 0);
        const message = this.#waiting[0]!;
        if (held.size > 0 && bytes + message.payload.length > limits.maxBytes) break;
        this.#waiting.shift();
        held.add(message);
        receive(message);
      }
    }
  }
}
