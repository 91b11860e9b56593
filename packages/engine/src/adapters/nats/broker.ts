import { type BrokerState, StateBoard } from '../../broker/state-board.ts';
import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Publication,
  Published,
  PublishOptions,
  Received,
} from '../../ports/broker.ts';
import { type NatsConsumer, StreamConsumer } from './consumer.ts';
import { type NatsOptions, type NatsSettings, readOptions } from './options.ts';
import { Publisher } from './publisher.ts';
import { Session } from './session.ts';
import { loadNats } from './library.ts';

export interface NatsBroker extends Broker {
  readonly state: BrokerState;
  /** Whether JetStream has a stream for this subject. False also while it does not answer. */
  hasStream(subject: string): Promise<boolean>;
  /** A source is a subject of some stream, or the name of one of `streams`. */
  consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<NatsConsumer>;
}

/**
 * NATS with JetStream, over one connection. A server that is away is no error: `open` tries once, and the tries go on behind
 * the scenes.
 */
export function nats(options: NatsOptions): NatsBroker {
  return new JetStreamBroker(readOptions(options));
}

class JetStreamBroker implements NatsBroker {
  readonly kind = 'nats';
  readonly capabilities: BrokerCapabilities;
  readonly #settings: NatsSettings;
  readonly #board: StateBoard;
  readonly #publisher: Publisher;
  readonly #consumers = new Set<StreamConsumer>();
  #session: Session | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: NatsSettings) {
    const { host, onState, confirms } = settings;
    const { clock, log } = host;
    this.capabilities = {
      returnsUnroutable: confirms,
      confirms,
      typedHeaders: false,
      redeliversInOrder: false,
      acknowledgesOutOfOrder: true,
      marksRedelivered: true,
      sharesByMessage: true,
      // As servers come. What this one takes is asked of it for each message.
      maxMessageBytes: 1024 * 1024,
    };
    this.#settings = settings;
    this.#board = new StateBoard({ onState, log, nowMs: () => clock.now() });
    this.#publisher = new Publisher(clock, (why) => this.#session?.jetStreamAway(why));
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
    await loadNats();
    await this.#closing;
    if (!this.#session) {
      this.#session = new Session({
        settings: this.#settings,
        board: this.#board,
        publisher: this.#publisher,
        consumers: this.#consumers,
      });
      this.#opening = this.#session.open();
    }
    await this.#opening;
  }

  /** Ends consumers for good: what nobody has acknowledged is given back to its stream. */
  async close(): Promise<void> {
    if (this.#session) this.#closing = this.#end(this.#session);
    await this.#closing;
  }

  async #end(session: Session): Promise<void> {
    this.#session = undefined;
    await Promise.all(Array.from(this.#consumers, (consumer) => consumer.stop()));
    this.#publisher.detach('The broker was closed.');
    await session.close();
    this.#board.set({ state: 'closed', why: undefined, isReady: false });
  }

  async hasStream(subject: string): Promise<boolean> {
    return (await this.#session?.lookUp(subject)) ?? false;
  }

  publish(messages: readonly Publication[], options: PublishOptions): Promise<Published>[] {
    return this.#publisher.publish(messages, options);
  }

  async consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<NatsConsumer> {
    const wish = { source, limits, receive };
    const consumer = new StreamConsumer(wish, this.#settings, (one) => {
      this.#consumers.delete(one);
    });
    this.#consumers.add(consumer);
    await this.#session?.attach(consumer);
    return consumer;
  }
}
