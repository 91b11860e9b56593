import { type NatsCluster, type NatsServer, startNatsCluster } from '@redrive/services';
import { describeService, natsClient } from '@redrive/services/vitest';
import { idempotent } from 'redrive';
import { expect, test, vi } from 'vitest';
import { jetstreamIdempotency } from '../index.ts';

const soon = { timeout: 60_000, interval: 20 };
/** The store says that it is away, or does not say anything in time. */
const isAway = new Set<unknown>(['STORE_UNAVAILABLE', 'TimeoutError']);
const WORKERS = 4;
const TEST_MS = 180_000;

/** The server that leads the stream of the bucket. */
async function leaderOf({ urls, servers }: NatsCluster): Promise<NatsServer> {
  await using client = await natsClient(urls);
  const { cluster } = await client.manager.streams.info('KV_redrive-idempotency');
  const port = cluster?.leader?.replace('server-', '');
  return servers.find(({ url }) => new URL(url).port === port)!;
}

/** The code of what the store said, or the name of the error. */
function reasonOf(error: unknown): unknown {
  const { cause = error } = Object(error) as { cause?: unknown };
  const { name, code } = Object(cause) as { name?: unknown; code?: unknown };
  return typeof code === 'string' ? code : name;
}

for (const version of ['2.9', '2.15'] as const) {
  describeService(`NATS ${version}`, () => {
    test(
      'a cluster of three whose leader is killed keeps every key, and each effect is one',
      async () => {
        await using cluster = await startNatsCluster({ version });
        const options = { replicas: 3, connectTimeout: 2000, heartbeat: 1000 };
        const stores = Array.from({ length: WORKERS }, () =>
          jetstreamIdempotency(cluster.urls, options),
        );
        await vi.waitFor(async () => stores[0]!.read('warm-up'), soon);
        const effects = new Map<string, number>();
        const results = new Map<string, number>();
        const errors = new Set<unknown>();
        const ending = new AbortController();
        // Every key is wanted by all workers. Leases are long: nothing but a claim that is lost would repeat an effect.
        const work = async (store: (typeof stores)[number]) => {
          for (let i = 0; !ending.signal.aborted; i++) {
            const key = `k${i}`;
            const effect = async () => {
              effects.set(key, (effects.get(key) ?? 0) + 1);
              return i;
            };
            const call = () => idempotent(store, key, effect, { lease: '20s', maxWait: '60s' });
            for (let isDone = false; !isDone && !ending.signal.aborted;) {
              try {
                expect(await call()).toBe(i);
                results.set(key, i);
                isDone = true;
              } catch (error) {
                errors.add(reasonOf(error));
              }
            }
          }
        };
        const working = stores.map(work);
        const moves = async (count: number) => {
          const before = results.size;
          await vi.waitFor(() => expect(results.size).toBeGreaterThan(before + count), soon);
        };
        await moves(20);
        const leader = await leaderOf(cluster);
        await leader.kill();
        await moves(20);
        await leader.start();
        await moves(20);
        ending.abort();
        await Promise.all(working);
        expect([...effects].filter(([, times]) => times > 1)).toEqual([]);
        // A call that fails says that the store was away, and nothing else.
        expect([...errors].filter((one) => !isAway.has(one))).toEqual([]);
        for (const [key, result] of results) {
          const found = await vi.waitFor(async () => stores[0]!.read(key), soon);
          expect(found).toMatchObject({ state: 'done', outcome: { text: String(result) } });
        }
        await Promise.all(stores.map(async (store) => store.close?.()));
      },
      TEST_MS,
    );
  });
}
