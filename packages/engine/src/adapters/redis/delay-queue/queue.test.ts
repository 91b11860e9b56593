import { createClient } from '@redis/client';
import { startProxy, startRedis } from '@redrive/services';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DelayedEntry, DelayQueue } from '../../../ports/delay-queue.ts';
import { redisDelayQueue, type RedisDelayQueueOptions } from '../index.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describeService('Redis', () => {
  let url: string;
  let admin: ReturnType<typeof clientOf>;
  let prefix: string;
  let cases = 0;
  let opened: DelayQueue[] = [];

  beforeAll(async () => {
    url = await sharedServer('Redis');
    admin = clientOf(url);
    await admin.connect();
  });
  afterAll(() => admin.close());
  beforeEach(() => {
    prefix = `queue-test:${process.pid}:${++cases}:`;
  });
  afterEach(async () => {
    await Promise.all(opened.map((queue) => queue.close()));
    opened = [];
  });

  async function open(options: RedisDelayQueueOptions = {}) {
    const at = options.url || options.cluster ? {} : { url };
    const queue = redisDelayQueue({ prefix, log: quiet, ...at, ...options });
    opened.push(queue);
    await queue.open();
    return queue;
  }

  test('loads its scripts again after the server forgot them', async () => {
    const queue = await open();
    await queue.schedule([entry('a')]);
    await admin.scriptFlush();
    await queue.schedule([entry('b')]);
    await admin.scriptFlush();
    const got = await collect(queue);
    await vi.waitFor(() => expect(got.toSorted()).toEqual(['a', 'b']), { timeout: 20_000 });
    await admin.scriptFlush();
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), { timeout: 20_000 });
  });

  test('agrees on the number of slots with the instances before', async () => {
    await open({ slots: 4 });
    const second = await open();
    const third = await open({ slots: 4 });
    await second.schedule(['a', 'b', 'c', 'd', 'e'].map((id) => entry(id, 60_000)));
    expect(await third.depth()).toBe(5);
    const refused = open({ slots: 5 });
    await expect(refused).rejects.toMatchObject({
      code: 'QUEUE_MISMATCH',
      message: expect.stringContaining('Set slots to 4') as string,
    });
    expect(await third.depth()).toBe(5);
  });

  test('writes the number of slots again after Redis lost it', async () => {
    const consuming = await open({ slots: 4 });
    const got = await collect(consuming);
    await admin.del(`${prefix}meta`);
    await vi.waitFor(async () => expect(await admin.get(`${prefix}meta`)).toBe('slots=4'), 5000);
    // Another instance finds the number, though it was not told.
    const second = await open();
    await second.schedule(['a', 'b', 'c', 'd', 'e'].map((id) => entry(id)));
    await vi.waitFor(() => expect(got.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e']));
  });

  test('takes no new entries after another instance began with another number of slots', async () => {
    const errors: string[] = [];
    const log = { ...quiet, error: (_: object, message: string) => void errors.push(message) };
    const first = await open({ slots: 4, log });
    const ids = ['a', 'b', 'c', 'd', 'e'];
    await first.schedule(ids.map((id) => entry(id)));
    await admin.del(`${prefix}meta`);
    await open({ slots: 5 });
    const key = `${prefix}meta`;
    const mismatch = {
      code: 'QUEUE_MISMATCH',
      message: expect.stringContaining(
        `delete that key, and start them with slots set to 4`,
      ) as string,
    };
    await vi.waitFor(() => expect(first.cancel(['z'])).rejects.toMatchObject(mismatch), 5000);
    await expect(first.schedule([entry('f')])).rejects.toMatchObject(mismatch);
    // What it has is not stuck.
    const got = await collect(first);
    await vi.waitFor(() => expect(got.toSorted()).toEqual(ids), 10_000);
    expect(errors).toEqual([mismatch.message]);
    await admin.set(key, 'slots=4');
    await vi.waitFor(() => first.schedule([entry('f')]), 5000);
    await vi.waitFor(() => expect(got).toContain('f'));
  });

  test.each(['q', 'e', 'h'])(
    'refuses a key of somebody else where its own %s would be',
    async (key) => {
      const name = `{${prefix}0}:${key}`;
      await admin.set(name, 'precious');
      const faults = { code: 'KEY_NOT_OURS', message: expect.stringContaining(name) as string };
      await expect(open()).rejects.toMatchObject(faults);
      await admin.del(name);
      const queue = await open();
      await queue.schedule([entry('a', 60_000)]);
      await admin.del(name);
      await admin.set(name, 'precious');
      await expect(queue.cancel(['a'])).rejects.toMatchObject(faults);
      expect(await admin.get(name)).toBe('precious');
    },
  );

  test('refuses what somebody else wrote in place of its number of slots', async () => {
    await admin.set(`${prefix}meta`, 'slots=many');
    await expect(open()).rejects.toMatchObject({ code: 'KEY_NOT_OURS' });
    await admin.del(`${prefix}meta`);
    await admin.hSet(`${prefix}meta`, 'a', 'b');
    await expect(open()).rejects.toMatchObject({
      code: 'KEY_NOT_OURS',
      message: expect.stringContaining(`${prefix}meta`) as string,
    });
  });

  test('says how many entries have lost their content, and goes on with the others', async () => {
    const said: string[] = [];
    const log = { ...quiet, error: (_: object, message: string) => void said.push(message) };
    const queue = await open({ log });
    await queue.schedule(['a', 'b', 'c'].map((id) => entry(id)));
    await admin.hDel(`{${prefix}0}:e`, 'b');
    const got = await collect(queue);
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), { timeout: 20_000 });
    expect(got.toSorted()).toEqual(['a', 'c']);
    expect(said).toEqual([expect.stringContaining('maxmemory-policy')]);
  });

  test('hands over what is due by the thousand to a consumer that takes as many as it may', async () => {
    const queue = await open();
    await queue.schedule([...Array(9000).keys()].map((n) => entry(`${n}`)));
    const got = new Set<string>();
    await queue.consume(
      async (batch) => {
        for (const { id } of batch) got.add(id);
        return batch.map(() => ({ type: 'done' }));
      },
      { maxBatch: 10_000 },
    );
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), 10_000);
    expect(got.size).toBe(9000);
  });

  test('leaves nothing behind in Redis but its number of slots', async () => {
    const queue = await open({ slots: 2 });
    await queue.schedule([...Array(50).keys()].map((n) => entry(`${n}`, n)));
    await queue.cancel(['1', '2']);
    await collect(queue);
    await vi.waitFor(async () => expect(await queue.depth()).toBe(0), { timeout: 20_000 });
    const keys = await admin.keys(`*${prefix}*`);
    expect(keys).toEqual([`${prefix}meta`]);
  });

  test('does not acknowledge what too few replicas have', async () => {
    const queue = await open({ minReplicas: 1, replicaTimeoutMs: 30 });
    await expect(queue.schedule([entry('a', 60_000)])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('0 of 1 replicas') as string,
    });
    // The same again is not acknowledged either, though it is there already.
    await expect(queue.schedule([entry('a', 60_000)])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    expect(await queue.depth()).toBe(1);
  });

  test('resumes when the connection is back', async () => {
    await using proxy = await startProxy(url);
    const queue = await open({ url: proxy.url });
    const got = await collect(queue);
    await queue.schedule([entry('a')]);
    await vi.waitFor(() => expect(got).toEqual(['a']), { timeout: 20_000 });
    proxy.refuse();
    proxy.cut();
    await expect(queue.schedule([entry('lost')])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    proxy.admit();
    const direct = await open();
    await direct.schedule([entry('b')]);
    await vi.waitFor(() => expect(got).toContain('b'), 10_000);
    await vi.waitFor(() => queue.schedule([entry('c')]), 10_000);
    await vi.waitFor(() => expect(got).toContain('c'), 10_000);
  });

  test('tells its consumer why nothing can be taken, for as long as that lasts', async () => {
    await using proxy = await startProxy(url);
    const queue = await open({ url: proxy.url });
    const consumer = await queue.consume(async (batch) => batch.map(() => ({ type: 'done' })), {});
    expect(consumer.trouble).toBeUndefined();
    proxy.refuse();
    proxy.cut();
    await vi.waitFor(() => expect(consumer.trouble).toContain('Redis'), { timeout: 20_000 });
    proxy.admit();
    await vi.waitFor(() => expect(consumer.trouble).toBeUndefined(), { timeout: 20_000 });
  });

  test('gives up a connection without answers', async () => {
    await using proxy = await startProxy(url);
    const queue = await open({ url: proxy.url });
    proxy.stall();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const unanswered = queue.schedule([entry('a')]).catch((error: unknown) => error);
    vi.advanceTimersByTime(10_000);
    vi.useRealTimers();
    expect(await unanswered).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    proxy.resume();
    await vi.waitFor(() => queue.schedule([entry('a', 60_000)]), 10_000);
  });

  test('says at its start what the settings of the server mean', async () => {
    const said: string[] = [];
    const log = { ...quiet, warn: (_: object, message: string) => void said.push(message) };
    await using evicting = await startRedis({
      settings: { maxmemory: '50mb', 'maxmemory-policy': 'allkeys-lru' },
    });
    const queue = await open({ url: evicting.url, log });
    expect(said).toEqual([
      expect.stringContaining('maxmemory-policy is allkeys-lru'),
      expect.stringContaining('neither an append-only file nor snapshots'),
    ]);
    expect((await queue.findings()).map(({ what, level }) => `${what} ${level}`)).toEqual([
      'evicts warn',
      'not-persistent warn',
    ]);
    const other = clientOf(evicting.url);
    await other.connect();
    // Where CONFIG is denied, INFO says it.
    await other.sendCommand(['ACL', 'SETUSER', 'default', '-config']);
    expect((await queue.findings()).map(({ what }) => what)).toEqual(['evicts', 'snapshots-only']);
    await other.close();
  });
});

describe('the options of the Redis delay queue', () => {
  test.each([
    [{}, 'url'],
    [{ url: 'redis://a', cluster: ['redis://b'] }, 'url'],
    [{ url: 'localhost:6379' }, 'url'],
    [{ cluster: [] }, 'cluster'],
    [{ cluster: ['http://a'] }, 'cluster'],
    [{ url: 'redis://a', prefix: 'a{b}' }, 'prefix'],
    [{ url: 'redis://a', slots: 0 }, 'slots'],
    [{ url: 'redis://a', slots: 1.5 }, 'slots'],
    [{ url: 'redis://a', leaseMs: 5 }, 'leaseMs'],
    [{ url: 'redis://a', minReplicas: -1 }, 'minReplicas'],
    [{ url: 'redis://a', slotz: 3 } as never, 'slotz'],
  ] as [RedisDelayQueueOptions, string][])('refuse %o', (options, path) => {
    expect(() => redisDelayQueue(options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        faults: [expect.objectContaining({ path })],
      }) as Error,
    );
  });

  test('name all faults at once', () => {
    const options = { url: 'x', slots: 0, leaseMs: NaN, prefix: 7 as never };
    expect(() => redisDelayQueue(options)).toThrow(
      expect.objectContaining({ faults: expect.objectContaining({ length: 4 }) as never }) as Error,
    );
  });
});

test('a server that is not there is unavailable', async () => {
  const queue = redisDelayQueue({ url: 'redis://127.0.0.1:1' });
  await expect(queue.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await queue.close();
});

function entry(id: string, delayMs = 0): DelayedEntry {
  return { id, delayMs, payload: Buffer.from(id) };
}

async function collect(queue: DelayQueue): Promise<string[]> {
  const got: string[] = [];
  await queue.consume(async (batch) => {
    got.push(...batch.map(({ id }) => id));
    return batch.map(() => ({ type: 'done' }));
  }, {});
  return got;
}

function clientOf(url: string) {
  return createClient({ url });
}
