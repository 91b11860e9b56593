import type amqplib from 'amqplib';
import type { ChannelModel } from 'amqplib';
import { loadPeer } from '../../peer.ts';
import { Backoff } from '../../broker/backoff.ts';
import { textOf } from '../../broker/answers.ts';
import { whyNoConnection } from './failures.ts';
import { destroySocket, writeTogether } from './internals.ts';
import type { RabbitSettings } from './options.ts';
import type { LinkState } from '../../broker/state-board.ts';

/** How long the broker may take to say goodbye. */
const GOODBYE_MS = 2000;

interface LinkEvents {
  /** It may take a while, for what has to be there before the link counts as up. */
  up(model: ChannelModel): Promise<void> | void;
  down(why: string): void;
  /** The broker takes no messages for now; undefined: it does again. */
  blocked(why: string | undefined): void;
  changed(): void;
}

async function load(): Promise<typeof amqplib> {
  const { default: amqp } = await loadPeer(
    'The connection to RabbitMQ',
    'amqplib',
    () => import('amqplib'),
  );
  return amqp;
}

/** One connection that comes back by itself, until it is closed. */
export class Link {
  readonly #role: string;
  readonly #settings: RabbitSettings;
  readonly #events: LinkEvents;
  readonly #backoff: Backoff;
  #model: ChannelModel | undefined;
  #timer: unknown;
  #isClosed = false;
  #hasWarned = false;
  #state: LinkState = { isUp: false };

  constructor(role: string, settings: RabbitSettings, events: LinkEvents) {
    const { policy, host } = settings;
    this.#role = role;
    this.#settings = settings;
    this.#events = events;
    this.#backoff = new Backoff(policy, host.clock, host.random);
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Tries once, whatever comes of it; then goes on trying behind the scenes. */
  async open(): Promise<void> {
    // Nothing that passes: it is told to whoever opens, and not tried again.
    await load();
    await this.#try();
  }

  /** The broker is there, as somebody else knows: it is tried at once where it would have waited. */
  hurry(): void {
    if (this.#timer === undefined || this.#isClosed) return;
    this.#settings.host.clock.clearTimer(this.#timer);
    this.#tryAgain();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#settings.host.clock.clearTimer(this.#timer);
    const model = this.#model;
    if (model) await this.#sayGoodbye(model);
  }

  async #try(): Promise<void> {
    let model: ChannelModel;
    try {
      model = await this.#connect();
    } catch (error) {
      if (!this.#isClosed) this.#failed(whyNoConnection(error));
      return;
    }
    // Without a listener an error would end the process.
    model.on('error', () => undefined);
    if (this.#isClosed) return this.#sayGoodbye(model);
    await this.#begin(model);
  }

  async #connect(): Promise<ChannelModel> {
    const amqp = await load();
    const { connect, socket, connectTimeoutMs, name } = this.#settings;
    return amqp.connect(connect, {
      ...socket,
      timeout: connectTimeoutMs,
      noDelay: true,
      keepAlive: true,
      clientProperties: { connection_name: `${name} ${this.#role}` },
    });
  }

  async #begin(model: ChannelModel): Promise<void> {
    this.#model = model;
    writeTogether(model);
    model.on('close', (error) => {
      this.#ended(model, error ? textOf(error) : 'it was closed');
      // What the broker closed in order may still be answered. Anything else may never be.
      if (!isWordOfBroker(error)) destroySocket(model);
    });
    model.on('blocked', (reason) => this.#events.blocked(reason));
    model.on('unblocked', () => this.#events.blocked(undefined));
    // What a listener of ours throws must end neither the connection nor the process.
    model.on('handler-error', (error) =>
      this.#settings.host.log.error({ err: error }, 'a listener of the connection failed'),
    );
    this.#backoff.works();
    await this.#events.up(model);
    if (this.#model !== model) return;
    this.#set({ isUp: true });
    if (this.#hasWarned) this.#settings.host.log.info({ link: this.#role }, 'the broker is back');
    this.#hasWarned = false;
  }

  #ended(model: ChannelModel, why: string): void {
    if (this.#model !== model) return;
    this.#model = undefined;
    const sentence = `The connection to the broker was lost: ${why}`;
    this.#events.down(sentence);
    if (this.#isClosed) return this.#set({ isUp: false });
    this.#failed(sentence);
  }

  #failed(why: string): void {
    const { host } = this.#settings;
    const delayMs = this.#backoff.nextDelayMs();
    // Once per outage: the rest is repetition.
    host.log[this.#hasWarned ? 'debug' : 'warn'](
      { link: this.#role, why },
      'the broker is away: trying again',
    );
    this.#hasWarned = true;
    this.#set({ isUp: false, why });
    this.#timer = host.clock.setTimer(() => this.#tryAgain(), delayMs);
  }

  #tryAgain(): void {
    this.#timer = undefined;
    void this.#try();
  }

  #set(state: LinkState): void {
    this.#state = state;
    this.#events.changed();
  }

  /** In order where the other side still answers. */
  async #sayGoodbye(model: ChannelModel): Promise<void> {
    const { clock } = this.#settings.host;
    // It rejects where it is closed already.
    const goodbye = model.close().catch(() => undefined);
    let timer: unknown;
    const enough = new Promise<void>((resolve) => {
      timer = clock.setTimer(resolve, GOODBYE_MS);
    });
    await Promise.race([goodbye, enough]);
    clock.clearTimer(timer);
    this.#ended(model, 'closed');
    destroySocket(model);
  }
}

/** With the code of a reply; an error of the system has one that is a text. */
function isWordOfBroker(error: Error | undefined): boolean {
  return typeof (error as { code?: unknown } | undefined)?.code === 'number';
}
