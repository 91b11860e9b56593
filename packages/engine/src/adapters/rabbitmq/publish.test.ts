import {
  describeService,
  rabbitmqClient,
  type RabbitmqClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Publication, Published } from '../../ports/broker.ts';
import { type RabbitBroker, rabbitmq } from './index.ts';

/** The server may have to start first, on a busy machine. */
const START_MS = 60_000;

/** As long as a busy machine may take. */
const soon = { timeout: 20_000, interval: 5 };

describeService('RabbitMQ', () => {
  let url: string;
  let client: RabbitmqClient;
  let broker: RabbitBroker;
  beforeAll(async () => {
    url = await sharedServer('RabbitMQ');
    client = await rabbitmqClient(url);
  }, START_MS);
  afterAll(() => client.close());
  beforeEach(async () => {
    broker = rabbitmq({ url });
    await broker.open();
  });
  afterEach(() => broker.close());

  const message = (address: string, parts: Partial<Publication> = {}): Publication => ({
    address,
    payload: Buffer.from('x'),
    headers: {},
    ...parts,
  });

  function publish(messages: readonly Publication[], alone = false): Promise<Published[]> {
    return Promise.all(broker.publish(messages, { timeoutMs: 20_000, alone }));
  }

  async function outcomes(messages: readonly Publication[], alone = false): Promise<string[]> {
    return (await publish(messages, alone)).map(({ outcome }) => outcome);
  }

  it('answers two batches of 500 that are on their way together, each message for itself', async () => {
    const [queue, nowhere] = [await client.queue(), client.name()];
    const batch = (odd: number) =>
      Array.from({ length: 500 }, (_, i) => message(i % 7 === odd ? nowhere : queue));
    const wanted = (odd: number) =>
      Array.from({ length: 500 }, (_, i) => (i % 7 === odd ? 'unroutable' : 'confirmed'));
    const [one, two] = await Promise.all([outcomes(batch(2)), outcomes(batch(5))]);
    expect(one).toEqual(wanted(2));
    expect(two).toEqual(wanted(5));
    expect(await client.depth(queue)).toBe(
      [...one, ...two].filter((o) => o === 'confirmed').length,
    );
  });

  it('finds out what the broker would close the channel for, and takes the rest of the batch', async () => {
    const queue = await client.queue();
    const hostile: Partial<Publication>[] = [
      { headers: { ['x'.repeat(300)]: '1' } },
      { headers: { 'x-a': 'x'.repeat(70_000) } },
      { headers: { 'x-a': 5n as unknown as number } },
      { contentType: 'x'.repeat(300) },
      { extra: { amqp: { properties: { replyTo: 'amq.rabbitmq.reply-to' } } } },
      { extra: { amqp: { headers: { 'x-a': { '!': 'int8', value: 1000 } } } } },
      { address: 'q'.repeat(300) },
    ];
    const batch = hostile.flatMap((parts) => [message(queue), message(queue, parts)]);
    expect(await outcomes(batch)).toEqual(hostile.flatMap(() => ['confirmed', 'impossible']));
    expect(await client.depth(queue)).toBe(hostile.length);
    expect(broker.state.state).toBe('connected');
  });

  it('sends nothing that makes copies, kills on arrival or names a user', async () => {
    const [queue, copy] = [await client.queue(), await client.queue()];
    const properties = { userId: 'somebody', expiration: '1', correlationId: 'kept' };
    const headers = { CC: [copy], BCC: [copy], 'x-death': 'none', 'x-delay': true };
    const plain = { CC: copy, BCC: copy, 'x-delay': 5, 'x-first-death-queue': 'q' };
    const sent = message(queue, { headers: plain, extra: { amqp: { properties, headers } } });
    expect(await outcomes([sent])).toEqual(['confirmed']);
    const got = await client.take(queue);
    expect(Object.keys(got.properties.headers ?? {})).toEqual(['x-redrive-seq']);
    expect(got.properties).toMatchObject({
      userId: undefined,
      expiration: undefined,
      correlationId: 'kept',
      deliveryMode: 2,
    });
    expect(await client.depth(copy)).toBe(0);
  });

  it('takes 60 KiB of headers, and 10 MB at once', async () => {
    const queue = await client.queue();
    const payload = Buffer.alloc(10 * 1024 * 1024, 'redrive');
    const batch = [
      message(queue, { headers: { 'x-large': 'ü'.repeat(30 * 1024) } }),
      message(queue, { payload }),
    ];
    expect(await outcomes(batch)).toEqual(['confirmed', 'confirmed']);
    const first = await client.take(queue);
    expect(first.properties.headers?.['x-large']).toHaveLength(30 * 1024);
    expect((await client.take(queue)).content.equals(payload)).toBe(true);
  });

  it('says what a queue refused, and that it is the queue', async () => {
    const full = await client.queue({ maxLength: 1, overflow: 'reject-publish' });
    const other = await client.queue();
    const results = await publish([message(full), message(other), message(full), message(other)]);
    expect(results.map(({ outcome }) => outcome)).toEqual([
      'confirmed',
      'confirmed',
      'refused',
      'confirmed',
    ]);
    expect(results[2]).toMatchObject({ failure: { class: 'transient', code: 'BROKER_REFUSED' } });
  });

  it('sends suspects each by itself, however many there are', async () => {
    const [queue, nowhere] = [await client.queue(), client.name()];
    const suspects = Array.from({ length: 50 }, (_, i) => message(i % 10 === 0 ? nowhere : queue));
    expect(await outcomes(suspects, true)).toEqual(
      suspects.map(({ address }) => (address === queue ? 'confirmed' : 'unroutable')),
    );
    expect(await client.depth(queue)).toBe(45);
  });

  it('makes a queue of its topology again that was deleted, once a message found it missing', async () => {
    await using other = rabbitmqOf(client.name());
    await other.broker.open();
    await client.channel.deleteQueue(other.queue);
    const send = () =>
      Promise.all(other.broker.publish([message(other.queue)], { timeoutMs: 9000 }));
    expect(await send()).toEqual([{ outcome: 'unroutable' }]);
    await expect.poll(async () => (await send())[0]?.outcome, soon).toBe('confirmed');
  });

  it('writes numbers of ours always as integers of the same size', async () => {
    const queue = await client.queue();
    const received: Uint8Array[] = [];
    await broker.consume(queue, { maxMessages: 10, maxBytes: 1e6 }, ({ extra }) =>
      received.push(extra!['table'] as Uint8Array),
    );
    await publish([3, 300, 70_000].map((n) => message(queue, { headers: { n } })));
    await expect.poll(() => received.length, soon).toBe(3);
    const types = received.map((table) => String.fromCharCode(table[2]!));
    expect(types).toEqual(['I', 'I', 'I']);
  });

  it('is away before it is opened and after it was closed, and says so', async () => {
    const closed = rabbitmq({ url });
    const send = async () =>
      (await Promise.all(closed.publish([message('q')], { timeoutMs: 9 })))[0];
    const away = { outcome: 'away', failure: { class: 'transient', code: 'BROKER_AWAY' } };
    expect(await send()).toMatchObject(away);
    await closed.open();
    expect(closed.isReady).toBe(true);
    await closed.close();
    expect(await send()).toMatchObject(away);
    expect([closed.isReady, closed.state.state]).toEqual([false, 'closed']);
  });

  function rabbitmqOf(queue: string) {
    const own = rabbitmq({ url, topology: { queues: [{ name: queue }] } });
    return { broker: own, queue, [Symbol.asyncDispose]: () => own.close() };
  }
});
