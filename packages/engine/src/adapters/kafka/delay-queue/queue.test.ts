/** What only this queue has: its topics, records of others, its memory, lost partitions. */
import { ConfigResourceTypes, Producer } from '@platformatic/kafka';
import {
  describeService,
  kafkaClient,
  type KafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { DelayAnswer, DelayHandler } from '../../../ports/delay-queue.ts';
import { type KafkaDelayQueue, kafkaDelayQueue, type KafkaDelayQueueOptions } from '../index.ts';
import { loadKafka } from '../client/library.ts';

await loadKafka();

const soon = { timeout: 20_000, interval: 10 };
const done: DelayAnswer = { type: 'done' };

describeService('Kafka', () => {
  let brokers: string;
  let client: KafkaClient;
  const open: KafkaDelayQueue[] = [];
  const said: [object, string][] = [];
  const say = (fields: object, message: string) => void said.push([fields, message]);
  const log = { debug() {}, info() {}, warn: say, error: say };
  beforeAll(async () => {
    const url = await sharedServer('Kafka');
    brokers = new URL(url).host;
    client = await kafkaClient(url);
  });
  afterAll(() => client.close());
  afterEach(async () => {
    said.splice(0);
    await Promise.all(open.splice(0).map((queue) => queue.close()));
  });

  const small = { partitions: 1, tierMs: 300, tiers: 2 };

  async function opened(prefix: string, more: Partial<KafkaDelayQueueOptions> = {}) {
    const queue = kafkaDelayQueue({ brokers, prefix, log, ...small, ...more });
    await queue.open();
    open.push(queue);
    return queue;
  }

  function entries(count: number, delayMs = 0) {
    return Array.from({ length: count }, (_, i) => ({
      id: `e${i}`,
      delayMs,
      payload: Buffer.from(String(i)),
    }));
  }

  function collector() {
    const got: string[] = [];
    const handler: DelayHandler = async (batch) => {
      got.push(...batch.map(({ id }) => id));
      return batch.map(() => done);
    };
    return { got, handler };
  }

  it('makes topics that keep entries for ever, with the time of the broker', async () => {
    const prefix = client.name();
    await opened(prefix);
    const topics = (await client.admin.listTopics()).filter((one) => one.startsWith(prefix));
    expect(topics.toSorted()).toEqual(
      ['clock', 'due', 'unreadable', 'wait-1', 'wait-2'].map((one) => `${prefix}.${one}`),
    );
    const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: `${prefix}.wait-2` };
    const [described] = await client.admin.describeConfigs({ resources: [resource] });
    const configs = described!.configs.map(({ name, value }) => [name, value]);
    expect(Object.fromEntries(configs)).toMatchObject({
      'retention.ms': '-1',
      'retention.bytes': '-1',
      'cleanup.policy': 'delete',
      'message.timestamp.type': 'LogAppendTime',
      'min.insync.replicas': '1',
      'unclean.leader.election.enable': 'false',
    });
  });

  it.each([
    ['retention.ms', '1000'],
    ['retention.bytes', '1000000'],
    ['cleanup.policy', 'compact'],
    ['message.timestamp.type', 'CreateTime'],
  ])('refuses a topic with another %s, and says how to change it', async (name, value) => {
    const prefix = client.name();
    const topic = `${prefix}.due`;
    const good = { 'retention.ms': '-1', 'message.timestamp.type': 'LogAppendTime' };
    const configs = Object.entries({ ...good, [name]: value });
    await client.admin.createTopics({
      topics: [topic],
      partitions: 1,
      replicas: 1,
      configs: configs.map(([key, one]) => ({ name: key, value: one })),
    });
    const queue = kafkaDelayQueue({ brokers, prefix, log, ...small });
    const error = await queue.open().then(
      () => undefined,
      (reason: unknown) => reason as { code: string; message: string },
    );
    expect(error?.code).toBe('TOPIC_UNFIT');
    expect(error?.message).toContain(`kafka-configs.sh --alter --topic ${topic}`);
    expect(error?.message).toContain(name);
  });

  it('warns of topics that are weaker than they could be, and works with them', async () => {
    const prefix = client.name();
    await client.admin.createTopics({
      topics: [`${prefix}.due`],
      partitions: 1,
      replicas: 1,
      configs: Object.entries({
        'retention.ms': '-1',
        'message.timestamp.type': 'LogAppendTime',
        'unclean.leader.election.enable': 'true',
      }).map(([name, value]) => ({ name, value })),
    });
    const queue = await opened(prefix);
    expect(said).toContainEqual([
      expect.objectContaining({ topic: `${prefix}.due`, how: expect.stringContaining('unclean') }),
      expect.any(String),
    ]);
    const { got, handler } = collector();
    await queue.consume(handler, {});
    await queue.schedule(entries(1));
    await vi.waitFor(() => expect(got).toEqual(['e0']), soon);
  });

  it('sets records of others aside with their bytes, and goes on', async () => {
    const prefix = client.name();
    const queue = await opened(prefix);
    const producer = new Producer({ clientId: 'other', bootstrapBrokers: [brokers] });
    const odd = Buffer.from([0, 255, 1]);
    const headers = new Map([[Buffer.from('redrive'), Buffer.from('not ours')]]);
    // One by one: of several the library sends all again when one was refused.
    const others = [
      { topic: `${prefix}.due`, key: odd, value: odd, headers },
      { topic: `${prefix}.wait-1`, value: Buffer.from('plain') },
    ];
    for (const one of others) await producer.send({ messages: [one] });
    await producer.close();
    await queue.schedule(entries(2, 500));
    const { got, handler } = collector();
    await queue.consume(handler, {});
    await vi.waitFor(() => expect(got.toSorted()).toEqual(['e0', 'e1']), soon);
    await vi.waitFor(async () => {
      const aside = await client.records(`${prefix}.unreadable`);
      expect(aside.map(({ value }) => value.toString('hex')).toSorted()).toEqual([
        '00ff01',
        Buffer.from('plain').toString('hex'),
      ]);
      const first = aside.find(({ value }) => value.equals(odd))!;
      expect([...first.key]).toEqual([...odd]);
      const names = first.headerEntries.map(([name, value]) => [String(name), String(value)]);
      expect(names).toContainEqual(['redrive', 'not ours']);
      expect(names).toContainEqual(['x-redrive-topic', `${prefix}.due`]);
    }, soon);
    // They are done: nobody meets them again.
    await vi.waitFor(async () => {
      expect((await client.committed(prefix, `${prefix}.due`)).get(0)).toBeGreaterThanOrEqual(1n);
      expect((await client.committed(prefix, `${prefix}.wait-1`)).get(0)).toBeGreaterThanOrEqual(
        1n,
      );
    }, soon);
  });

  it('deletes what is done from the logs, and nothing that is not', async () => {
    const prefix = client.name();
    const queue = await opened(prefix, { trimEvery: 100 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const got: string[] = [];
    const handler: DelayHandler = async (batch) => {
      got.push(...batch.map(({ id }) => id));
      if (batch.some(({ id }) => id === 'slow')) await promise;
      return batch.map(() => done);
    };
    await queue.consume(handler, { maxBatch: 1 });
    await queue.schedule(entries(20, 400));
    await vi.waitFor(() => expect(got.length).toBe(20), soon);
    await queue.schedule([{ id: 'slow', delayMs: 0, payload: Buffer.from('') }]);
    await vi.waitFor(() => expect(got).toContain('slow'), soon);
    await queue.schedule(entries(5));
    await vi.waitFor(async () => {
      expect(got.length).toBe(26);
      expect(await client.span(`${prefix}.wait-1`)).toBe(0);
      expect(await client.span(`${prefix}.due`)).toBe(6);
    }, soon);
    resolve();
    await vi.waitFor(async () => expect(await client.span(`${prefix}.due`)).toBe(0), soon);
  });

  it('goes on where its memory is full', async () => {
    const prefix = client.name();
    const queue = await opened(prefix, { maxHeld: 1 });
    await queue.schedule(entries(2000, 20));
    const { got, handler } = collector();
    await queue.consume(handler, { maxBatch: 10 });
    await vi.waitFor(() => expect(new Set(got).size).toBe(2000), soon);
    expect(got.length).toBe(2000);
  });

  it('goes through tiers up to its time, and is not early', async () => {
    const prefix = client.name();
    const queue = await opened(prefix, { tierMs: 200, tiers: 3 });
    const startMs = Date.now();
    const arrivals = new Map<string, number>();
    await queue.consume(async (batch) => {
      for (const { id } of batch) arrivals.set(id, Date.now() - startMs);
      return batch.map(() => done);
    }, {});
    const delays = [0, 150, 260, 700, 1100, 2500];
    const list = delays.map((delayMs) => ({ id: `${delayMs}`, delayMs, payload: Buffer.from('') }));
    await queue.schedule(list);
    expect(queue.writesOf(2500)).toBeGreaterThan(3);
    await vi.waitFor(() => expect(arrivals.size).toBe(delays.length), soon);
    for (const [id, tookMs] of arrivals) expect(tookMs).toBeGreaterThanOrEqual(Number(id) - 1);
    const waits = await client.records(`${prefix}.wait-4`);
    expect(waits.map(({ key }) => key.toString())).toContain('2500');
  });

  it('aborts handlers when its partitions are lost, and their answers change nothing', async () => {
    const prefix = client.name();
    const queue = await opened(prefix, { sessionTimeout: 2000 });
    await queue.schedule(entries(1));
    const { promise, resolve } = Promise.withResolvers<void>();
    let signal: AbortSignal | undefined;
    let calls = 0;
    await queue.consume(async (batch, given) => {
      calls += 1;
      if (calls > 1) return batch.map(() => done);
      signal = given;
      await promise;
      return batch.map(() => ({ type: 'again', delayMs: 0 }));
    }, {});
    await vi.waitFor(() => expect(calls).toBe(1), soon);
    // As an operator does: the group goes on without this member.
    await client.admin.removeMembersFromConsumerGroup({ groupId: prefix, members: null });
    await vi.waitFor(() => expect(signal?.aborted).toBe(true), soon);
    resolve();
    // It joins again, and gets the entry again: once, since the late answer did not write another one.
    await vi.waitFor(() => expect(calls).toBe(2), soon);
    const written = await client.records(`${prefix}.due`);
    expect(written.length).toBe(1);
  });
});
