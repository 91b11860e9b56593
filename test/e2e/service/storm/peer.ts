/** A client of the broker that comes back by itself: producers and consumers outlive its restarts. */
import { setTimeout as sleep } from 'node:timers/promises';
import amqp, { type Channel, type ChannelModel, type ConfirmChannel, type Options } from 'amqplib';

const AGAIN_MS = 50;

export class Peer implements AsyncDisposable {
  readonly #url: string;
  readonly #begin: (connection: ChannelModel) => Promise<void>;
  #connection: ChannelModel | undefined;
  #isOver = false;
  #running: Promise<void> | undefined;

  /** `begin` is called with every new connection. */
  constructor(url: string, begin: (connection: ChannelModel) => Promise<void>) {
    this.#url = url;
    this.#begin = begin;
  }

  /** Resolves when it is there for the first time. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running = this.#run(resolve);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#connection?.close().catch(() => undefined);
    await this.#running;
  }

  async #run(isThere: () => void): Promise<void> {
    while (!this.#isOver) {
      try {
        const connection = await amqp.connect(this.#url, { timeout: 5000 });
        const closed = new Promise<void>((resolve) => {
          connection.on('close', () => resolve());
        });
        // What was wrong with it does not matter: the next one comes.
        connection.on('error', () => undefined);
        this.#connection = connection;
        await this.#begin(connection);
        isThere();
        await closed;
      } catch {
        // Away, or it went away in the midst of it.
        await sleep(AGAIN_MS);
      }
    }
  }
}

/** A channel that does not end the process when it does. */
export async function confirmChannel(connection: ChannelModel): Promise<ConfirmChannel> {
  const channel = await connection.createConfirmChannel();
  channel.on('error', () => undefined);
  return channel;
}

/** Whether the broker has it; false: nobody knows. */
export function publish(
  channel: ConfirmChannel,
  queue: string,
  body: Buffer,
  options: Options.Publish,
): Promise<boolean> {
  return new Promise((resolve) => {
    const properties = { persistent: true, ...options };
    try {
      channel.publish('', queue, body, properties, (error) => resolve(!error));
    } catch {
      // The channel is closed: it was never sent.
      resolve(false);
    }
  });
}

/** One whose channel is gone comes again. */
export function ack(channel: Channel, message: amqp.ConsumeMessage): void {
  try {
    channel.ack(message);
  } catch {
    // The channel is closed.
  }
}
