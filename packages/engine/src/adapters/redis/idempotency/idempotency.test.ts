import { createClient } from '@redis/client';
import { startProxy } from '@redrive/services';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { type IdempotencyStore, idempotent } from 'redrive';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { idempotencySuite, type OpenedIdempotency } from '../../../testing/index.ts';
import { redisIdempotency } from '../index.ts';

describeService('Redis', () => {
  let url: string;
  let admin: ReturnType<typeof clientOf>;
  let cases = 0;
  let prefix: string;

  beforeAll(async () => {
    url = await sharedServer('Redis');
    admin = clientOf(url);
    await admin.connect();
  });
  afterAll(() => admin.close());
  beforeEach(() => {
    prefix = `test:${process.pid}:${++cases}:`;
  });

  async function open(): Promise<OpenedIdempotency> {
    const stores: IdempotencyStore[] = [];
    const another = async () => {
      const store = redisIdempotency(url, { prefix });
      stores.push(store);
      return store;
    };
    const store = await another();
    return {
      store,
      another,
      elsewhere: {
        module: new URL('../index.ts', import.meta.url).href,
        create: `adapter.redisIdempotency(${JSON.stringify(url)}, ${JSON.stringify({ prefix })})`,
      },
      async close() {
        for (const one of stores) await one.close?.();
      },
    };
  }

  const setup = { open, shared: true, pruning: false };
  for (const { name, skip, run: assertCase } of idempotencySuite(setup)) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }

  test('takes a client of the user, and leaves it open', async () => {
    const store = redisIdempotency(admin, { prefix });
    expect(await idempotent(store, 'k', () => 1)).toBe(1);
    await store.close?.();
    expect(await idempotent(store, 'k', () => 2)).toBe(1);
  });

  test('loads its script again after the server forgot it', async () => {
    const store = redisIdempotency(admin, { prefix });
    await store.read('k');
    await admin.scriptFlush();
    expect(await idempotent(store, 'k', () => 1)).toBe(1);
  });

  test('lets the server delete results that expire, and nothing else', async () => {
    const store = redisIdempotency(admin, { prefix });
    await idempotent(store, 'gone', () => 1, { expiresIn: '1h' });
    await idempotent(store, 'kept', () => 1);
    await store.claim({ key: 'held', owner: 'a', fingerprint: '', leaseMs: 50, takeOver: true });
    const lives = await Promise.all(
      ['gone', 'kept', 'held'].map((key) => admin.pTTL(prefix + key)),
    );
    expect(lives[0]).toBeGreaterThan(3_500_000);
    expect(lives.slice(1)).toEqual([-1, -1]);
    expect(await store.prune(100)).toBe(0);
  });

  test.each([true, false])('gives up a connection without answers (connected: %s)', async (is) => {
    await using proxy = await startProxy(url);
    const store = redisIdempotency(proxy.url, { prefix });
    if (is) await store.read('k');
    proxy.stall();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const unanswered = Promise.resolve(store.read('k')).catch((error: unknown) => error);
    vi.advanceTimersByTime(10_000);
    vi.useRealTimers();
    expect(await unanswered).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    proxy.resume();
    expect(await store.read('k')).toBeUndefined();
    await store.close?.();
  });

  test.each([true, false])(
    'closes though the server does not answer (connected: %s)',
    async (is) => {
      await using proxy = await startProxy(url);
      const store = redisIdempotency(proxy.url, { prefix });
      if (is) await store.read('k');
      proxy.stall();
      const unanswered = Promise.resolve(store.read('k')).catch((error: unknown) => error);
      await store.close?.();
      expect(await unanswered).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    },
  );

  test('says what is wrong: no server, a server that only reads, a key of something else', async () => {
    const nowhere = redisIdempotency('redis://127.0.0.1:1', { prefix });
    await expect(nowhere.read('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await nowhere.close?.();
    for (const [said, code] of [
      ['READONLY You can not write', 'STORE_READ_ONLY'],
      ['OOM command not allowed', 'STORE_FULL'],
      ['LOADING', 'STORE_UNAVAILABLE'],
    ]) {
      const fails = () => Promise.reject(new Error(said));
      const store = redisIdempotency({ evalSha: fails, eval: fails });
      await expect(store.read('k')).rejects.toMatchObject({ code });
    }
  });
});

test('refuses what is neither a URL nor a client', () => {
  const refused = expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error;
  expect(() => redisIdempotency('localhost:6379')).toThrow(refused);
  expect(() => redisIdempotency({} as never)).toThrow(refused);
  expect(() => redisIdempotency('redis://x', { prefix: 5 as never })).toThrow(refused);
});

function clientOf(url: string) {
  return createClient({ url });
}
