import type { Channel, ChannelModel } from 'amqplib';
import { numberOf } from './messages.ts';

/** A consumer that counts: each message is to come, and once. */
export class Listener {
  readonly #channel: Channel;
  #seen = new Set<number>();
  #expected = 0;
  #duplicates = 0;
  #finish: () => void = () => undefined;

  static async open(
    connection: ChannelModel,
    queue: string,
    onMessage: (payload: Buffer) => void = () => undefined,
  ): Promise<Listener> {
    const channel = await connection.createChannel();
    const listener = new Listener(channel);
    const take = ({ content }: { content: Buffer }) => {
      listener.#take(numberOf(content));
      onMessage(content);
    };
    await channel.consume(queue, (message) => message && take(message), { noAck: true });
    return listener;
  }

  private constructor(channel: Channel) {
    this.#channel = channel;
  }

  get count(): number {
    return this.#seen.size;
  }

  get duplicates(): number {
    return this.#duplicates;
  }

  /** Resolves when messages 0 to `count` have come. From now on: what came before is forgotten. */
  expect(count: number, withinMs: number): Promise<void> {
    this.#seen = new Set();
    this.#expected = count;
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(new Error(`${this.count} of ${count} messages have come in ${withinMs} ms`));
      const timer = setTimeout(late, withinMs);
      this.#finish = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    await this.#channel.close();
  }

  #take(n: number): void {
    if (this.#seen.has(n)) this.#duplicates += 1;
    this.#seen.add(n);
    if (this.#seen.size === this.#expected) this.#finish();
  }
}
