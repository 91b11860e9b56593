import type { ChannelModel, ConfirmChannel } from 'amqplib';
import type { Clock } from 'redrive';
import type { Publication, Published } from '../../ports/broker.ts';
import { MARKER } from './carry.ts';
import { closeChannel } from './channels.ts';
import type { Ready } from './checks.ts';
import { impossible, textOf, unpublished } from '../../broker/answers.ts';
import { type Answer, type Batch, Ledger } from './ledger.ts';
import { HeaderSheet, writableNumber } from './write-table.ts';

/** A message that was checked, and where its answer goes. */
export interface Parcel {
  readonly message: Publication;
  readonly ready: Ready;
  readonly answer: Answer;
}

export interface PublishChannelEvents {
  /** Nothing more may be sent over it. `why`: what the broker had against it. */
  ended(channel: PublishChannel, why: string | undefined): void;
  /** A message found no queue of this name. */
  returned(queue: string): void;
  /** What a message is that was sent then and got no confirm in its time. */
  unconfirmed(sinceMs: number, timeoutMs: number): Published;
}

/** One confirm channel: sends messages, and answers each by what the broker says of it. */
export class PublishChannel {
  readonly #channel: ConfirmChannel;
  readonly #clock: Clock;
  readonly #events: PublishChannelEvents;
  readonly #ledger: Ledger;
  readonly #sheet = new HeaderSheet();
  #why: string | undefined;
  #isRetired = false;
  #isClosed = false;

  static async open(
    model: ChannelModel,
    clock: Clock,
    events: PublishChannelEvents,
  ): Promise<PublishChannel> {
    return new PublishChannel(await model.createConfirmChannel(), clock, events);
  }

  private constructor(channel: ConfirmChannel, clock: Clock, events: PublishChannelEvents) {
    this.#channel = channel;
    this.#clock = clock;
    this.#events = events;
    this.#ledger = new Ledger(({ timer }) => clock.clearTimer(timer));
    channel.on('ack', ({ deliveryTag, multiple }) =>
      this.#settle(deliveryTag, multiple, confirmed),
    );
    channel.on('nack', ({ deliveryTag, multiple }) => this.#settle(deliveryTag, multiple, nacked));
    channel.on('return', ({ fields, properties }) => {
      this.#ledger.returned(Number(properties.headers?.[MARKER]));
      events.returned(fields.routingKey);
    });
    channel.on('error', (error) => {
      this.#why = textOf(error);
    });
    channel.on('close', () => this.#closed());
  }

  /** Messages that are on their way. */
  get load(): number {
    return this.#ledger.size;
  }

  /** Whether more may be sent over it. */
  get isOpen(): boolean {
    return !this.#isRetired && !this.#isClosed;
  }

  send(parcels: readonly Parcel[], timeoutMs: number): void {
    const sinceMs = this.#clock.monotonic();
    const batch: Batch = { left: 0 };
    for (const parcel of parcels) this.#send(parcel, batch);
    if (batch.left === 0) return;
    const late = () => this.#timeOut(batch, this.#events.unconfirmed(sinceMs, timeoutMs));
    batch.timer = this.#clock.setTimer(late, timeoutMs);
  }

  /** Takes no more messages, and closes when those that are on their way have their answers. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#events.ended(this, undefined);
    this.#closeIfDone();
  }

  #send({ message, ready, answer }: Parcel, batch: Batch): void {
    const { address, payload } = message;
    const { properties, headers } = ready;
    headers.set(MARKER, writableNumber(this.#ledger.next));
    properties.headers = this.#sheet.write(headers);
    // A view, not a copy: amqplib copies it into its frames at once.
    const content = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    try {
      this.#channel.publish('', address, content, properties);
    } catch (error) {
      // It encodes before it sends: nothing has left, and nothing was counted.
      const isItsFault = error instanceof TypeError || error instanceof RangeError;
      return answer(
        isItsFault && !this.#isClosed
          ? impossible('INVALID_MESSAGE', textOf(error))
          : unpublished('away', 'BROKER_AWAY', NOT_SENT),
      );
    }
    this.#ledger.add(answer, batch);
  }

  #settle(seq: number, isMultiple: boolean, published: Published): void {
    this.#ledger.settle(seq, isMultiple, published);
    if (this.#isRetired) this.#closeIfDone();
  }

  /** A broker that leaves out an answer may give it later: nothing new shall be near then. */
  #timeOut(batch: Batch, unconfirmed: Published): void {
    this.#ledger.giveUp(unconfirmed, batch);
    if (this.#isRetired) this.#closeIfDone();
    else this.retire();
  }

  #closeIfDone(): void {
    if (this.#isClosed || this.load > 0) return;
    this.#isClosed = true;
    void closeChannel(this.#channel);
  }

  #closed(): void {
    this.#isClosed = true;
    const why = this.#why;
    const lost =
      why === undefined
        ? unpublished('lost', 'CONNECTION_LOST', 'The connection went away before the confirm.')
        : unpublished('lost', 'CHANNEL_CLOSED', why);
    this.#ledger.giveUp(lost);
    if (!this.#isRetired || why !== undefined) this.#events.ended(this, why);
    this.#isRetired = true;
  }
}

const NOT_SENT = 'The channel to the broker was closed before the message was sent.';
const confirmed: Published = Object.freeze({ outcome: 'confirmed' });
const nacked = unpublished('refused', 'BROKER_REFUSED', 'The broker did not take the message.');
