import type { Channel } from 'amqplib';

/** A connection that is dead and does not know it yet never answers. */
const CLOSE_MS = 1000;

/** Closes a channel, and is done also where it is closed already or goes away meanwhile: amqplib says nothing then. */
export function closeChannel(channel: Channel): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, CLOSE_MS).unref();
    channel.once('close', resolve);
    channel.close().catch(() => resolve());
  });
}
