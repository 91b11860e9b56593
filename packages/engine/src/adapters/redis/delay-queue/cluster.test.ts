import { createClient } from '@redis/client';
import { type RedisCluster, startRedisCluster } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DelayQueue } from '../../../ports/delay-queue.ts';
import { delayQueueSuite } from '../../../testing/index.ts';
import { redisDelayQueue, type RedisDelayQueueOptions } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describeService('Redis cluster', () => {
  let cluster: RedisCluster;
  let cases = 0;

  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());

  async function open(options: RedisDelayQueueOptions): Promise<DelayQueue> {
    const queue = redisDelayQueue({ cluster: cluster.urls, log: quiet, ...options });
    await queue.open();
    return queue;
  }

  const setup = {
    capabilities: { deduplicates: true, cancels: true, counts: true, durable: true },
    async open({ leaseMs }: { leaseMs: number }) {
      const prefix = `suite:${++cases}:`;
      const queues: DelayQueue[] = [];
      const another = async () => {
        const queue = await open({ prefix, leaseMs, minReplicas: 1 });
        queues.push(queue);
        return queue;
      };
      const close = async () => void (await Promise.all(queues.map((one) => one.close())));
      return { queue: await another(), another, leaseMs, close };
    },
  };
  for (const { name, skip, run: assertCase } of delayQueueSuite(setup)) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }

  test('spreads its slots over all primaries', async () => {
    const queue = await open({ prefix: 'spread:' });
    const payload = new Uint8Array(1);
    const ids = Array.from({ length: 500 }, (_, n) => `n${n}`);
    await queue.schedule(ids.map((id) => ({ id, delayMs: 3_600_000, payload })));
    expect(await queue.depth()).toBe(500);
    for (const node of cluster.nodes.slice(0, 3)) {
      const client = createClient({ url: node.url });
      await client.connect();
      expect((await client.keys('*spread:*:q')).length).toBeGreaterThan(0);
      await client.close();
    }
    await queue.close();
  });

  test('loses nothing that replicas confirmed when a primary is killed while entries flow', async () => {
    const options = { prefix: 'killed:', minReplicas: 1, leaseMs: 2000 };
    const producer = await open(options);
    const consumer = await open(options);
    const got = new Map<string, number>();
    await consumer.consume(
      async (batch) => {
        for (const { id } of batch) got.set(id, (got.get(id) ?? 0) + 1);
        return batch.map(() => ({ type: 'done' }));
      },
      { maxBatch: 50 },
    );
    const acknowledged = new Set<string>();
    let refused = 0;
    const ending = new AbortController();
    const produce = async (line: number) => {
      for (let n = 0; !ending.signal.aborted; n++) {
        const payload = new Uint8Array(100);
        const entries = Array.from({ length: 20 }, (_, i) => {
          return { id: `${line}:${n}:${i}`, delayMs: (n * 37 + i * 11) % 400, payload };
        });
        try {
          await producer.schedule(entries);
          for (const { id } of entries) acknowledged.add(id);
        } catch {
          refused += 1;
          await new Promise((resolve) => {
            setTimeout(resolve, 20);
          });
        }
      }
    };
    const producing = [0, 1, 2].map(produce);
    await expect.poll(() => acknowledged.size, { timeout: 20_000 }).toBeGreaterThan(1000);
    await cluster.nodes[1]!.kill();
    await expect.poll(() => refused, { timeout: 20_000 }).toBeGreaterThan(0);
    await expect.poll(() => cluster.nodes[4]!.isPrimary(), { timeout: 20_000 }).toBe(true);
    await cluster.nodes[1]!.start();
    // The new primary has a replica again when its slots take entries again.
    const before = acknowledged.size;
    await expect.poll(() => acknowledged.size, { timeout: 30_000 }).toBeGreaterThan(before + 2000);
    ending.abort();
    await Promise.all(producing);
    const missing = () => [...acknowledged].filter((id) => !got.has(id));
    await expect.poll(() => missing().length, { timeout: 30_000 }).toBe(0);
    expect(missing()).toEqual([]);
    await producer.close();
    await consumer.close();
  }, 150_000);
});
