import type { ChannelModel } from 'amqplib';
import type { Clock } from 'redrive';
import type { Publication, Published, PublishOptions } from '../../ports/broker.ts';
import { prepare, type WireLimits } from './checks.ts';
import { messageLimitIn, textOf, unpublished } from './failures.ts';
import { frameBytesOf } from './internals.ts';
import { type Parcel, PublishChannel, type PublishChannelEvents } from './publish-channel.ts';

/** The broker works on channels side by side, and one that it closes takes only its own messages along. */
const MAX_CHANNELS = 4;
const MAX_ALONE = 16;

/** A channel, or why there is none. */
type Opening = Promise<PublishChannel | string>;

/** Publishes over a few confirm channels, which are opened as they are needed. */
export class Publisher {
  readonly #clock: Clock;
  readonly #events: PublishChannelEvents;
  readonly #channels = new Set<PublishChannel>();
  readonly #waiting: (() => void)[] = [];
  #limits: WireLimits = { frameBytes: 0, messageBytes: Number.MAX_SAFE_INTEGER };
  #model: ChannelModel | undefined;
  #opening: Opening | undefined;
  #alone = 0;
  #away = away('The broker is not open.');
  #blocked: Published | undefined;

  constructor(clock: Clock, returned: (queue: string) => void) {
    this.#clock = clock;
    this.#events = {
      returned,
      ended: (channel, why) => {
        this.#channels.delete(channel);
        this.#learn(why ?? '');
      },
    };
  }

  async attach(model: ChannelModel): Promise<void> {
    this.#model = model;
    this.#limits = { ...this.#limits, frameBytes: frameBytesOf(model) };
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
    if (alone) for (const parcel of parcels) this.#sendAlone(parcel, timeoutMs);
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

  /** Over a channel that is there for this message, and closed after it. */
  #sendAlone(parcel: Parcel, timeoutMs: number): void {
    const endsAtMs = this.#clock.monotonic() + timeoutMs;
    const begin = async () => {
      this.#alone += 1;
      const opening = this.#openAnother();
      const end = () => {
        this.#alone -= 1;
        void opening.then((one) => typeof one === 'string' || one.retire());
        this.#waiting.shift()?.();
      };
      const answer = (published: Published) => {
        parcel.answer(published);
        end();
      };
      const leftMs = Math.max(0, endsAtMs - this.#clock.monotonic());
      await this.#sendOver(opening, [{ ...parcel, answer }], leftMs);
    };
    if (this.#alone < MAX_ALONE) void begin();
    else this.#waiting.push(() => void begin());
  }

  /** Over a channel that is not open yet: what waits for it too long is answered without it. */
  async #sendOver(opening: Opening, parcels: readonly Parcel[], timeoutMs: number): Promise<void> {
    const endsAtMs = this.#clock.monotonic() + timeoutMs;
    const channel = await this.#within(opening, timeoutMs);
    if (typeof channel === 'string') for (const { answer } of parcels) answer(away(channel));
    else channel.send(parcels, Math.max(1, endsAtMs - this.#clock.monotonic()));
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

function away(why: string): Published {
  return unpublished('away', 'BROKER_AWAY', why);
}
