import { textOf, unpublished } from '../../../broker/answers.ts';
import { Backoff } from '../../../broker/backoff.ts';
import { type BrokerState, StateBoard } from '../../../broker/state-board.ts';
import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Publication,
  Published,
  PublishOptions,
  Received,
} from '../../../ports/broker.ts';
import { Cluster } from '../client/cluster.ts';
import { Producer } from '../client/producer.ts';
import { type KafkaConsumer, TopicConsumer } from './consumer.ts';
import { type KafkaOptions, type KafkaSettings, readOptions } from './options.ts';
import { publishTo } from './publisher.ts';
import { loadKafka } from '../client/library.ts';

export interface KafkaBroker extends Broker {
  readonly state: BrokerState;
  /** Whether the cluster has this topic. False also while it does not answer. */
  hasTopic(topic: string): Promise<boolean>;
  consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<KafkaConsumer>;
}

/**
 * Kafka 3.0 and later. A cluster that is away is no error: `open` tries once, and the tries go on behind the scenes.
 */
export function kafka(options: KafkaOptions): KafkaBroker {
  return new ClusterBroker(readOptions(options));
}

/** What a message may have so that a broker with `message.max.bytes` as it comes takes it: 1 MiB, with what is around it. */
const MAX_MESSAGE_BYTES = 1_000_000;
const LOOK_EVERY_MS = 5000;

interface Session {
  readonly cluster: Cluster;
  readonly producer: Producer;
  readonly backoff: Backoff;
  timer?: unknown;
  isLooking: boolean;
}

class ClusterBroker implements KafkaBroker {
  readonly kind = 'kafka';
  readonly capabilities: BrokerCapabilities = {
    returnsUnroutable: true,
    confirms: true,
    typedHeaders: false,
    redeliversInOrder: true,
    acknowledgesOutOfOrder: false,
    marksRedelivered: false,
    sharesByMessage: false,
    maxMessageBytes: MAX_MESSAGE_BYTES,
  };
  readonly #settings: KafkaSettings;
  readonly #board: StateBoard;
  readonly #consumers = new Set<TopicConsumer>();
  #session: Session | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: KafkaSettings) {
    const { host, onState } = settings;
    this.#settings = settings;
    this.#board = new StateBoard({ onState, log: host.log, nowMs: () => host.clock.now() });
  }

  get state(): BrokerState {
    return this.#board.current;
  }

  get isReady(): boolean {
    return this.#board.isReady;
  }

  watch(listener: () => void): () => void {
    return this.#board.watch(listener);
  }

  async open(): Promise<void> {
    await loadKafka();
    await this.#closing;
    if (!this.#session) {
      const { policy, host } = this.#settings;
      const cluster = new Cluster(this.#settings);
      const backoff = new Backoff(policy, host.clock, host.random);
      const session = { cluster, producer: new Producer(cluster), backoff, isLooking: false };
      cluster.onUnreachable = () => void this.#look(session);
      this.#session = session;
      this.#board.set({ state: 'connecting', why: undefined, isReady: false });
      this.#opening = this.#look(session);
    }
    await this.#opening;
  }

  /** Ends consumers for good: what nobody has acknowledged stays in the log. */
  async close(): Promise<void> {
    if (this.#session) this.#closing = this.#end(this.#session);
    await this.#closing;
  }

  async #end(session: Session): Promise<void> {
    this.#session = undefined;
    this.#settings.host.clock.clearTimer(session.timer);
    await Promise.all(Array.from(this.#consumers, (consumer) => consumer.stop()));
    this.#board.set({ state: 'closed', why: undefined, isReady: false });
    await session.cluster.close();
  }

  async hasTopic(topic: string): Promise<boolean> {
    try {
      const infos = await this.#session?.cluster.topics([topic], true);
      return infos?.get(topic)?.state === 'found';
    } catch {
      return false;
    }
  }

  publish(messages: readonly Publication[], options: PublishOptions): Promise<Published>[] {
    const session = this.#session;
    if (!session || !this.isReady) {
      const why = this.state.why ?? 'The broker is not open.';
      const away = unpublished('away', 'BROKER_AWAY', why);
      return messages.map(() => Promise.resolve(away));
    }
    return publishTo(session.producer, messages, options, () => this.isReady);
  }

  async consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<KafkaConsumer> {
    const consumer = new TopicConsumer({ source, limits, receive }, this.#settings, (one) => {
      this.#consumers.delete(one);
    });
    this.#consumers.add(consumer);
    if (this.#session && this.isReady) await consumer.attach(this.#session.cluster);
    return consumer;
  }

  /** Whether any broker answers; then again later, and sooner when one could not be reached. */
  async #look(session: Session): Promise<void> {
    if (session.isLooking || this.#session !== session) return;
    session.isLooking = true;
    const { clock } = this.#settings.host;
    clock.clearTimer(session.timer);
    let nextMs = LOOK_EVERY_MS;
    try {
      await session.cluster.ping();
      if (this.#session !== session) return;
      session.backoff.works();
      this.#board.set({ state: 'connected', why: undefined, isReady: true });
      const { cluster } = session;
      await Promise.all(Array.from(this.#consumers, (consumer) => consumer.attach(cluster)));
    } catch (error) {
      if (this.#session !== session) return;
      const why = textOf(error);
      if (this.isReady || this.state.why === undefined) {
        this.#settings.host.log.warn({ why }, 'Kafka is away: trying again');
      }
      this.#board.set({ state: 'connecting', why, isReady: false });
      nextMs = session.backoff.nextDelayMs();
    } finally {
      session.isLooking = false;
    }
    session.timer = clock.setTimer(() => void this.#look(session), nextMs, true);
  }
}
