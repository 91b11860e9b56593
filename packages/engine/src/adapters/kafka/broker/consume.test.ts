import {
  type KafkaCluster,
  type KafkaServer,
  startKafka,
  startKafkaCluster,
} from '@redrive/services';
import {
  describeService,
  kafkaClient,
  type KafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { Received } from '../../../ports/broker.ts';
import { type KafkaBroker, kafka, type KafkaOptions } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const soon = { timeout: 60_000, interval: 10 };
const limits = { maxMessages: 1000, maxBytes: 1 << 24 };
const TEST_MS = 240_000;
const open: KafkaBroker[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((broker) => broker.close()));
});

async function opened(brokers: string | readonly string[], more: Partial<KafkaOptions> = {}) {
  const policy = { base: '20ms', cap: '200ms' } as const;
  const broker = kafka({ brokers, log: quiet, policy, sessionTimeout: 6000, ...more });
  await broker.open();
  open.push(broker);
  return broker;
}

function texts(got: readonly Received[]): string[] {
  return got.map(({ payload }) => Buffer.from(payload).toString());
}

async function publish(broker: KafkaBroker, address: string, all: readonly string[]) {
  const messages = all.map((text) => ({ address, payload: Buffer.from(text), headers: {} }));
  const answers = await Promise.all(broker.publish(messages, { timeoutMs: 20_000 }));
  expect(answers.every(({ outcome }) => outcome === 'confirmed')).toBe(true);
}

describeService('Kafka', () => {
  let brokers: string;
  let client: KafkaClient;
  beforeAll(async () => {
    const url = await sharedServer('Kafka');
    brokers = new URL(url).host;
    client = await kafkaClient(url);
  });
  afterAll(() => client.close());

  it('commits where it begins, and never past a record that nobody has acknowledged', async () => {
    const topic = await client.topic();
    const broker = await opened(brokers);
    const group = `redrive-${topic}`;
    await publish(broker, topic, ['0', '1', '2', '3']);
    const got: Received[] = [];
    const consumer = await broker.consume(topic, limits, (one) => got.push(one));
    await vi.waitFor(() => expect(got.length).toBe(4), soon);
    expect((await client.committed(group, topic)).get(0)).toBe(0n);
    await consumer.ack([got[0]!, got[2]!, got[3]!]);
    await vi.waitFor(async () => {
      expect((await client.committed(group, topic)).get(0)).toBe(1n);
    }, soon);
    await consumer.ack([got[1]!]);
    await vi.waitFor(async () => {
      expect((await client.committed(group, topic)).get(0)).toBe(4n);
    }, soon);
  });

  it('shares partitions with another consumer, and hands nothing over twice by that', async () => {
    const topic = await client.topic({ partitions: 4 });
    const [one, two] = [await opened(brokers), await opened(brokers)];
    const [mine, theirs]: [Received[], Received[]] = [[], []];
    const first = await one.consume(topic, limits, (message) => {
      mine.push(message);
      void first.ack([message]);
    });
    const all = Array.from({ length: 400 }, (_, i) => String(i));
    for (let i = 0; i < 200; i += 20) await publish(one, topic, all.slice(i, i + 20));
    await vi.waitFor(() => expect(mine.length).toBeGreaterThan(0), soon);
    const second = await two.consume(topic, limits, (message) => {
      theirs.push(message);
      void second.ack([message]);
    });
    for (let i = 200; i < 400; i += 20) await publish(one, topic, all.slice(i, i + 20));
    await vi.waitFor(() => expect(mine.length + theirs.length).toBe(400), soon);
    expect(new Set([...texts(mine), ...texts(theirs)]).size).toBe(400);
    // Records come to both of them in the end.
    let extra = 400;
    await vi.waitFor(async () => {
      await publish(
        one,
        topic,
        Array.from({ length: 40 }, () => String(extra++)),
      );
      expect(theirs.length).toBeGreaterThan(0);
    }, soon);
  });

  it('waits for a topic that is not there yet, and says so', async () => {
    const topic = client.name();
    const broker = await opened(brokers);
    const got: Received[] = [];
    const consumer = await broker.consume(topic, limits, (one) => got.push(one));
    expect(consumer.state).toMatchObject({ state: 'waiting', why: expect.stringContaining(topic) });
    await client.admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
    await vi.waitFor(() => expect(consumer.state.state).toBe('consuming'), soon);
    await publish(broker, topic, ['a']);
    await vi.waitFor(() => expect(texts(got)).toEqual(['a']), soon);
  });

  it('keeps what it was given back until it is acknowledged', async () => {
    const topic = await client.topic();
    const broker = await opened(brokers);
    await publish(broker, topic, ['0', '1']);
    let times = 0;
    const done: string[] = [];
    const consumer = await broker.consume(topic, limits, (one) => {
      times += 1;
      if (times < 6) void consumer.requeue([one]);
      else {
        done.push(Buffer.from(one.payload).toString());
        void consumer.ack([one]);
      }
    });
    await vi.waitFor(() => expect(done.toSorted()).toEqual(['0', '1']), soon);
    await consumer.stop();
    expect((await client.committed(`redrive-${topic}`, topic)).get(0)).toBe(2n);
  });

  it(
    'is away while its broker is, and goes on when it comes back',
    async () => {
      await using server: KafkaServer = await startKafka();
      const own = await kafkaClient(server.address);
      const topic = await own.topic();
      const broker = await opened(server.address, { connectTimeout: 2000 });
      const got: Received[] = [];
      const consumer = await broker.consume(topic, limits, (one) => {
        got.push(one);
        void consumer.ack([one]);
      });
      await publish(broker, topic, ['before']);
      await vi.waitFor(() => expect(got.length).toBe(1), soon);
      await server.kill();
      await vi.waitFor(() => expect(broker.isReady).toBe(false), soon);
      const message = { address: topic, payload: Buffer.from('x'), headers: {} };
      const [away] = await Promise.all(broker.publish([message], { timeoutMs: 1000 }));
      expect(away).toMatchObject({ outcome: 'away', failure: { code: 'BROKER_AWAY' } });
      await server.start();
      await vi.waitFor(() => expect(broker.isReady).toBe(true), soon);
      await publish(broker, topic, ['after']);
      await vi.waitFor(() => expect(texts(got)).toContain('after'), soon);
      await own.close();
    },
    TEST_MS,
  );

  it(
    'commits what was acknowledged while its broker was away, as soon as it is back',
    async () => {
      await using server: KafkaServer = await startKafka();
      await using own = await kafkaClient(server.address);
      const topic = await own.topic();
      // For longer than the broker is away: it is a member all the time, and nothing comes again.
      const broker = await opened(server.address, { connectTimeout: 2000, sessionTimeout: 45_000 });
      const got: Received[] = [];
      const consumer = await broker.consume(topic, limits, (one) => got.push(one));
      await publish(broker, topic, ['0']);
      await vi.waitFor(() => expect(got.length).toBe(1), soon);
      await server.kill();
      await vi.waitFor(() => expect(broker.isReady).toBe(false), soon);
      await consumer.ack(got);
      await server.start();
      await vi.waitFor(async () => {
        expect((await own.committed(`redrive-${topic}`, topic)).get(0)).toBe(1n);
      }, soon);
      expect(texts(got)).toEqual(['0']);
    },
    TEST_MS,
  );

  it(
    'never takes an election for a missing topic, and loses nothing by it',
    async () => {
      await using cluster: KafkaCluster = await startKafkaCluster();
      await using own = await kafkaClient(cluster.addresses);
      const topic = await own.topic({ partitions: 3, replicas: 3 });
      const broker = await opened(cluster.addresses, {
        connectTimeout: 2000,
        requestTimeout: 5000,
      });
      const got = new Set<string>();
      const consumer = await broker.consume(topic, limits, (one) => {
        got.add(Buffer.from(one.payload).toString());
        void consumer.ack([one]);
      });
      const confirmed = new Set<string>();
      const outcomes = new Set<string>();
      const ending = new AbortController();
      const flow = (async () => {
        for (let i = 0; !ending.signal.aborted; i++) {
          const all = Array.from({ length: 20 }, (_, k) => `${i}-${k}`);
          const messages = all.map((text) => ({
            address: topic,
            payload: Buffer.from(text),
            headers: {},
          }));
          const answers = await Promise.all(broker.publish(messages, { timeoutMs: 3000 }));
          for (const [k, { outcome }] of answers.entries()) {
            outcomes.add(outcome);
            if (outcome === 'confirmed') confirmed.add(all[k]!);
          }
          await new Promise(setImmediate);
        }
      })();
      const isWorking = async () => {
        const before = confirmed.size;
        await vi.waitFor(() => expect(confirmed.size).toBeGreaterThan(before + 200), soon);
      };
      await isWorking();
      await cluster.servers[0]!.kill();
      await isWorking();
      await cluster.servers[0]!.start();
      await isWorking();
      await cluster.servers[1]!.end();
      await isWorking();
      ending.abort();
      await flow;
      const missing = () => [...confirmed].filter((text) => !got.has(text)).length;
      await vi.waitFor(() => expect(missing()).toBe(0), soon);
      expect(outcomes).not.toContain('unroutable');
      expect(outcomes).not.toContain('impossible');
    },
    TEST_MS,
  );
});
