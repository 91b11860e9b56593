import type {
  Broker,
  BrokerCapabilities,
  ConsumeLimits,
  Publication,
  Published,
  PublishOptions,
  Received,
} from '../../ports/broker.ts';
import { type RabbitConsumer, SteadyConsumer } from './consumer.ts';
import { type RabbitOptions, type RabbitSettings, readOptions } from './options.ts';
import { Publisher } from './publisher.ts';
import { Session } from './session.ts';
import { type BrokerState, StateBoard } from '../../broker/state-board.ts';
import { Declarer } from './topology.ts';

export interface RabbitBroker extends Broker {
  /** Of both connections together. */
  readonly state: BrokerState;
  consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<RabbitConsumer>;
}

/**
 * RabbitMQ, over two connections: one that the broker blocks for what is published must not hold up acknowledgements. A
 * broker that is away is no error: `open` tries once, and the tries go on behind the scenes.
 */
export function rabbitmq(options: RabbitOptions): RabbitBroker {
  return new TwoLinkBroker(readOptions(options));
}

class TwoLinkBroker implements RabbitBroker {
  readonly kind = 'queue';
  readonly capabilities: BrokerCapabilities = {
    returnsUnroutable: true,
    confirms: true,
    typedHeaders: true,
    redeliversInOrder: true,
    acknowledgesOutOfOrder: true,
    marksRedelivered: true,
    sharesByMessage: true,
    maxMessageBytes: 128 * 1024 * 1024,
  };
  readonly #settings: RabbitSettings;
  readonly #board: StateBoard;
  readonly #declarer: Declarer;
  readonly #publisher: Publisher;
  readonly #consumers = new Set<SteadyConsumer>();
  #session: Session | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: RabbitSettings) {
    const { host, onState, topology } = settings;
    const { clock, log } = host;
    this.#settings = settings;
    this.#board = new StateBoard({ onState, log, nowMs: () => clock.now() });
    this.#declarer = new Declarer(topology, log);
    this.#publisher = new Publisher(clock, (queue) => void this.#session?.declareAgain(queue));
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
    await this.#closing;
    if (!this.#session) {
      this.#session = new Session({
        settings: this.#settings,
        board: this.#board,
        publisher: this.#publisher,
        declarer: this.#declarer,
        consumers: this.#consumers,
      });
      this.#opening = this.#session.open();
    }
    await this.#opening;
  }

  /** Ends consumers for good: what nobody has acknowledged goes back to its queue. */
  async close(): Promise<void> {
    if (this.#session) this.#closing = this.#end(this.#session);
    await this.#closing;
  }

  async #end(session: Session): Promise<void> {
    this.#session = undefined;
    this.#publisher.detach('The broker was closed.');
    // Not awaited: the end of the connection ends them too, also where nobody answers any more.
    for (const consumer of this.#consumers) void consumer.stop();
    await session.close();
    this.#board.set({ state: 'closed', why: undefined, isReady: false });
  }

  publish(messages: readonly Publication[], options: PublishOptions): Promise<Published>[] {
    return this.#publisher.publish(messages, options);
  }

  async consume(
    source: string,
    limits: ConsumeLimits,
    receive: (message: Received) => void,
  ): Promise<RabbitConsumer> {
    const wish = { source, limits, receive };
    const consumer = new SteadyConsumer(wish, this.#settings, this.#declarer, {
      stopped: (one) => this.#consumers.delete(one),
      changed: () => this.#session?.report(),
    });
    this.#consumers.add(consumer);
    const model = this.#session?.model;
    if (model) await consumer.attach(model);
    return consumer;
  }
}
