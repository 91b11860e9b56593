/** What one bad task, one bad callback or one bad row may not do to all the others. */
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { Log } from '../host.ts';
import { giveUp } from '../model/outcomes.ts';
import type { Broker } from '../ports/broker.ts';
import type { NewOutboxMessage } from '../ports/schedule.ts';

const nothing = () => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const engine = createEngine({
    store,
    clock,
    log: silent,
    random: seededRandom(1),
    defer: queueMicrotask,
    policy: { base: '1s', jitter: 'none', maxAttempts: 3 },
    ...options,
  });
  return { clock, store, engine };
}

describe('a settlement that the store will never take', () => {
  it('is let go by itself, and the others are settled', async () => {
    const { clock, store, engine } = stage();
    const { settle } = store;
    store.settle = (batch) =>
      batch.some(({ to }) => to === 'failed')
        ? Promise.reject(new TypeError('no such thing'))
        : settle.call(store, batch);
    engine.handle('bad', () => giveUp('no use'));
    engine.handle('good', () => undefined);
    await engine.start();
    await engine.submitMany([
      { to: 'bad', payload: 1 },
      ...Array.from({ length: 9 }, (_, n) => ({ to: 'good' as const, payload: n })),
    ]);
    await clock.advance('1s');
    expect(await store.list({ status: 'done', limit: 99 })).toHaveLength(9);
    await engine.submit('good', 10);
    await clock.advance('1s');
    expect(await store.list({ status: 'done', limit: 99 })).toHaveLength(10);
  });
});

describe('a callback that throws', () => {
  it('as the review of an item still leaves the item', async () => {
    const review = (): NewOutboxMessage => {
      throw new Error('no review');
    };
    const { clock, engine } = stage({ review });
    engine.handle('bad', () => giveUp('no use'));
    await engine.start();
    const { id } = await engine.submit('bad', 1);
    await engine.submit('bad', 2, { expiresAt: clock.now() + 1 });
    await clock.advance('1m');
    expect(await engine.get(id)).toMatchObject({ status: 'failed' });
    expect((await engine.inbox.items({ limit: 9 })).items).toHaveLength(2);
    expect(engine.stats()).toMatchObject({ held: 0 });
  });

  it('as the logger or a listener, at once or later, ends nothing', async () => {
    const fails = () => Promise.reject(new Error('no'));
    const log = { debug: fails, info: fails, warn: fails, error: fails } as unknown as Log;
    const { clock, engine } = stage({ log, on: () => fails() as never });
    engine.handle('good', () => undefined);
    await engine.start();
    const { id } = await engine.submit('good', 1);
    await clock.advance('1s');
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
  });
});

describe('a handler', () => {
  it.each([
    ['an error as the reason to give up', () => giveUp(new Error('really') as never), 'really'],
    ['nothing as the reason to give up', () => giveUp(undefined as never), 'undefined'],
  ])('that hands over %s is understood', async (_, run, message) => {
    const { clock, engine } = stage();
    engine.handle('odd', run);
    await engine.start();
    await engine.submit('odd', 1);
    await clock.advance('1s');
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([
      { failure: { message } },
    ]);
  });

  it('that wishes what is not known here has failed', async () => {
    const { clock, engine } = stage();
    engine.handle('odd', () => ({ ...giveUp('x'), type: 'teleport' }));
    await engine.start();
    const { id } = await engine.submit('odd', 1);
    await clock.advance('500ms');
    expect(await engine.get(id)).toMatchObject({ attempt: 1, status: 'failed' });
  });
});

describe('a row that somebody wrote by hand', () => {
  it('with endless attempts is delivered like any other', async () => {
    const { clock, store, engine } = stage();
    let runs = 0;
    engine.handle('job', () => void (runs += 1));
    await engine.submit('job', 1, { dueAt: clock.now() + 1000 });
    await store.change([{ id: 1 }], (task) => ({
      result: undefined,
      task: { ...task!, maxAttempts: 2 ** 31 },
    }));
    await engine.start();
    await clock.advance('2s');
    expect(runs).toBe(1);
  });
});

describe('tasks that go straight to the inbox', () => {
  it('leave room for more as they are settled, without a poll', async () => {
    const { clock, store, engine } = stage({ poll: '1h' });
    const { settle } = store;
    store.settle = async (batch) => {
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, 400);
      });
      return settle.call(store, batch);
    };
    engine.handle('job', { concurrency: 5000 }, () => undefined);
    const expiresAt = clock.now() + 1;
    await engine.submitMany(
      Array.from({ length: 12_000 }, (_, n) => ({ to: 'job' as const, payload: n, expiresAt })),
    );
    await clock.advance(10);
    await engine.start();
    await clock.advance('1m');
    expect(await store.list({ status: 'pending', limit: 1 })).toEqual([]);
  });
});

describe('a broker that hangs', () => {
  it('burns no attempt', async () => {
    const broker: Broker = {
      kind: 'queue',
      capabilities: {
        returnsUnroutable: true,
        confirms: true,
        typedHeaders: true,
        redeliversInOrder: true,
        acknowledgesOutOfOrder: true,
        marksRedelivered: true,
        sharesByMessage: true,
        maxMessageBytes: Infinity,
      },
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      isReady: true,
      watch: () => nothing,
      publish: (messages) => messages.map(() => new Promise(nothing)),
      consume: () => Promise.reject(new Error('not asked for')),
    };
    const { clock, engine } = stage({ brokers: [broker], lane: { timeout: '5s' } });
    await engine.start();
    const { id } = await engine.submit({ kind: 'queue', address: 'q' }, 1);
    await clock.advance('6s');
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 0, uncounted: 1 });
  });
});

describe('a policy of its own', () => {
  it('stays with its task, however many others are used meanwhile', async () => {
    const { clock, engine } = stage();
    let fail: (error: Error) => void = nothing;
    engine.handle(
      'job',
      () =>
        new Promise((_resolve, reject) => {
          fail = reject;
        }),
    );
    await engine.start();
    const policy = { base: '1h', jitter: 'none', cap: '2h' } as const;
    const { id } = await engine.submit('job', 1, { policy });
    await clock.advance(10);
    for (let n = 1; n <= 10_001; n++) {
      await engine.submit('elsewhere', 1, { policy: { base: n }, dueAt: clock.now() + 1e9 });
    }
    fail(new Error('down'));
    await clock.advance(10);
    expect(await engine.get(id)).toMatchObject({ delayMs: 3_600_000 });
  });
});

describe('two tasks that always fail', () => {
  it('do not keep their lane closed to the others', async () => {
    const { clock, engine } = stage({
      policy: { base: '1s', cap: '30s', jitter: 'none', maxAttempts: 1_000_000 },
    });
    const late: number[] = [];
    engine.handle('job', ({ dueAt, poison }: { dueAt: number; poison?: boolean }) => {
      if (poison) throw Object.assign(new Error('down'), { code: 'ECONNRESET' });
      late.push(clock.now() - dueAt);
    });
    await engine.start();
    await engine.submit('job', { dueAt: 0, poison: true });
    await engine.submit('job', { dueAt: 0, poison: true });
    for (let n = 0; n < 120; n++) {
      await engine.submit('job', { dueAt: clock.now() });
      await clock.advance('1m');
    }
    const sorted = late.toSorted((a, b) => a - b);
    expect(sorted.length).toBeGreaterThan(115);
    expect(sorted[60]).toBeLessThan(60_000);
    expect(sorted.at(-1)).toBeLessThan(180_000);
  });
});
