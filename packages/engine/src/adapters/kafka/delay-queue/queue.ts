import { textOf } from '../../../broker/answers.ts';
import { checkEntries } from '../../../delay-queue/checks.ts';
import { closedError, incapable } from '../../../delay-queue/faults.ts';
import { EngineError, isEngineError } from '../../../errors.ts';
import type {
  DelayConsumer,
  DelayedEntry,
  DelayHandler,
  DelayLimits,
  DelayQueue,
  DelayQueueCapabilities,
} from '../../../ports/delay-queue.ts';
import { Cluster } from '../client/cluster.ts';
import { DeniedError } from '../client/errors.ts';
import { Producer } from '../client/producer.ts';
import { BrokerClock } from './broker-clock.ts';
import { KafkaDelayConsumer } from './consumer.ts';
import { recordOf } from './entry.ts';
import {
  type KafkaDelayQueueOptions,
  type KafkaDelayQueueSettings,
  readDelayOptions,
} from './options.ts';
import { Topics } from './topics.ts';
import { loadKafka } from '../client/library.ts';

export interface KafkaDelayQueue extends DelayQueue {
  /** How often an entry of this delay is written until it is handed over. */
  writesOf(delayMs: number): number;
  /** Ends it as a killed process ends. For tests. */
  crash(): Promise<void>;
}

/** A delay queue on Kafka 3.0 and later: see docs/guides/kafka.md for its topics. */
export function kafkaDelayQueue(options: KafkaDelayQueueOptions): KafkaDelayQueue {
  return new TopicDelayQueue(readDelayOptions(options));
}

interface Opened {
  readonly cluster: Cluster;
  readonly producer: Producer;
  readonly clock: BrokerClock;
}

const SCHEDULE_MS = 30_000;

class TopicDelayQueue implements KafkaDelayQueue {
  /** A log can neither look for an id nor take one record out, and what is done behind the first that is not is not known. */
  readonly capabilities: DelayQueueCapabilities = {
    deduplicates: false,
    cancels: false,
    counts: false,
    durable: true,
  };
  readonly #settings: KafkaDelayQueueSettings;
  readonly #topics: Topics;
  readonly #consumers = new Set<KafkaDelayConsumer>();
  #opened: Opened | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: KafkaDelayQueueSettings) {
    this.#settings = settings;
    this.#topics = new Topics(settings);
  }

  writesOf(delayMs: number): number {
    return this.#topics.tiers.writesOf(delayMs);
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<void> {
    await loadKafka();
    await this.#closing;
    if (this.#opened) return;
    const cluster = new Cluster(this.#settings);
    try {
      await cluster.ping();
      await this.#topics.prepare(cluster);
    } catch (error) {
      await cluster.close();
      if (error instanceof DeniedError)
        throw new EngineError('STORE_DENIED', `Kafka: ${error.message}`, { cause: error });
      throw isEngineError(error) ? error : unavailable(textOf(error), error);
    }
    const producer = new Producer(cluster);
    this.#opened = {
      cluster,
      producer,
      clock: new BrokerClock(cluster, producer, this.#topics.clock),
    };
  }

  async schedule(entries: readonly DelayedEntry[]): Promise<void> {
    checkEntries(entries);
    const { producer } = this.#use();
    const records = entries.map(({ id, key, payload, delayMs }) =>
      recordOf(
        this.#topics.tiers.topicFor(delayMs),
        {
          id: Buffer.from(id),
          key: key === undefined || key === id ? undefined : Buffer.from(key),
          payload: Buffer.from(payload.buffer, payload.byteOffset, payload.length),
        },
        { afterMs: delayMs },
      ),
    );
    try {
      await producer.sendAll(records, { timeoutMs: SCHEDULE_MS, insist: true });
    } catch (error) {
      throw unavailable(textOf(error), error);
    }
  }

  async consume(handler: DelayHandler, limits: DelayLimits): Promise<DelayConsumer> {
    const opened = this.#use();
    const parts = { settings: this.#settings, topics: this.#topics, ...opened };
    const consumer = new KafkaDelayConsumer(parts, handler, limits);
    this.#consumers.add(consumer);
    return {
      stop: async () => {
        await consumer.stop();
        this.#consumers.delete(consumer);
      },
    };
  }

  async cancel(): Promise<boolean[]> {
    throw incapable('cancel', 'cancels');
  }

  async depth(): Promise<number> {
    throw incapable('depth', 'counts');
  }

  async close(): Promise<void> {
    // Otherwise it would be open after that, and its connections would stay.
    await this.#opening?.catch(() => undefined);
    const opened = this.#opened;
    if (opened) {
      this.#opened = undefined;
      this.#closing = this.#end(opened);
    }
    await this.#closing;
  }

  async #end({ cluster }: Opened): Promise<void> {
    await Promise.all(Array.from(this.#consumers, (consumer) => consumer.stop()));
    this.#consumers.clear();
    await cluster.close();
  }

  async crash(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    for (const consumer of this.#consumers) consumer.crash();
    this.#consumers.clear();
    await opened?.cluster.close();
  }

  #use(): Opened {
    if (!this.#opened) throw closedError();
    return this.#opened;
  }
}

function unavailable(why: string, cause: unknown): EngineError {
  const message = `The call to Kafka failed: ${why.replace(/\.$/, '')}. Trying again is safe.`;
  return new EngineError('STORE_UNAVAILABLE', message, { cause });
}
