import type { StreamConfig } from '@nats-io/jetstream';
import { type NatsVersion, startNats, startProxy } from '@redrive/services';
import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { checkIdempotency, type ClaimRequest, type IdempotencyStore, idempotent } from 'redrive';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { idempotencySuite, type OpenedIdempotency } from '../../../testing/index.ts';
import { jetstreamIdempotency, type JetstreamIdempotencyOptions } from '../index.ts';
import { nameOf } from './value.ts';

const value = { kind: 'value', text: '1' } as const;

function request(more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { key: 'k', owner: 'a', fingerprint: '', leaseMs: 60_000, takeOver: true, ...more };
}

for (const version of ['2.9', '2.15'] satisfies NatsVersion[]) {
  describeService(`NATS ${version}`, () => {
    let url: string;
    let client: NatsClient;
    let bucket: string;
    const stores: IdempotencyStore[] = [];

    beforeAll(async () => {
      url = await sharedServer(`NATS ${version}`);
      client = await natsClient(url);
    });
    afterAll(() => client.close());
    beforeEach(() => {
      bucket = client.name();
    });
    afterEach(async () => {
      await Promise.all(stores.splice(0).map(async (store) => store.close?.()));
      await client.manager.streams.delete(`KV_${bucket}`).catch(() => false);
    });

    function storeOf(options: JetstreamIdempotencyOptions = {}): IdempotencyStore {
      const store = jetstreamIdempotency(url, { bucket, ...options });
      stores.push(store);
      return store;
    }

    async function open(): Promise<OpenedIdempotency> {
      return {
        store: storeOf(),
        another: async () => storeOf(),
        elsewhere: {
          module: new URL('../index.ts', import.meta.url).href,
          create: `adapter.jetstreamIdempotency(${JSON.stringify(url)}, ${JSON.stringify({ bucket })})`,
        },
        close: async () => undefined,
      };
    }

    for (const { name, skip, run: assertCase } of idempotencySuite({ open, shared: true })) {
      test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
    }

    test('takes a connection of the user, and leaves it open', async () => {
      const store = jetstreamIdempotency(client.connection, { bucket });
      expect(await idempotent(store, 'k', () => 1)).toBe(1);
      await store.close?.();
      expect(client.connection.isClosed()).toBe(false);
      expect(await idempotent(store, 'k', () => 2)).toBe(1);
    });

    test('makes a bucket that keeps keys, and uses one that is there', async () => {
      await storeOf().read('k');
      const { config } = await client.manager.streams.info(`KV_${bucket}`);
      expect(config).toMatchObject({
        storage: 'file',
        max_msgs_per_subject: 1,
        max_age: 0,
        discard: 'new',
        num_replicas: 1,
      });
      expect(await idempotent(storeOf(), 'k', () => 1)).toBe(1);
    });

    test('counts a lease from when its revision was first seen, by the clock of the waiter', async () => {
      let nowMs = 1000;
      const clock = { ...systemLike, monotonic: () => nowMs };
      const [owner, waiter] = [storeOf(), storeOf({ clock })];
      await owner.claim(request({ leaseMs: 10_000 }));
      // However late the waiter comes, it has seen nothing yet.
      nowMs += 60_000;
      const claim = () => waiter.claim(request({ owner: 'b' }));
      expect(await claim()).toMatchObject({ state: 'held', remainingMs: 10_000 });
      nowMs += 9999;
      expect(await claim()).toMatchObject({ state: 'held', remainingMs: 1 });
      expect(await owner.renew('k', 'a', 10_000)).toBe(true);
      nowMs += 1;
      expect(await claim()).toMatchObject({ state: 'held', remainingMs: 10_000 });
      nowMs += 10_000;
      expect(await claim()).toMatchObject({ state: 'claimed', claims: 2 });
      expect(await owner.record('k', 'a', { outcome: value })).toBe(false);
    });

    test('lets results expire by the wall clock of the reader', async () => {
      let nowMs = 1_000_000;
      const store = storeOf({ clock: { ...systemLike, now: () => nowMs } });
      await store.claim(request());
      await store.record('k', 'a', { outcome: value, expiresInMs: 500 });
      nowMs += 499;
      expect(await store.read('k')).toMatchObject({ state: 'done', recordedAtMs: 1_000_000 });
      expect(await store.prune(10)).toBe(0);
      nowMs += 1;
      expect(await store.read('k')).toBeUndefined();
      expect(await store.prune(10)).toBe(1);
    });

    test('prunes the marks of deletions, and tokens grow all the same', async () => {
      const store = storeOf();
      let last = 0;
      for (let i = 0; i < 3; i++) {
        const answer = await store.claim(request({ owner: `o${i}` }));
        if (answer.state !== 'claimed') throw new Error(answer.state);
        expect(answer.fencingToken).toBeGreaterThan(last);
        last = answer.fencingToken;
        await store.release('k');
        const messages = async () =>
          (await client.manager.streams.info(`KV_${bucket}`)).state.messages;
        expect(await messages()).toBe(1);
        expect(await store.prune(10)).toBe(1);
        expect(await messages()).toBe(0);
      }
    });

    test('prunes over many batches', async () => {
      const store = storeOf();
      await store.claim(request({ key: 'kept' }));
      const keys = Array.from({ length: 1100 }, (_, i) => `k${i}`);
      await Promise.all(keys.map(async (key) => store.claim(request({ key }))));
      await Promise.all(keys.slice(100).map(async (key) => store.release(key)));
      expect(await store.prune(700)).toBe(700);
      expect(await store.prune(1000)).toBe(300);
      const { state } = await client.manager.streams.info(`KV_${bucket}`);
      expect(state.messages).toBe(101);
    });

    test('writes no key as it is, and tells broken surrogates apart', async () => {
      const store = storeOf();
      const keys = ['a b:c.*', '\ud800', '\ud801', '\ufffd'];
      for (const key of keys) {
        expect(await store.claim(request({ key }))).toMatchObject({ state: 'claimed' });
      }
      expect(new Set(keys.map(nameOf)).size).toBe(4);
      expect(nameOf('x'.repeat(255))).toMatch(/^[\w-]{43}$/);
    });

    test('refuses a value that somebody else has written', async () => {
      const store = storeOf();
      await store.read('k');
      for (const text of ['no JSON', 'null', '{"owner":1}']) {
        await client.connection.request(`$KV.${bucket}.${nameOf('k')}`, text);
        await expect(store.read('k')).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
      }
    });

    const faults: [string, Partial<StreamConfig>, RegExp][] = [
      ['a history', { max_msgs_per_subject: 5 }, /history.*is 5.*--max-msgs-per-subject=1/],
      ['a TTL', { max_age: 60e9 }, /ttl.*is 60 s.*--max-age=0s/],
      ['memory', { storage: 'memory' }, /storage.*is memory.*nats kv del/],
      ['small values', { max_msg_size: 1000 }, /max_msg_size.*is 1000.*--max-msg-size=-1/],
      ['old keys deleted', { discard: 'old' }, /discard.*is old.*--discard=new/],
      ['no purging', { deny_purge: true }, /deny_purge.*nats kv del/],
      ['other subjects', { subjects: [] }, /subjects.*no bucket/],
    ];
    test.each(faults)('says what is wrong with a bucket: %s', async (_name, config, said) => {
      const all = { max_msgs_per_subject: 1, discard: 'new', storage: 'file', ...config } as const;
      const subjects = config.subjects ? [`other.${bucket}`] : [`$KV.${bucket}.>`];
      await client.manager.streams.add({ name: `KV_${bucket}`, ...all, subjects });
      const store = storeOf();
      await expect(store.read('k')).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
      await expect(store.read('k')).rejects.toThrow(said);
      // Mended while the program runs.
      await client.manager.streams.delete(`KV_${bucket}`);
      expect(await store.read('k')).toBeUndefined();
    });

    test('says so where the bucket has fewer replicas than are asked for', async () => {
      await storeOf().read('k');
      await expect(storeOf({ replicas: 3 }).read('k')).rejects.toThrow(/replicas.*--replicas=3/);
    });

    test('makes the bucket anew where somebody has deleted it', async () => {
      const store = storeOf();
      await store.claim(request());
      await client.manager.streams.delete(`KV_${bucket}`);
      await expect(store.read('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect(await store.read('k')).toBeUndefined();
    });

    test('says that a full bucket is full', async () => {
      await storeOf().read('k');
      const { config } = await client.manager.streams.info(`KV_${bucket}`);
      await client.manager.streams.update(config.name, { ...config, max_bytes: 10 });
      await expect(storeOf().claim(request())).rejects.toMatchObject({ code: 'STORE_FULL' });
    });

    test('records a result without its value where the server does not take it', async () => {
      await using server = await startNats({ version, settings: ['max_payload: 65536'] });
      const store = jetstreamIdempotency(server.url);
      const large = 'x'.repeat(70_000);
      expect(await idempotent(store, 'k', () => large)).toBe(large);
      await expect(idempotent(store, 'k', () => 'again')).rejects.toMatchObject({
        code: 'RESULT_NOT_STORED',
        message: expect.stringContaining('max_payload') as string,
      });
      expect(await idempotent(store, 'fits', () => 'x'.repeat(64_000))).toHaveLength(64_000);
      expect(await checkIdempotency(store, 'fits')).toMatchObject({ state: 'done' });
      await store.close?.();
    });

    test('says that JetStream is off, or takes messages that are too small', async () => {
      await using off = await startNats({ version, jetStream: false });
      const store = jetstreamIdempotency(off.url);
      await expect(store.read('k')).rejects.toThrow(/jetstream.*not enabled.*jetstream \{\}/s);
      await store.close?.();
      await using small = await startNats({ version, settings: ['max_payload: 4096'] });
      const other = jetstreamIdempotency(small.url);
      await expect(other.read('k')).rejects.toThrow(/max_payload.*4096/s);
      await other.close?.();
    });

    test('connects again after the connection was lost', async () => {
      await using proxy = await startProxy(url);
      const store = jetstreamIdempotency(proxy.url, { bucket });
      stores.push(store);
      await store.claim(request());
      const entry = store.claim(request({ key: 'other' }));
      proxy.refuse();
      proxy.cut();
      await Promise.allSettled([entry]);
      await expect(store.read('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      proxy.admit();
      expect(await store.read('k')).toMatchObject({ state: 'held' });
    });
  });
}

const systemLike = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (run: () => void, ms: number) => setTimeout(run, ms),
  clearTimer: (timer: unknown) => clearTimeout(timer as NodeJS.Timeout),
};

describe('options', () => {
  test('with faults are refused, without the URL', () => {
    const refused = expect.objectContaining({ code: 'INVALID_CONFIG' }) as Error;
    expect(() => jetstreamIdempotency('http://u:s3cret@x')).toThrow(refused);
    expect(() => jetstreamIdempotency('http://u:s3cret@x')).not.toThrow(/s3cret/);
    expect(() => jetstreamIdempotency({} as never)).toThrow(/connection/);
    expect(() => jetstreamIdempotency(null as never)).toThrow(/connection/);
    const wrong = { bucket: 'a.b', replicas: 9 };
    expect(() => jetstreamIdempotency('nats://x', wrong)).toThrow(/bucket[^]*replicas/);
    expect(() => jetstreamIdempotency('nats://x', { buckets: 'a' } as never)).toThrow(/buckets/);
  });

  test('no server is a store that is away', async () => {
    const store = jetstreamIdempotency('nats://127.0.0.1:1');
    await expect(store.read('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await store.close?.();
  });
});
