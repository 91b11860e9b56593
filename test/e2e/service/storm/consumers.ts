/** Those who work on the original queues, and one who reads the review queue. Each notes what it gets, and when. */
import type { ChannelModel, ConfirmChannel, ConsumeMessage } from 'amqplib';
import type { Journal, SentBack } from './journal.ts';
import { ack, confirmChannel, Peer, publish } from './peer.ts';
import { failedAgain, failsAt, numberIn, planOf, queues } from './plans.ts';

const PREFETCH = 300;
const RETRY_QUEUE = 'retry.scheduled';
const REVIEW_QUEUE = 'manual-review.pending';

export class Consumers implements AsyncDisposable {
  readonly #journal: Journal;
  readonly #peers: Peer[];
  /** Whether a queue that is gone is declared again, by whoever connects again. */
  declares = true;

  /** `of`: only this queue, and no reviews. */
  constructor(url: string, journal: Journal, of?: string) {
    this.#journal = journal;
    const workers = (of === undefined ? queues : [of]).map(
      (queue) => new Peer(url, (connection) => this.#work(connection, queue)),
    );
    const reader = new Peer(url, (connection) => this.#readReviews(connection));
    this.#peers = of === undefined ? [...workers, reader] : workers;
  }

  async start(): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.start()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer[Symbol.asyncDispose]()));
  }

  async #work(connection: ChannelModel, queue: string): Promise<void> {
    const channel = await confirmChannel(connection);
    await (this.declares ? channel.assertQueue(queue) : channel.checkQueue(queue));
    await channel.prefetch(PREFETCH);
    await channel.consume(queue, (message) => {
      if (message) void this.#receive(channel, queue, message);
    });
  }

  async #receive(channel: ConfirmChannel, queue: string, message: ConsumeMessage): Promise<void> {
    const { content, fields, properties } = message;
    const plan = planOf(numberIn(content));
    const headers = properties.headers ?? {};
    const count = Number(headers['x-retry-count']);
    const { number } = plan;
    const isTaken = !failsAt(plan, count);
    const receipt = {
      number,
      count,
      queue,
      id: String(headers['x-message-id']),
      atMs: Date.now(),
      isRedelivered: fields.redelivered,
      isIntact: content.equals(plan.payload),
    };
    this.#journal.receive(receipt, isTaken);
    if (isTaken) return ack(channel, message);
    const { body, contentType } = failedAgain(plan, count);
    const back: SentBack = { number, count, atMs: Date.now(), isConfirmed: false };
    this.#journal.sentBack.push(back);
    const passedOn = plan.manner === 'headers' ? { headers } : {};
    back.isConfirmed = await publish(channel, RETRY_QUEUE, body, { contentType, ...passedOn });
    // Otherwise it comes again, and is sent back again.
    if (back.isConfirmed) ack(channel, message);
  }

  async #readReviews(connection: ChannelModel): Promise<void> {
    const channel = await confirmChannel(connection);
    await channel.assertQueue(REVIEW_QUEUE);
    await channel.prefetch(PREFETCH);
    await channel.consume(REVIEW_QUEUE, (message) => {
      if (!message) return;
      const { content, fields, properties } = message;
      const body = JSON.parse(content.toString()) as {
        message_id: string;
        original_payload: string;
      };
      const reason: unknown = properties.headers?.['x-review-reason'] ?? 'EXHAUSTED';
      this.#journal.review({
        number: numberIn(Buffer.from(body.original_payload, 'base64')),
        id: body.message_id,
        reason: String(reason),
        isRedelivered: fields.redelivered,
        atMs: Date.now(),
      });
      ack(channel, message);
    });
  }
}
