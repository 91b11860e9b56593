import { setTimeout } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { startRedis } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { expect, test, vi } from 'vitest';
import { redisDelayQueue } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const ids = ['a', 'b', 'c'];
const LEASE_MS = 1000;

describeService('Redis', () => {
  test('hands over what waits while Redis has no memory left, and gives its memory back', async () => {
    await using server = await startRedis();
    const admin = createClient({ url: server.url });
    await admin.connect();
    const options = { url: server.url, log: quiet, leaseMs: LEASE_MS };
    const before = redisDelayQueue(options);
    await before.open();
    const entry = (id: string) => ({ id, delayMs: 100, payload: new Uint8Array(10) });
    await before.schedule(ids.map(entry));
    await before.close();

    await admin.sendCommand(['CONFIG', 'SET', 'maxmemory', '1']);
    const queue = redisDelayQueue(options);
    await queue.open();
    await expect(queue.schedule([entry('d')])).rejects.toMatchObject({ code: 'STORE_FULL' });
    const handed: string[] = [];
    await queue.consume(async (batch) => {
      handed.push(...batch.map(({ id }) => id));
      // Its lease is renewed meanwhile.
      await setTimeout(2 * LEASE_MS);
      const isSecond = handed.length > ids.length;
      return batch.map(() => (isSecond ? { type: 'done' } : { type: 'again', delayMs: 50 }));
    }, {});
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), { timeout: 20_000 });
    expect(handed.toSorted()).toEqual([...ids, ...ids].toSorted());
    await queue.close();
    await admin.close();
  }, 60_000);
});
