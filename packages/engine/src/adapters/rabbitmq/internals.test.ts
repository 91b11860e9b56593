import { Socket } from 'node:net';
import { describeService, rabbitmqClient, sharedServer } from '@redrive/services/vitest';
import amqp from 'amqplib';
import { expect, it, vi } from 'vitest';
import { frameBytesOf, writeTogether } from './internals.ts';

describeService('RabbitMQ', () => {
  it('the installed amqplib tells how large frames are', async () => {
    const model = await amqp.connect(`${await sharedServer('RabbitMQ')}?frameMax=8192`);
    expect(frameBytesOf(model)).toBe(8192);
    await model.close();
  });

  it('a hundred messages go to the system in a few writes, and all of them arrive', async () => {
    await using stage = await writing();
    const { client, queue, channel } = stage;
    const socket = Socket.prototype as unknown as Record<'_write' | '_writev', () => void>;
    const one = vi.spyOn(socket, '_write');
    const several = vi.spyOn(socket, '_writev');
    for (let i = 0; i < 100; i++) channel.sendToQueue(queue, Buffer.alloc(100));
    await channel.waitForConfirms();
    const writes = one.mock.calls.length + several.mock.calls.length;
    vi.restoreAllMocks();
    expect(writes).toBeLessThan(20);
    expect(await client.depth(queue)).toBe(100);
  });

  it('more than a socket takes at once goes on when it has room again', async () => {
    await using stage = await writing();
    const { client, queue, channel } = stage;
    for (let i = 0; i < 300; i++) channel.sendToQueue(queue, Buffer.alloc(50_000));
    await channel.waitForConfirms();
    expect(await client.depth(queue)).toBe(300);
  });
});

/** A channel whose connection writes together what is said at one moment, and a queue for it. */
async function writing() {
  const url = await sharedServer('RabbitMQ');
  const client = await rabbitmqClient(url);
  const model = await amqp.connect(url);
  const channel = await model.createConfirmChannel();
  writeTogether(model);
  return {
    client,
    queue: await client.queue(),
    channel,
    [Symbol.asyncDispose]: async () => {
      await model.close();
      await client.close();
    },
  };
}
