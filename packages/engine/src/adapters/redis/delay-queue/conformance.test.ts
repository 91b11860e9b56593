import { createClient } from '@redis/client';
import { type Proxy, startProxy } from '@redrive/services';
import { describeService, sharedServer } from '@redrive/services/vitest';
import type { Clock } from 'redrive';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { DelayQueue } from '../../../ports/delay-queue.ts';
import { type DelayQueueSetup, delayQueueSuite } from '../../../testing/index.ts';
import { redisDelayQueue } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describeService('Redis', () => {
  let url: string;
  let admin: ReturnType<typeof clientOf>;
  let cases = 0;

  beforeAll(async () => {
    url = await sharedServer('Redis');
    admin = clientOf(url);
    await admin.connect();
  });
  afterAll(() => admin.close());

  const setupOf = (slots: number): DelayQueueSetup => ({
    capabilities: { deduplicates: true, cancels: true, counts: true, durable: true },
    hooks: ['held', 'kill', 'expireLeases', 'skewed'],
    async open({ leaseMs }) {
      const prefix = `test:${process.pid}:${++cases}:`;
      const tags = Array.from({ length: slots }, (_, i) => `{${prefix}${i}}`);
      const proxies = new Map<DelayQueue, Proxy>();
      const make = async (clock?: Clock) => {
        const proxy = await startProxy(url);
        const options = { url: proxy.url, prefix, slots, leaseMs, log: quiet };
        const queue = redisDelayQueue({ ...options, ...(clock && { clock }) });
        proxies.set(queue, proxy);
        await queue.open();
        return queue;
      };
      return {
        queue: await make(),
        leaseMs,
        another: () => make(),
        skewed: make,
        held: async () =>
          (await Promise.all(tags.map((tag) => admin.zRange(`${tag}:q`, 0, -1)))).flat(),
        async kill(queue) {
          proxies.get(queue)!.refuse();
          proxies.get(queue)!.cut();
        },
        async expireLeases() {
          for (const tag of tags) {
            for (const [id, hand] of Object.entries(await admin.hGetAll(`${tag}:h`))) {
              await admin.hSet(`${tag}:h`, id, hand.replace(/^[^|]+/, 'nobody'));
              await admin.zAdd(`${tag}:q`, { value: id, score: 0 });
            }
          }
        },
        async close() {
          await Promise.all([...proxies.keys()].map((queue) => queue.close()));
          for (const proxy of proxies.values()) await proxy.stop();
        },
      };
    },
  });

  describe('the delay queue in Redis', () => {
    for (const { name, skip, run: assertCase } of delayQueueSuite(setupOf(3)).filter(isWanted)) {
      test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
    }
  });
});

/** Those that take their time run with the long tests. */
function isWanted({ name }: { name: string }): boolean {
  return (
    process.env['REDRIVE_TESTS'] === 'long' ||
    /^(deduplicate|cancel|depth|schedule: (has|keeps|refuses)) ?/.test(name)
  );
}

function clientOf(url: string) {
  return createClient({ url });
}
