import {
  describeService,
  rabbitmqClient,
  type RabbitmqClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { carriedContext, type RabbitBroker, rabbitmq } from './index.ts';

const KiB = 1024;
const limits = { maxMessages: 1000, maxBytes: 64 * KiB * KiB };

/** The server may have to start first, on a busy machine. */
const START_MS = 60_000;

/** As long as a busy machine may take. */
const soon = { timeout: 20_000, interval: 5 };

describeService('RabbitMQ', () => {
  let url: string;
  let client: RabbitmqClient;
  let broker: RabbitBroker;
  let said: { message: string; fields: object }[];
  beforeAll(async () => {
    url = await sharedServer('RabbitMQ');
    client = await rabbitmqClient(url);
  }, START_MS);
  afterAll(() => client.close());
  beforeEach(async () => {
    said = [];
    const keep = (fields: object, message: string) => void said.push({ message, fields });
    const log = { debug: keep, info: keep, warn: keep, error: keep };
    broker = rabbitmq({ url, log, policy: { base: '5ms', cap: '100ms' } });
    await broker.open();
  });
  afterEach(() => broker.close());

  const textOf = ({ payload }: Received) => Buffer.from(payload).toString();

  const hostile = {
    bool: true,
    none: null,
    decimal: { '!': 'decimal', value: { places: 2, digits: 12_345 } },
    time: { '!': 'timestamp', value: 1_700_000_000 },
    big: { '!': 'int64', value: 2n ** 60n + 1n },
    small: { '!': 'int64', value: 5 },
    short: { '!': 'int16', value: -2 },
    unsigned: { '!': 'uint32', value: 4_000_000_000 },
    float: { '!': 'float', value: 0.1 },
    whole: { '!': 'double', value: 3 },
    bytes: Buffer.from([0, 255]),
    list: [1, 'two', [null, { deep: false }]],
    table: { a: { b: { c: 'd' } }, n: { '!': 'int64', value: -(2n ** 62n) } },
    text: 'ünï 🚀',
  };

  it('hands over what a message is and where it came from', async () => {
    const queue = await client.queue();
    const got: Received[] = [];
    await broker.consume(queue, limits, (one) => got.push(one));
    client.channel.sendToQueue(queue, Buffer.from('{}'), {
      contentType: 'application/json',
      correlationId: 'c-1',
      timestamp: 1_700_000_000,
      headers: hostile,
    });
    await expect.poll(() => got.length, soon).toBe(1);
    const [{ headers, contentType, redelivered, extra }] = got as [Received];
    expect({ contentType, redelivered }).toEqual({
      contentType: 'application/json',
      redelivered: false,
    });
    expect(headers).toMatchObject({ text: 'ünï 🚀', small: 5, bool: true, none: null });
    expect(extra).toMatchObject({
      exchange: '',
      routingKey: queue,
      properties: {
        contentType: 'application/json',
        correlationId: 'c-1',
        timestamp: 1_700_000_000,
      },
    });
  });

  it('carries every kind of header there and back again, byte for byte', async () => {
    const [there, back] = [await client.queue(), await client.queue()];
    const got: Received[] = [];
    for (const queue of [there, back]) await broker.consume(queue, limits, (one) => got.push(one));
    client.channel.sendToQueue(there, Buffer.from('body'), {
      headers: hostile,
      messageId: 'm-1',
      priority: 4,
      type: 'order',
      contentEncoding: 'gzip',
    });
    await expect.poll(() => got.length, soon).toBe(1);
    const { context } = carriedContext(got[0]!);
    const { headers = {}, extra } = JSON.parse(JSON.stringify(context)) as typeof context;
    const payload = got[0]!.payload;
    const sent = broker.publish(
      [{ address: back, payload, headers, ...(extra ? { extra } : {}) }],
      {
        timeoutMs: 9000,
      },
    );
    expect(await Promise.all(sent)).toEqual([{ outcome: 'confirmed' }]);
    await expect.poll(() => got.length, soon).toBe(2);
    expect(carriedContext(got[1]!)).toEqual(carriedContext(got[0]!));
    expect(carriedContext(got[1]!).context.extra).toMatchObject({
      amqp: {
        properties: { messageId: 'm-1', priority: 4, type: 'order', contentEncoding: 'gzip' },
        headers: {
          big: { '!': 'int64', value: String(2n ** 60n + 1n) },
          small: { '!': 'int64', value: 5 },
          whole: { '!': 'double', value: 3 },
        },
      },
    });
  });

  it('hands over a message with headers that no client can read, and goes on', async () => {
    const queue = await client.queue();
    const got: Received[] = [];
    await broker.consume(queue, limits, (one) => got.push(one));
    sendNested(client, queue, 12_000);
    client.channel.sendToQueue(queue, Buffer.from('after'));
    await expect.poll(() => got.map(textOf), soon).toEqual(['nested', 'after']);
    expect(got[0]!.headers).toEqual({});
    expect(carriedContext(got[0]!)).toEqual({ context: {}, headerBytes: 0, lost: ['deep'] });
    expect(broker.state.state).toBe('connected');
  });

  it('makes the queue again when it was deleted, consumes it, and knows what is gone', async () => {
    const queue = await client.queue();
    const got: Received[] = [];
    const consumer = await broker.consume(queue, limits, (one) => got.push(one));
    expect(consumer.state).toEqual({ state: 'consuming' });
    client.channel.sendToQueue(queue, Buffer.from('before'));
    await expect.poll(() => got.length, soon).toBe(1);
    await client.channel.deleteQueue(queue);
    await expect.poll(() => got[0]!.gone, soon).toBe(true);
    await expect.poll(() => consumer.state.state, soon).toBe('consuming');
    client.channel.sendToQueue(queue, Buffer.from('after'));
    await expect.poll(() => got.map(textOf), soon).toEqual(['before', 'after']);
    // The new channel has a first message too: this must not be taken for it.
    await consumer.ack([got[0]!]);
    await consumer.stop();
    expect(await client.depth(queue)).toBe(1);
    expect(said).toEqual([
      {
        message: 'not consuming: trying again',
        fields: { queue, why: 'The broker ended the consumer: its queue is gone.' },
      },
    ]);
  });

  it('waits while somebody else has the queue for himself, and says so once', async () => {
    const queue = await client.queue();
    const { consumerTag } = await client.channel.consume(queue, () => undefined, {
      exclusive: true,
    });
    const consumer = await broker.consume(queue, limits, () => undefined);
    expect(consumer.state).toMatchObject({
      state: 'waiting',
      why: expect.stringContaining('exclusive') as string,
    });
    await client.channel.cancel(consumerTag);
    await expect.poll(() => consumer.state, soon).toEqual({ state: 'consuming' });
    expect(said.length).toBe(1);
    await consumer.stop();
    expect(consumer.state).toEqual({ state: 'stopped' });
  });

  it('brings a message again whose receiver failed', async () => {
    const queue = await client.queue();
    const got: Received[] = [];
    const consumer = await broker.consume(queue, limits, (one) => {
      got.push(one);
      if (got.length === 1) throw new Error('not ready');
    });
    client.channel.sendToQueue(queue, Buffer.from('x'));
    await expect.poll(() => got.length, soon).toBe(2);
    expect(got.map(({ redelivered }) => redelivered)).toEqual([false, true]);
    await consumer.stop();
  });

  it.each(['classic', 'quorum'])(
    'brings large messages of a %s queue once and in order, with never more of them in memory than it may',
    async (type) => {
      const queue = await client.queue({ arguments: { 'x-queue-type': type } });
      const confirms = Array.from({ length: 30 }, (_, i) => {
        const payload = Buffer.alloc((i % 3 === 0 ? 1 : 200) * KiB, String(i));
        return { address: queue, payload, headers: { i } };
      });
      await Promise.all(broker.publish(confirms, { timeoutMs: 20_000 }));
      const maxBytes = 500 * KiB;
      const held = new Set<Received>();
      let mostBytes = 0;
      const seen: unknown[] = [];
      const arrived: Received[] = [];
      const consumer = await broker.consume(queue, { maxMessages: 100, maxBytes }, (one) => {
        held.add(one);
        arrived.push(one);
        const bytes = Array.from(held).reduce((sum, { payload }) => sum + payload.length, 0);
        if (held.size > 1) mostBytes = Math.max(mostBytes, bytes);
      });
      while (seen.length < 30) {
        await expect.poll(() => arrived.length, soon).toBeGreaterThan(0);
        const done = arrived.splice(0, 2);
        for (const one of done) {
          seen.push(one.headers['i']);
          held.delete(one);
        }
        await consumer.ack(done);
      }
      expect(seen).toEqual(confirms.map(({ headers }) => headers.i));
      expect(mostBytes).toBeLessThanOrEqual(maxBytes);
      await consumer.stop();
      expect(await client.depth(queue)).toBe(0);
    },
  );
});

/** Arrays in arrays, deeper than a client's stack. Written by hand: a client cannot write them either. */
function sendNested({ channel }: RabbitmqClient, queue: string, depth: number): void {
  let value = Buffer.from('V');
  const parts: Buffer[] = [];
  for (let i = 0; i < depth; i++) {
    const head = Buffer.alloc(5);
    head.write('A');
    head.writeUInt32BE(5 * i + value.length, 1);
    parts.unshift(head);
  }
  value = Buffer.concat([...parts, value]);
  const table = Buffer.concat([Buffer.from([4]), Buffer.from('deep'), value]);
  const { ch, connection } = channel as unknown as {
    ch: number;
    connection: { sendBytes: (bytes: Buffer) => void };
  };
  const body = Buffer.from('nested');
  connection.sendBytes(
    Buffer.concat([
      frame(1, ch, [words(60, 40, 0), shortText(''), shortText(queue), Buffer.from([0])]),
      frame(2, ch, [words(60, 0), size64(body.length), words(0x2000), size32(table.length), table]),
      frame(3, ch, [body]),
    ]),
  );
}

function frame(type: number, channel: number, parts: Buffer[]): Buffer {
  const payload = Buffer.concat(parts);
  return Buffer.concat([
    Buffer.from([type]),
    words(channel),
    size32(payload.length),
    payload,
    Buffer.from([206]),
  ]);
}

function words(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.from([value >> 8, value & 255])));
}

function shortText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

function size32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function size64(value: number): Buffer {
  return Buffer.concat([Buffer.alloc(4), size32(value)]);
}
