import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { memory } from '../../adapters/memory/index.ts';
import { createEngine } from '../../engine.ts';
import type { DelayHandler, DelayQueue } from '../../ports/delay-queue.ts';
import type { Store } from '../../ports/store.ts';
import { storeDelayQueue } from './store-queue.ts';

const payload = new Uint8Array();
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describe('the delay queue on a store', () => {
  async function opened(options: Parameters<typeof storeDelayQueue>[1] = {}) {
    const clock = virtualClock();
    const store = memory({ clock });
    const queue = storeDelayQueue(store, { clock, leaseMs: 1000, ...options });
    await queue.open();
    return { clock, store, queue };
  }

  async function collect(queue: DelayQueue): Promise<string[]> {
    const got: string[] = [];
    await queue.consume(async (batch) => {
      got.push(...batch.map(({ id }) => id));
      return batch.map(() => ({ type: 'done' }));
    }, {});
    return got;
  }

  test('is left alone by an engine on the same store, and leaves its tasks alone', async () => {
    const { clock, store, queue } = await opened();
    const said: string[] = [];
    const log = {
      debug() {},
      info() {},
      warn: (_: object, text: string) => void said.push(text),
      error() {},
    };
    const handled: unknown[] = [];
    const engine = createEngine({ store, clock, log, poll: '1s' }).handle(
      'work',
      (one) => void handled.push(one),
    );
    await engine.start();
    await queue.schedule([
      { id: 'a', delayMs: 10_000, payload },
      { id: 'now', delayMs: 0, payload },
    ]);
    await engine.submit('work', 1);
    await clock.advance('1h');
    expect(handled).toEqual([1]);
    expect(await queue.depth()).toBe(2);
    expect((await engine.lanes()).map(({ lane }) => lane)).toEqual(['handler:work']);
    expect((await engine.laneCounts()).NO_HANDLER).toBe(0);
    const listed = await engine.list({ limit: 10 });
    expect(listed.map(({ lane }) => lane)).toEqual(['handler:work']);
    expect(await engine.list({ status: 'pending', limit: 10 })).toEqual([]);
    expect(await engine.list({ lane: 'delay-queue:default', limit: 10 })).toHaveLength(2);
    const got = await collect(queue);
    await engine.submit('work', 2);
    await clock.advance('1m');
    expect(got.toSorted()).toEqual(['a', 'now']);
    expect(handled).toEqual([1, 2]);
    expect(said).toEqual([]);
    await queue.close();
    await engine.stop();
  });

  test('never goes to the inbox, however often its consumers are lost', async () => {
    const { clock, store, queue } = await opened();
    await queue.schedule([{ id: 'a', delayMs: 0, payload }]);
    const lane = 'delay-queue:default';
    for (let lost = 0; lost < 10; lost++) {
      const from =
        lost === 0
          ? ({ kind: 'due', lanes: [{ lane, limit: 1 }] } as const)
          : ({ kind: 'lost', lanes: [lane], limit: 1 } as const);
      const { tasks } = await store.claim({ from, lease: lost + 1, leaseMs: 10, maxBytes: 1000 });
      expect(tasks).toHaveLength(1);
      await clock.advance(20);
    }
    let redeliveries = 0;
    await queue.consume(async ([one]) => {
      redeliveries = one!.redeliveries;
      return [{ type: 'done' }];
    }, {});
    await clock.advance('1s');
    expect(redeliveries).toBe(10);
    expect(await queue.depth()).toBe(0);
    expect((await store.census()).open).toEqual({});
    await queue.close();
  });

  test('takes over from a consumer that died what that one took since the last look', async () => {
    const { clock, store, queue } = await opened();
    const gate = Promise.withResolvers<void>();
    const got: string[] = [];
    const handler: DelayHandler = async (batch) => {
      got.push(...batch.map(({ id }) => id));
      await gate.promise;
      return batch.map(() => ({ type: 'done' }));
    };
    await queue.consume(handler, { concurrency: 1 });
    await queue.schedule([{ id: 'a', delayMs: 0, payload }]);
    await clock.advance(100);
    expect(got).toEqual(['a']);
    await queue.schedule([{ id: 'b', delayMs: 0, payload }]);
    const from = { kind: 'due', lanes: [{ lane: 'delay-queue:default', limit: 1 }] } as const;
    const { tasks } = await store.claim({ from, lease: 7, leaseMs: 1000, maxBytes: 1000 });
    expect(tasks).toHaveLength(1);
    gate.resolve();
    await clock.advance('2s');
    expect(got).toEqual(['a', 'b']);
    await queue.close();
  });

  test('writes an answer again whose entry somebody had locked', async () => {
    const { clock, store, queue } = await opened({ log: quiet });
    const { settle } = store;
    let tries = 0;
    store.settle = async (all) => {
      tries += 1;
      return tries === 1 ? all.map(() => 'busy') : settle.call(store, all);
    };
    const got: object[] = [];
    const handler: DelayHandler = async ([one]) => {
      got.push({ atMs: clock.monotonic(), redeliveries: one!.redeliveries });
      return [got.length === 1 ? { type: 'again', delayMs: 10_000 } : { type: 'done' }];
    };
    await queue.consume(handler, {});
    await queue.schedule([{ id: 'a', delayMs: 0, payload }]);
    await clock.advance(10_000);
    expect(got).toEqual([{ atMs: 0, redeliveries: 0 }]);
    await clock.advance(1000);
    expect(got).toMatchObject([{}, { redeliveries: 0 }]);
    expect(tries).toBe(2);
    await queue.close();
  });

  test('removes the rows of entries that are over, and those of nobody else', async () => {
    const { clock, store, queue } = await opened();
    await store.insert([doneTask]);
    await collect(queue);
    for (let i = 0; i < 25; i++) {
      await queue.schedule(
        Array.from({ length: 100 }, (_, j) => ({ id: `${i}:${j}`, delayMs: 0, payload })),
      );
      await clock.advance('1s');
    }
    const rows = await countOf(store);
    expect(rows).toBeLessThanOrEqual(1001);
    expect(await store.list({ status: 'done', lane: 'handler:other', limit: 10 })).toHaveLength(1);
    await queue.close();
  });

  test('waits anew for an id whose entry is over, no less than before', async () => {
    const { clock, queue } = await opened();
    const got = await collect(queue);
    for (const count of [1, 2]) {
      await queue.schedule([{ id: 'a', delayMs: 60_000, payload }]);
      await clock.advance(59_999);
      expect(got).toHaveLength(count - 1);
      await clock.advance(2000);
      expect(got).toHaveLength(count);
    }
    await queue.close();
  });

  test('has other entries by another name', async () => {
    const { clock, store, queue } = await opened({ name: 'one' });
    const other = storeDelayQueue(store, { clock, name: 'two' });
    await other.open();
    await queue.schedule([{ id: 'a', delayMs: 0, payload }]);
    expect(await other.depth()).toBe(0);
    expect(await other.cancel(['a'])).toEqual([false]);
    await other.schedule([{ id: 'a', delayMs: 0, payload }]);
    expect(await queue.depth()).toBe(1);
    const got = await collect(other);
    await clock.advance('1s');
    expect(got).toEqual(['a']);
    expect(await queue.depth()).toBe(1);
    await other.close();
  });

  test.each([
    { name: '' },
    { name: 'a b' },
    { name: 7 as never },
    { leaseMs: 10 },
    { leaseMs: NaN },
  ])('refuses %o', (options) => {
    expect(() => storeDelayQueue(memory(), options)).toThrow(
      expect.objectContaining({ code: 'INVALID_ENGINE' }) as Error,
    );
  });
});

const doneTask = {
  messageId: '00000000-0000-4000-8000-000000000001',
  destination: { kind: 'handler', address: 'other' },
  lane: 'handler:other',
  payload,
  status: 'done',
  attempt: 0,
  maxAttempts: 1,
  uncounted: 0,
  delayMs: 0,
  generation: 0,
  claims: 0,
  arrived: false,
  cancelling: false,
  blocked: false,
  due: { inMs: 0 },
} as const;

async function countOf(store: Store): Promise<number> {
  return (await store.list({ limit: 10_000 })).length;
}
