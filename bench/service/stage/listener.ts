import type { Channel, ChannelModel } from 'amqplib';
import { Arrivals } from './arrivals.ts';
import { numberOf } from './messages.ts';

/** A consumer of a queue that counts. */
export class Listener extends Arrivals {
  readonly #channel: Channel;

  static async open(
    connection: ChannelModel,
    queue: string,
    onMessage: (payload: Buffer) => void = () => undefined,
  ): Promise<Listener> {
    const channel = await connection.createChannel();
    const listener = new Listener(channel);
    const take = ({ content }: { content: Buffer }) => {
      listener.take(numberOf(content));
      onMessage(content);
    };
    await channel.consume(queue, (message) => message && take(message), { noAck: true });
    return listener;
  }

  private constructor(channel: Channel) {
    super();
    this.#channel = channel;
  }

  async close(): Promise<void> {
    await this.#channel.close();
  }
}
