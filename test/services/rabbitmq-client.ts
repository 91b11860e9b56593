/** A plain client for tests: makes queues of their own, and looks at RabbitMQ from outside. */
import { randomBytes } from 'node:crypto';
import amqp, { type Channel, type ChannelModel, type GetMessage, type Options } from 'amqplib';

export interface RabbitmqClient extends AsyncDisposable {
  readonly connection: ChannelModel;
  /** For what is surely allowed: the broker closes it when it says no. */
  readonly channel: Channel;
  /** A name that nobody has. What is declared under it goes away with this client. */
  name(): string;
  /** A new queue, durable unless told otherwise. */
  queue(options?: Options.AssertQueue): Promise<string>;
  /** Takes the next message out of a queue that has one. */
  take(queue: string): Promise<GetMessage>;
  /** Messages in a queue that nobody holds. */
  depth(queue: string): Promise<number>;
  close(): Promise<void>;
}

export async function rabbitmqClient(url: string): Promise<RabbitmqClient> {
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  const names: string[] = [];
  const name = () => {
    const fresh = `test-${randomBytes(8).toString('hex')}`;
    names.push(fresh);
    return fresh;
  };
  const close = async () => {
    for (const one of names) {
      await channel.deleteQueue(one);
      await channel.deleteExchange(one);
    }
    await connection.close();
  };
  return {
    connection,
    channel,
    name,
    async queue(options) {
      const fresh = name();
      await channel.assertQueue(fresh, options);
      return fresh;
    },
    async take(queue) {
      const message = await channel.get(queue, { noAck: true });
      if (!message) throw new Error(`${queue} is empty`);
      return message;
    },
    async depth(queue) {
      return (await channel.checkQueue(queue)).messageCount;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
