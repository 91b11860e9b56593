import { ConfigError } from 'redrive';
import { type MemoryBroker, memoryBroker } from '../adapters/memory/index.ts';
import type {
  Broker,
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
  /** Whether it takes messages: true unless a test says otherwise. */
  isReady: boolean;
  /** Puts a message into a source, for whoever consumes it. */
  put(source: string, message: Partial<Omit<Publication, 'address'>>): void;
  /** Messages of a source that nobody has acknowledged. */
  unacknowledged(source: string): number;
}

export function createTestBroker(kind = 'queue'): TestBroker {
  if (typeof kind !== 'string') {
    const message = `The kind of a test broker is a text, such as createTestBroker('queue').`;
    throw new ConfigError('INVALID_CONFIG', message);
  }
  return new RecordingBroker(kind);
}

class RecordingBroker implements TestBroker {
  readonly kind: string;
  readonly capabilities;
  readonly published: Publication[] = [];
  /** What is to be consumed lies here; what is published only in `published`. */
  readonly #sources: MemoryBroker;
  answer: (message: Publication) => Published | Promise<Published> = () => confirmed;
  readonly #listeners = new Set<() => void>();
  #isReady = true;

  constructor(kind: string) {
    this.kind = kind;
    this.#sources = memoryBroker({ kind, createQueues: true });
    this.capabilities = this.#sources.capabilities;
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  set isReady(isReady: boolean) {
    this.#isReady = isReady;
    for (const listener of this.#listeners) listener();
  }

  publish(messages: readonly Publication[]): Promise<Published>[] {
    return messages.map(async (message) => {
      const answer = await this.answer(message);
      if (answer.outcome === 'confirmed') this.published.push(message);
      return answer;
    });
  }

  consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<Consumer> {
    return this.#sources.consume(source, limits, receive);
  }

  /** At once, also before anybody has opened it: others publish there as they like. */
  put(source: string, message: Partial<Omit<Publication, 'address'>>): void {
    const publication = { payload: new Uint8Array(), headers: {}, ...message, address: source };
    void this.#sources.open();
    void this.#sources.publish([publication], { timeoutMs: PUT_MS });
  }

  unacknowledged(source: string): number {
    return this.#sources.depth(source);
  }
}

/** It takes none. */
const PUT_MS = 1000;
const confirmed: Published = { outcome: 'confirmed' };
