import type { ChannelModel } from 'amqplib';
import type { ConsumeLimits, Consumer, Received } from '../../ports/broker.ts';
import { Backoff } from '../../broker/backoff.ts';
import { CatchUp } from './catch-up.ts';
import { textOf } from '../../broker/answers.ts';
import type { RabbitSettings } from './options.ts';
import { Prefetch } from './prefetch.ts';
import type { Owner, Tag } from './received.ts';
import { Subscription } from './subscription.ts';
import type { Declarer } from './topology.ts';

/** `waiting`: for the broker, or for the queue to be there. */
export interface RabbitConsumerState {
  readonly state: 'waiting' | 'consuming' | 'stopped';
  readonly why?: string;
}

export interface RabbitConsumer extends Consumer {
  readonly state: RabbitConsumerState;
}

interface Wish {
  source: string;
  limits: ConsumeLimits;
  receive: (message: Received) => void;
}

interface ConsumerEvents {
  stopped: (consumer: SteadyConsumer) => void;
  /** It has caught up, or has to anew. */
  changed: () => void;
}

/** Consumes a queue again and again, over whichever connection there is, until it is stopped. */
export class SteadyConsumer implements RabbitConsumer {
  readonly #wish: Wish;
  readonly #settings: RabbitSettings;
  readonly #declarer: Declarer;
  readonly #prefetch: Prefetch;
  readonly #backoff: Backoff;
  readonly #events: ConsumerEvents;
  #catchUp: CatchUp | undefined;
  #model: ChannelModel | undefined;
  #subscription: Subscription | undefined;
  #timer: unknown;
  #state: RabbitConsumerState = { state: 'waiting' };
  #saidWhy: string | undefined;

  constructor(wish: Wish, settings: RabbitSettings, declarer: Declarer, events: ConsumerEvents) {
    this.#wish = wish;
    this.#settings = settings;
    this.#declarer = declarer;
    this.#events = events;
    this.#prefetch = new Prefetch(wish.limits);
    this.#backoff = new Backoff(settings.policy, settings.host.clock, settings.host.random);
  }

  get state(): RabbitConsumerState {
    return this.#state;
  }

  /** What the broker has handed over before is taken in, as far as it is there. */
  get isCaughtUp(): boolean {
    return this.#catchUp?.isOver ?? true;
  }

  /** There is a connection. Resolves after the first try, whatever comes of it. */
  async attach(model: ChannelModel): Promise<void> {
    if (this.#state.state === 'stopped' || this.#model === model) return;
    this.#model = model;
    this.#catchUp?.end();
    this.#catchUp = new CatchUp(this.#settings.host.clock, this.#events.changed);
    this.#events.changed();
    await this.#try();
  }

  /** The connection is gone, and with it what came over it. */
  detach(why: string): void {
    this.#model = undefined;
    this.#catchUp?.end();
    this.#settings.host.clock.clearTimer(this.#timer);
    void this.#subscription?.close();
    this.#subscription = undefined;
    if (this.#state.state !== 'stopped') this.#state = { state: 'waiting', why };
  }

  async ack(messages: readonly Received[]): Promise<void> {
    for (const [owner, own] of byOwner(messages)) owner.ack(own);
    this.#catchUp?.settled(messages);
  }

  async requeue(messages: readonly Received[]): Promise<void> {
    for (const [owner, own] of byOwner(messages)) owner.requeue(own);
    this.#catchUp?.settled(messages);
  }

  drain(): void {
    this.#subscription?.drain();
  }

  async stop(): Promise<void> {
    this.#state = { state: 'stopped' };
    this.#settings.host.clock.clearTimer(this.#timer);
    this.#catchUp?.end();
    this.#events.stopped(this);
    await this.#subscription?.close();
  }

  async #try(): Promise<void> {
    const model = this.#model;
    if (!model) return;
    const fault = await this.#declarer.declareQueue(model, this.#wish.source);
    if (!this.#isWanted(model)) return;
    if (fault) return this.#failed(fault);
    await this.#subscribe(model);
  }

  async #subscribe(model: ChannelModel): Promise<void> {
    const { source, limits, receive } = this.#wish;
    let end: { why: string | undefined } | undefined;
    let subscription: Subscription | undefined;
    try {
      subscription = await Subscription.open(model, source, limits, this.#prefetch, {
        receive: (message) => {
          if (!this.#isWanted(model)) return;
          this.#catchUp?.received(message);
          receive(message);
        },
        ended: (why) => {
          end = { why };
          if (subscription) this.#ended(subscription, why);
        },
        drained: () => void this.#renew(),
      });
    } catch (error) {
      if (this.#isWanted(model)) this.#failed(textOf(error));
      return;
    }
    if (!this.#isWanted(model)) return subscription.close();
    this.#subscription = subscription;
    this.#state = { state: 'consuming' };
    this.#saidWhy = undefined;
    this.#backoff.works();
    // It may be over before it was known to have begun.
    if (end) this.#ended(subscription, end.why);
  }

  /** With another prefetch. The old channel is closed first, so that what it had is back in its place. */
  async #renew(): Promise<void> {
    const model = this.#model;
    const old = this.#subscription;
    this.#subscription = undefined;
    await old?.close();
    if (model && this.#isWanted(model)) await this.#subscribe(model);
  }

  #isWanted(model: ChannelModel): boolean {
    return this.#model === model && this.#state.state !== 'stopped';
  }

  #ended(subscription: Subscription, why: string | undefined): void {
    if (this.#subscription !== subscription) return;
    this.#subscription = undefined;
    if (this.#state.state === 'stopped') return;
    this.#state = { state: 'waiting' };
    // Where the connection went away, the next one brings the next try.
    if (this.#model && why !== undefined) this.#failed(why);
  }

  #failed(why: string): void {
    const { log, clock } = this.#settings.host;
    this.#state = { state: 'waiting', why };
    // Nothing comes for now: that must hold up nobody.
    this.#catchUp?.end();
    // Once per cause: the rest is repetition.
    if (this.#saidWhy !== why)
      log.warn({ queue: this.#wish.source, why }, 'not consuming: trying again');
    this.#saidWhy = why;
    this.#timer = clock.setTimer(() => void this.#try(), this.#backoff.nextDelayMs());
  }
}

function byOwner(messages: readonly Received[]): Map<Owner, Received[]> {
  return Map.groupBy(messages, ({ tag }) => (tag as Tag).owner);
}
