import type { ChannelModel } from 'amqplib';
import type { Clock } from 'redrive';
import type { Publication, Published, PublishOptions } from '../../ports/broker.ts';
import { prepare, type WireLimits } from './checks.ts';
import { textOf, unpublished } from '../../broker/answers.ts';
import { messageLimitIn } from './failures.ts';
import { frameBytesOf } from './internals.ts';
import { type Parcel, PublishChannel, type PublishChannelEvents } from './publish-channel.ts';

/** The broker works on channels side by side, and one that it closes takes only its own messages along. */
const MAX_CHANNELS = 4;
const MAX_ALONE = 16;
/** A confirm has at least this share of the time: sent with less, a message would be sent again although it arrived. */
const CONFIRM_SHARE = 0.5;

/** A channel, or why there is none. */
type Opening = Promise<PublishChannel | string>;

/** A message that waits to be sent alone. */
interface Waiting {
  readonly parcel: Parcel;
  readonly timeoutMs: number;
  readonly sinceMs: number;
}

/** Publishes over a few confirm channels, which are opened as they are needed. */
export class Publisher {
  readonly #clock: Clock;
  readonly #events: PublishChannelEvents;
  readonly #channels = new Set<PublishChannel>();
  readonly #waiting: Waiting[] = [];
  #limits: WireLimits = { frameBytes: 0, messageBytes: Number.MAX_SAFE_INTEGER };
  #model: ChannelModel | undefined;
  #opening: Opening | undefined;
  #carriers = 0;
  #away = away('The broker is not open.');
  #blocked: Published | undefined;
  /** When it was last blocked, by the monotonic clock. */
  #blockedUntilMs = -Infinity;

  constructor(clock: Clock, returned: (queue: string) => void) {
    this.#clock = clock;
    this.#events = {
      returned,
      ended: (channel, why) => {
        this.#channels.delete(channel);
        this.#learn(why ?? '');
      },
      unconfirmed: (sinceMs, timeoutMs) => this.#unconfirmed(sinceMs, timeoutMs),
    };
  }

  async attach(model: ChannelModel): Promise<void> {
    this.#model = model;
    // The broker may have come back with another limit for messages. It says so when one is over it.
    this.#limits = { frameBytes: frameBytesOf(model), messageBytes: Number.MAX_SAFE_INTEGER };
    this.#blocked = undefined;
    await this.#open();
  }

  detach(why: string): void {
    this.#model = undefined;
    this.#opening = undefined;
    this.#channels.clear();
    this.#away = away(why);
  }

  setBlocked(why: string | undefined): void {
    const sentence = `The broker takes no messages for now: ${why}.`;
    if (this.#blocked && why === undefined) this.#blockedUntilMs = this.#clock.monotonic();
    this.#blocked = why === undefined ? undefined : unpublished('away', 'BROKER_BLOCKED', sentence);
  }

  publish(
    messages: readonly Publication[],
    { timeoutMs, alone = false }: PublishOptions,
  ): Promise<Published>[] {
    const obstacle = this.#model ? this.#blocked : this.#away;
    if (obstacle) return messages.map(() => Promise.resolve(obstacle));
    const parcels: Parcel[] = [];
    const answers = messages.map((message): Promise<Published> => {
      const ready = prepare(message, this.#limits);
      if (ready.outcome === 'impossible') return Promise.resolve(ready);
      return new Promise((answer) => {
        parcels.push({ message, ready, answer });
      });
    });
    if (alone) this.#sendAlone(parcels, timeoutMs);
    else if (parcels.length > 0) this.#send(parcels, timeoutMs);
    return answers;
  }

  #send(parcels: readonly Parcel[], timeoutMs: number): void {
    let idlest: PublishChannel | undefined;
    for (const channel of this.#channels) {
      if (!idlest || channel.load < idlest.load) idlest = channel;
    }
    if (!idlest) return void this.#sendOver(this.#open(), parcels, timeoutMs);
    // For the next ones: these can go at once.
    if (idlest.load > 0 && this.#channels.size < MAX_CHANNELS) void this.#open();
    idlest.send(parcels, timeoutMs);
  }

  /** Each over a channel on which there is nothing else. */
  #sendAlone(parcels: readonly Parcel[], timeoutMs: number): void {
    const sinceMs = this.#clock.monotonic();
    for (const parcel of parcels) {
      this.#waiting.push({ parcel, timeoutMs, sinceMs });
      if (this.#carriers === MAX_ALONE) continue;
      this.#carriers += 1;
      void this.#carry();
    }
  }

  /** Sends one after the other, as long as some wait. Only a channel that carried one well carries the next. */
  async #carry(): Promise<void> {
    let channel: PublishChannel | undefined;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      channel = await this.#sendNext(next, channel);
    }
    this.#carriers -= 1;
    channel?.retire();
  }

  async #sendNext(
    { parcel, timeoutMs, sinceMs }: Waiting,
    last: PublishChannel | undefined,
  ): Promise<PublishChannel | undefined> {
    const latestMs = sinceMs + timeoutMs * (1 - CONFIRM_SHARE);
    const waitMs = latestMs - this.#clock.monotonic();
    if (waitMs <= 0) {
      parcel.answer(away(NO_TURN));
      return last;
    }
    const opening = last?.isOpen ? Promise.resolve(last) : this.#openAnother();
    const channel = await this.#within(opening, waitMs);
    if (typeof channel === 'string') {
      // Should it be there after all, nobody needs it.
      void opening.then((one) => typeof one === 'string' || one.retire());
      parcel.answer(away(channel));
      return undefined;
    }
    const leftMs = sinceMs + timeoutMs - this.#clock.monotonic();
    return new Promise((resolve) => {
      const answer = (published: Published) => {
        parcel.answer(published);
        resolve(channel);
      };
      channel.send([{ ...parcel, answer }], leftMs);
    });
  }

  /** Over a channel that is not open yet: what waits for it too long is answered without it. */
  async #sendOver(opening: Opening, parcels: readonly Parcel[], timeoutMs: number): Promise<void> {
    const endsAtMs = this.#clock.monotonic() + timeoutMs;
    const channel = await this.#within(opening, timeoutMs * (1 - CONFIRM_SHARE));
    if (typeof channel === 'string') for (const { answer } of parcels) answer(away(channel));
    else channel.send(parcels, endsAtMs - this.#clock.monotonic());
  }

  /** A broker that takes nothing confirms nothing either: that says nothing of where the message goes. */
  #unconfirmed(sinceMs: number, timeoutMs: number): Published {
    const sentence = `The broker did not confirm the message within ${timeoutMs} ms.`;
    return this.#blocked || this.#blockedUntilMs >= sinceMs
      ? unpublished('lost', 'BROKER_BLOCKED', `${sentence} It takes no messages for now.`)
      : unpublished('unknown', 'CONFIRM_TIMEOUT', sentence);
  }

  #within(opening: Opening, timeoutMs: number): Opening {
    return new Promise((resolve) => {
      const late = () => resolve(`The broker opened no channel within ${timeoutMs} ms.`);
      const timer = this.#clock.setTimer(late, timeoutMs);
      void opening.then((channel) => {
        this.#clock.clearTimer(timer);
        resolve(channel);
      });
    });
  }

  /** One more that all use. Who asks meanwhile gets the same. */
  #open(): Opening {
    const opening = (this.#opening ??= this.#openAnother());
    void opening.then((channel) => {
      if (this.#opening !== opening) return;
      this.#opening = undefined;
      if (typeof channel !== 'string') this.#channels.add(channel);
    });
    return opening;
  }

  async #openAnother(): Opening {
    if (!this.#model) return NOT_THERE;
    try {
      return await PublishChannel.open(this.#model, this.#clock, this.#events);
    } catch (error) {
      return `The broker opened no channel: ${textOf(error)}`;
    }
  }

  /** A message over the broker's limit closes its channel, and the broker says what the limit is. */
  #learn(why: string): void {
    const messageBytes = messageLimitIn(why);
    if (messageBytes !== undefined) this.#limits = { ...this.#limits, messageBytes };
  }
}

const NOT_THERE = 'The broker is not there.';
const NO_TURN = 'Too many messages that have to go alone were before it: it was not sent.';

function away(why: string): Published {
  return unpublished('away', 'BROKER_AWAY', why);
}
