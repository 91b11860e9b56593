import type { Channel } from 'amqplib';

/** Closes a channel, and is done also where it is closed already or goes away meanwhile: amqplib says nothing then. */
export function closeChannel(channel: Channel): Promise<void> {
  return new Promise((resolve) => {
    channel.once('close', resolve);
    channel.close().catch(() => resolve());
  });
}
