import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import type { ConsumeLimits, Received } from '../../ports/broker.ts';
import { closeChannel } from './channels.ts';
import { Deliveries } from './deliveries.ts';
import { textOf } from '../../broker/answers.ts';
import type { Prefetch } from './prefetch.ts';
import { type Owner, receivedOf, type Tag } from './received.ts';

interface SubscriptionEvents {
  receive(message: Received): void;
  /** The broker ended the channel or the consumer, and why; undefined: the connection went away. */
  ended(why: string | undefined): void;
  /** It stopped taking messages since another prefetch is wanted, and what it had is settled. */
  drained(): void;
}

const CONSUMER_TAG = 'redrive';

/** One consumer on one channel, as long as that lives. A delivery belongs to its channel, and is settled there or not at all. */
export class Subscription implements Owner {
  readonly #channel: Channel;
  readonly #prefetch: Prefetch;
  readonly #events: SubscriptionEvents;
  readonly #deliveries: Deliveries<Received>;
  #draining: 'no' | 'begun' | 'yes' = 'no';
  #isOver = false;
  #why: string | undefined;

  static async open(
    model: ChannelModel,
    source: string,
    limits: ConsumeLimits,
    prefetch: Prefetch,
    events: SubscriptionEvents,
  ): Promise<Subscription> {
    const channel = await model.createChannel();
    const subscription = new Subscription(channel, limits, prefetch, events);
    try {
      await channel.prefetch(prefetch.next());
      // A tag of our own: messages may come before the answer that would tell the broker's.
      const options = { consumerTag: CONSUMER_TAG };
      await channel.consume(source, (message) => subscription.#received(message), options);
    } catch (error) {
      await subscription.close();
      throw error;
    }
    return subscription;
  }

  private constructor(
    channel: Channel,
    limits: ConsumeLimits,
    prefetch: Prefetch,
    events: SubscriptionEvents,
  ) {
    this.#channel = channel;
    this.#prefetch = prefetch;
    this.#events = events;
    this.#deliveries = new Deliveries(limits);
    channel.on('error', (error) => {
      this.#why = textOf(error);
    });
    channel.on('close', () => this.#end(this.#why));
  }

  /** Of this subscription only. After its end it does nothing. */
  ack(messages: readonly Received[]): void {
    this.#settle(messages, (message, isMultiple) => this.#channel.ack(message, isMultiple));
  }

  requeue(messages: readonly Received[]): void {
    this.#settle(messages, (message, isMultiple) => this.#channel.nack(message, isMultiple, true));
  }

  /**
   * Takes no further messages. When all are settled, `drained` is told. A prefetch holds only for consumers that come after
   * it, so another one needs this too. On a channel of its own: of a quorum queue the broker keeps what was on its way to
   * the old one until the channel is closed.
   */
  drain(): void {
    if (this.#draining !== 'no' || this.#isOver) return;
    this.#draining = 'begun';
    this.#channel.cancel(CONSUMER_TAG).then(
      () => {
        this.#draining = 'yes';
        this.#tellIfDrained();
      },
      // What the broker has against it ends the channel too.
      () => this.#end(this.#why),
    );
  }

  /** Closes the channel: what nobody has settled goes back to the queue. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const message of this.#deliveries.handed()) message.gone = true;
    await closeChannel(this.#channel);
  }

  #settle(
    messages: readonly Received[],
    tell: (message: ConsumeMessage, isMultiple: boolean) => void,
  ): void {
    if (this.#isOver) return;
    const tags = messages.map(({ tag }) => (tag as Tag).deliveryTag);
    for (const { tag, isMultiple } of this.#deliveries.settle(tags)) {
      // All that amqplib looks at.
      tell({ fields: { deliveryTag: tag } } as ConsumeMessage, isMultiple);
    }
    for (let next = this.#deliveries.next(); next; next = this.#deliveries.next()) {
      this.#events.receive(next);
    }
    this.#tellIfDrained();
  }

  #received(message: ConsumeMessage | null): void {
    if (this.#isOver) return;
    if (!message) return this.#end('The broker ended the consumer: its queue is gone.');
    const bytes = message.content.length;
    const received = receivedOf(message, this);
    this.#prefetch.see(bytes);
    const verdict = this.#deliveries.receive(message.fields.deliveryTag, received, bytes);
    if (verdict === 'hand') this.#events.receive(received);
    if (verdict === 'back') this.#prefetch.overflow(bytes);
    if (verdict === 'back' || this.#prefetch.isFarOff) this.drain();
  }

  #tellIfDrained(): void {
    if (this.#draining === 'yes' && !this.#isOver && this.#deliveries.isEmpty) {
      this.#events.drained();
    }
  }

  #end(why: string | undefined): void {
    if (this.#isOver) return;
    void this.close();
    this.#events.ended(why);
  }
}
