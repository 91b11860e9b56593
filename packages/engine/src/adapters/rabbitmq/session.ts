import type { ChannelModel } from 'amqplib';
import { Backoff } from '../../broker/backoff.ts';
import type { SteadyConsumer } from './consumer.ts';
import { keepTables } from './internals.ts';
import { Link } from './link.ts';
import type { RabbitSettings } from './options.ts';
import type { Publisher } from './publisher.ts';
import type { Report, StateBoard } from '../../broker/state-board.ts';
import type { Declarer } from './topology.ts';

interface Parts {
  settings: RabbitSettings;
  board: StateBoard;
  publisher: Publisher;
  declarer: Declarer;
  consumers: ReadonlySet<SteadyConsumer>;
}

/** How long publishing waits for the connection that consumes. */
const PATIENCE_MS = 2000;

/** From one `open` to its `close`: both connections, and what they bring up and down. */
export class Session {
  readonly #parts: Parts;
  readonly #publishing: Link;
  readonly #consuming: Link;
  readonly #backoff: Backoff;
  readonly #declaring = new Set<string>();
  #model: ChannelModel | undefined;
  #timer: unknown;
  #patience: unknown;
  #blocked: string | undefined;
  #fault: string | undefined;

  constructor(parts: Parts) {
    const { settings, publisher } = parts;
    const { policy, host } = settings;
    const changed = () => this.report();
    this.#parts = parts;
    this.#backoff = new Backoff(policy, host.clock, host.random);
    this.#publishing = new Link('publisher', settings, {
      up: (model) => this.#beginPublishing(model),
      down: (why) => {
        this.#blocked = undefined;
        publisher.detach(why);
      },
      blocked: (why) => this.#setBlocked(why),
      changed,
    });
    this.#consuming = new Link('consumer', settings, {
      up: (model) => this.#beginConsuming(model),
      down: (why) => this.#endConsuming(why),
      // Nothing is published there.
      blocked: () => undefined,
      changed,
    });
  }

  /** The connection for consumers, while there is one. */
  get model(): ChannelModel | undefined {
    return this.#model;
  }

  async open(): Promise<void> {
    this.report();
    await Promise.all([this.#publishing.open(), this.#consuming.open()]);
  }

  async close(): Promise<void> {
    const { clock } = this.#parts.settings.host;
    clock.clearTimer(this.#timer);
    clock.clearTimer(this.#patience);
    await Promise.all([this.#publishing.close(), this.#consuming.close()]);
  }

  /** A message found no queue there that should be there. */
  async declareAgain(queue: string): Promise<void> {
    const { declarer } = this.#parts;
    if (!this.#model || !declarer.has(queue) || this.#declaring.has(queue)) return;
    this.#declaring.add(queue);
    await declarer.declareQueue(this.#model, queue);
    this.#declaring.delete(queue);
  }

  /** What comes in goes first, as far as that is a matter of a moment: see `CatchUp`. */
  async #beginPublishing(model: ChannelModel): Promise<void> {
    const { clock } = this.#parts.settings.host;
    clock.clearTimer(this.#patience);
    this.#patience = clock.setTimer(() => this.#losePatience(), PATIENCE_MS, true);
    // Where one connection can be had, so can the other.
    this.#consuming.hurry();
    await this.#parts.publisher.attach(model);
  }

  #losePatience(): void {
    this.#patience = undefined;
    this.report();
  }

  async #beginConsuming(model: ChannelModel): Promise<void> {
    this.#publishing.hurry();
    keepTables(model);
    this.#model = model;
    await this.#declareAll(model);
    // One that comes meanwhile has seen the model and attaches by itself.
    await Promise.all(Array.from(this.#parts.consumers, (consumer) => consumer.attach(model)));
  }

  #endConsuming(why: string): void {
    this.#model = undefined;
    this.#parts.settings.host.clock.clearTimer(this.#timer);
    for (const consumer of this.#parts.consumers) consumer.detach(why);
  }

  /** What cannot be had now may be had later: somebody makes it, or gives the right to. */
  async #declareAll(model: ChannelModel): Promise<void> {
    const { declarer, settings } = this.#parts;
    this.#fault = await declarer.declareAll(model);
    if (this.#model !== model) return;
    this.report();
    if (this.#fault === undefined) return this.#backoff.works();
    const again = () => void this.#declareAll(model);
    this.#timer = settings.host.clock.setTimer(again, this.#backoff.nextDelayMs());
  }

  #setBlocked(why: string | undefined): void {
    const { publisher, settings } = this.#parts;
    this.#blocked = why;
    publisher.setBlocked(why);
    if (why === undefined) settings.host.log.info({}, 'the broker takes messages again');
    else settings.host.log.warn({ why }, 'the broker takes no messages for now');
    this.report();
  }

  /** Tells what has become of it. */
  report(): void {
    this.#parts.board.set(this.#state());
  }

  #state(): Report {
    const [out, back] = [this.#publishing.state, this.#consuming.state];
    const { consumers } = this.#parts;
    const isCaughtUp = Array.from(consumers).every((consumer) => consumer.isCaughtUp);
    const mayCatchUp = consumers.size > 0 && !back.isUp && this.#patience !== undefined;
    const isReady = out.isUp && this.#blocked === undefined && isCaughtUp && !mayCatchUp;
    if (!out.isUp || !back.isUp) return { state: 'connecting', why: out.why ?? back.why, isReady };
    if (this.#blocked !== undefined) return { state: 'blocked', why: this.#blocked, isReady };
    return { state: 'connected', why: this.#fault, isReady };
  }
}
