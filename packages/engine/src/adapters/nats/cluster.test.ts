import { setImmediate } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import {
  type NatsCluster,
  type NatsServer,
  type NatsVersion,
  startNatsCluster,
} from '@redrive/services';
import { describeService, natsClient } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { type NatsBroker, nats } from './index.ts';

const soon = { timeout: 60_000, interval: 10 };
const policy = { base: '10ms', cap: '200ms' } as const;
const limits = { maxMessages: 100, maxBytes: 1 << 24 };
const TEST_MS = 300_000;
/** Kills of leaders, one after the other. */
const ROUNDS = 4;

const brokers: NatsBroker[] = [];
afterEach(async () => {
  await Promise.all(brokers.splice(0).map((broker) => broker.close()));
});

async function opened(urls: readonly string[]): Promise<NatsBroker> {
  const quiet = () => undefined;
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const options = { ackWait: 2000, heartbeat: 1000, connectTimeout: 2000 };
  const broker = nats({ url: urls, policy, log, ...options });
  brokers.push(broker);
  await broker.open();
  await vi.waitFor(() => expect(broker.isReady).toBe(true), soon);
  return broker;
}

async function withStream({ urls }: NatsCluster): Promise<string> {
  await using client = await natsClient(urls);
  const config = { name: 'WORK', subjects: ['work.*'], num_replicas: 3 };
  await vi.waitFor(() => client.manager.streams.add(config), soon);
  return 'work.a';
}

/** What the consumer has received, each acknowledged at once. */
async function received(broker: NatsBroker, subject: string): Promise<Set<string>> {
  const got = new Set<string>();
  const consumer = await broker.consume(subject, limits, (one: Received) => {
    got.add(Buffer.from(one.payload).toString());
    void consumer.ack([one]);
  });
  return got;
}

/** The server that leads the stream, or its consumer, when all replicas have caught up. */
async function leader(cluster: NatsCluster, of: 'stream' | 'consumer'): Promise<NatsServer> {
  return vi.waitFor(async () => {
    await using client = await natsClient(cluster.urls);
    const { streams, consumers } = client.manager;
    const stream = await streams.info('WORK');
    const consumer = await consumers.info('WORK', 'redrive-work_a');
    for (const { cluster: group } of [stream, consumer]) {
      expect(group?.replicas?.filter(({ current }) => current).length).toBe(2);
    }
    const { cluster: group } = of === 'stream' ? stream : consumer;
    const isLeader = ({ url }: NatsServer) => `server-${new URL(url).port}` === group?.leader;
    return cluster.servers.find(isLeader)!;
  }, soon);
}

for (const version of ['2.9', '2.15'] satisfies NatsVersion[]) {
  describeService(`NATS ${version}`, () => {
    // A consumer with replicas says that a request is over before its last messages come.
    it(
      'brings a backlog of a stream with three replicas, and nothing of it twice',
      async () => {
        await using cluster = await startNatsCluster({ version });
        const subject = await withStream(cluster);
        await using client = await natsClient(cluster.urls);
        const js = jetstream(client.connection);
        const texts = Array.from({ length: 2000 }, (_, i) => `m${i}`);
        for (let i = 0; i < texts.length; i += 200) {
          await Promise.all(texts.slice(i, i + 200).map((text) => js.publish(subject, text)));
        }
        const got = await received(await opened(cluster.urls), subject);
        await vi.waitFor(() => expect(got.size).toBe(texts.length), soon);
        const info = await client.manager.consumers.info('WORK', 'redrive-work_a');
        // Each delivery has a number: as many as there are messages.
        expect(info.delivered.consumer_seq).toBe(texts.length);
      },
      TEST_MS,
    );

    it(
      'goes on, and loses nothing, while one leader after the other is killed and started again',
      async () => {
        await using cluster = await startNatsCluster({ version });
        const subject = await withStream(cluster);
        const broker = await opened(cluster.urls);
        const got = await received(broker, subject);
        const confirmed = new Set<string>();
        const ending = new AbortController();
        const publishing = (async () => {
          for (let i = 0; !ending.signal.aborted; i++) {
            const texts = Array.from({ length: 20 }, (_, k) => `${i}-${k}`);
            const messages = texts.map((text) => ({
              address: subject,
              payload: Buffer.from(text),
              headers: {},
            }));
            const answers = await Promise.all(broker.publish(messages, { timeoutMs: 2000 }));
            answers.forEach(({ outcome }, k) => {
              if (outcome === 'confirmed') confirmed.add(texts[k]!);
            });
            // An answer of "away" takes no time, and nothing else would get any.
            await setImmediate();
            // As fast as it is received: a backlog would hide a consumer that does nothing.
            await vi.waitFor(() => expect(got.size + 200).toBeGreaterThan(confirmed.size), soon);
          }
        })();
        const moves = async () => {
          const before = got.size;
          await vi.waitFor(() => expect(got.size).toBeGreaterThan(before + 200), soon);
        };
        await moves();
        for (let round = 0; round < ROUNDS; round++) {
          const server = await leader(cluster, round % 2 === 0 ? 'stream' : 'consumer');
          await server.kill();
          await moves();
          await server.start();
          await moves();
        }
        ending.abort();
        await publishing;
        const missing = () => [...confirmed].filter((text) => !got.has(text));
        await vi.waitFor(() => expect(missing()).toEqual([]), soon);
      },
      TEST_MS,
    );
  });
}
