import { createClient } from '@redis/client';
import { type RedisServer, startProxy, startRedis } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stickySuite } from '../../testing/sticky-suite.ts';
import { redisSticky } from './index.ts';

describeService('Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  let prefixes = 0;
  const cases = stickySuite({
    shared: true,
    async open(now) {
      const options = { url: server.url, prefix: `${prefixes++}:`, now };
      const [store, twin] = [redisSticky(options), redisSticky(options)];
      const close = async () => {
        await Promise.allSettled([store.close(), twin.close()]);
      };
      return { store, twin, closeStore: () => store.close(), close };
    },
  });
  for (const { name, skip, run: assertCase } of cases) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }

  test('expire in Redis by themselves, under a key that tells nothing', async () => {
    const store = redisSticky(server.url);
    await store.set('alice@example.com', { provider: 'a', expires_at_ms: Date.now() + 60_000 });
    const client = createClient({ url: server.url });
    await client.connect();
    const keys = await client.keys('redrive:sticky:*');
    expect(keys).toEqual([expect.stringMatching(/^redrive:sticky:[\w-]{43}$/)]);
    const leftMs = await client.pTTL(keys[0]!);
    expect(leftMs).toBeGreaterThan(50_000);
    expect(leftMs).toBeLessThanOrEqual(60_000);
    await client.set(keys[0]!, 'what others wrote');
    expect(await store.get('alice@example.com')).toBeUndefined();
    await client.set(keys[0]!, '{"provider":1}');
    expect(await store.get('alice@example.com')).toBeUndefined();
    client.destroy();
    await store.close();
  });

  test('a server that goes away costs sessions only, and is found again when it is back', async () => {
    const proxy = await startProxy(server.url);
    const said: string[] = [];
    let next = Promise.withResolvers<void>();
    const store = redisSticky({
      url: proxy.url,
      onFault: (what) => {
        said.push(what);
        next.resolve();
      },
    });
    const session = { provider: 'a', expires_at_ms: Date.now() + 60_000 };
    await store.set('k', session);
    expect(store.state).toEqual({ connected: true });
    proxy.refuse();
    proxy.cut();
    await next.promise;
    next = Promise.withResolvers();
    expect(await store.get('k')).toBeUndefined();
    await store.set('k', session);
    await store.delete('k');
    expect(store.state).toMatchObject({ connected: false, why: expect.any(String) });
    proxy.admit();
    await next.promise;
    expect(await store.get('k')).toEqual(session);
    expect(said).toEqual(['the connection to Redis was lost', 'Redis is connected again']);
    await store.close();
    await proxy.stop();
  });
});

describe('sticky sessions in a Redis that is not there', () => {
  test('are none, and closing does not wait', async () => {
    const store = redisSticky('redis://127.0.0.1:1');
    expect(await store.get('k')).toBeUndefined();
    expect(store.state).toMatchObject({ connected: false });
    await store.close();
  });
});
