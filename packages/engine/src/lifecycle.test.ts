import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memory } from './adapters/memory/index.ts';
import { sqlite } from './adapters/sqlite/index.ts';
import { createEngine, type Engine } from './engine.ts';
import { EngineError } from './errors.ts';
import type { EngineOptions } from './engine-options.ts';
import type { HandlerContext } from './dispatch/handlers.ts';
import type { Log } from './host.ts';
import { createTestBroker } from './testing/index.ts';

const nothing = () => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const make = (more: Partial<EngineOptions> = {}) =>
    createEngine({
      store,
      clock,
      log: silent,
      random: seededRandom(1),
      defer: queueMicrotask,
      policy: { base: '1m', jitter: 'none' },
      ...options,
      ...more,
    });
  return { clock, store, make, engine: make() };
}

/** Whether a promise is settled, without waiting for it. */
function watched(promise: Promise<unknown>): { isOver: boolean } {
  const state = { isOver: false };
  const end = () => {
    state.isOver = true;
  };
  promise.then(end, end);
  return state;
}

describe('start', () => {
  it('may be called again, and begins once', async () => {
    const { clock, engine, store } = stage();
    let opened = 0;
    store.open = async () => void (opened += 1);
    engine.handle('a', nothing);
    await Promise.all([engine.start(), engine.start()]);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    expect(opened).toBe(1);
    expect(await engine.list({ status: 'done', limit: 9 })).toHaveLength(1);
  });

  it('is not needed to submit, and nothing runs before it', async () => {
    const { clock, engine } = stage();
    let runs = 0;
    engine.handle('a', () => void (runs += 1));
    await engine.submit('a', 1);
    await clock.advance('1h');
    expect(runs).toBe(0);
    await engine.start();
    await clock.advance(0);
    expect(runs).toBe(1);
  });

  it('finds what waited in the store from before', async () => {
    const { clock, engine, make } = stage();
    await engine.submit('a', 1, { dueAt: clock.now() + 5000 });
    await engine.stop();
    const seen: unknown[] = [];
    const later = make().handle('a', (n: number) => seen.push(n));
    await later.start();
    await clock.advance(4999);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toEqual([1]);
  });

  it('says what is wrong with the store, and may be tried again', async () => {
    const { engine, store } = stage();
    const { open } = store;
    store.open = () => Promise.reject(new Error('no such host'));
    await expect(engine.start()).rejects.toThrow('no such host');
    await expect(engine.lanes()).rejects.toThrow('no such host');
    store.open = open;
    expect(await engine.lanes()).toEqual([]);
    await engine.start();
  });

  it('opens brokers, and stop closes them and the deliveries', async () => {
    const calls: string[] = [];
    const broker = createTestBroker();
    broker.open = async () => void calls.push('open broker');
    broker.close = async () => void calls.push('close broker');
    const close = async () => void calls.push('close delivery');
    const delivery = { kind: 'http', deliver: async () => ({ type: 'done' as const }), close };
    const { engine, store } = stage({ brokers: [broker], deliveries: [delivery] });
    store.close = async () => void calls.push('close store');
    await engine.start();
    await engine.stop();
    expect(calls).toEqual(['open broker', 'close broker', 'close delivery', 'close store']);
  });
});

describe('a handler that is registered later', () => {
  it('takes what waited for it, by its own settings', async () => {
    const { clock, engine } = stage();
    await engine.start();
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'late', payload })));
    await clock.advance('1m');
    expect(await engine.lanes()).toMatchObject([{ lane: 'handler:late', state: 'NO_HANDLER' }]);
    let running = 0;
    let most = 0;
    engine.handle('late', { concurrency: 1 }, async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
    });
    await clock.advance(0);
    expect(await engine.list({ status: 'done', limit: 9 })).toHaveLength(3);
    expect(most).toBe(1);
  });
});

describe('stop', () => {
  it('may be called before a start, and again', async () => {
    const { engine } = stage();
    await engine.stop();
    await engine.stop();
    const stopped = { code: 'ENGINE_STOPPED' };
    await expect(engine.start()).rejects.toMatchObject(stopped);
    await expect(engine.submit('a', 1)).rejects.toMatchObject(stopped);
    await expect(engine.get('a')).rejects.toMatchObject(stopped);
    await expect(engine.pause('handler:a')).rejects.toMatchObject(stopped);
  });

  const calls: [string, (engine: Engine) => Promise<unknown>][] = [
    ['submit', (engine) => engine.submit('a', 1)],
    ['submitMany', (engine) => engine.submitMany([{ to: 'a', payload: 1 }])],
    ['get', (engine) => engine.get('00000000-0000-4000-8000-000000000000')],
    ['cancel', (engine) => engine.cancel('00000000-0000-4000-8000-000000000000')],
    ['list', (engine) => engine.list({ limit: 9 })],
    ['lanes', (engine) => engine.lanes()],
    ['pause', (engine) => engine.pause('handler:a')],
    ['inbox.items', (engine) => engine.inbox.items()],
  ];

  it.each(calls)('waits for %s, whose call opens the store', async (_, call) => {
    const file = join(mkdtempSync(join(tmpdir(), 'redrive-stop-')), 'tasks.db');
    onTestFinished(() => rmSync(dirname(file), { recursive: true, force: true }));
    for (const store of [sqlite(file), memory()]) {
      const engine = createEngine({ store, log: silent });
      const called = call(engine);
      await Promise.all([engine.stop(), called]);
      await expect(call(engine)).rejects.toMatchObject({ code: 'ENGINE_STOPPED' });
    }
  });

  it('has stored what was being submitted when it came', async () => {
    const { engine, store } = stage();
    const submitted = engine.submit('a', 1);
    await engine.stop();
    expect(await submitted).toMatchObject({ status: 'accepted' });
    expect(await store.list({ limit: 9 })).toHaveLength(1);
  });

  it('tells a call that outlasts the grace that the engine was stopped', async () => {
    const { clock, engine, store } = stage({ grace: '2s' });
    let fail = nothing as (error: Error) => void;
    store.open = () =>
      new Promise((_, reject) => {
        fail = reject;
      });
    store.close = async () =>
      fail(new EngineError('STORE_UNAVAILABLE', 'it is not open: call open() first'));
    const submitted = engine.submit('a', 1);
    const state = watched(submitted);
    const stopped = engine.stop();
    await clock.advance(1999);
    expect(state.isOver).toBe(false);
    const ended = submitted.catch((error: unknown) => error);
    await clock.advance('10s');
    await stopped;
    expect(await ended).toMatchObject({ code: 'ENGINE_STOPPED' });
  });

  it('waits for what runs and gives back what was not started', async () => {
    const { clock, engine, store } = stage();
    const ends: (() => void)[] = [];
    engine.handle('a', { concurrency: 1 }, () => {
      return new Promise<void>((resolve) => {
        ends.push(resolve);
      });
    });
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'a', payload })));
    await engine.start();
    await clock.advance(0);
    // It has a pace now, so that it holds some in advance.
    ends[0]!();
    await clock.advance(0);
    expect(engine.stats()).toMatchObject({ running: 1, held: 2 });
    const stopped = engine.stop();
    const state = watched(stopped);
    await clock.advance('5s');
    expect(engine.stats()).toMatchObject({ running: 1, held: 1 });
    expect(state.isOver).toBe(false);
    ends[1]!();
    await clock.advance(0);
    await stopped;
    expect(await store.list({ limit: 9 })).toMatchObject([
      { status: 'pending', claims: 0, attempt: 0 },
      { status: 'done' },
      { status: 'done' },
    ]);
    expect((await store.list({ limit: 9 }))[0]).not.toHaveProperty('lease');
  });

  it('aborts what runs when the grace is over, and counts nothing', async () => {
    const { clock, engine, store } = stage({ grace: '3s' });
    const reasons: unknown[] = [];
    engine.handle('a', (_: unknown, { signal }: HandlerContext) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push((signal.reason as Error).message);
          reject(signal.reason as Error);
        });
      });
    });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance(2999);
    expect(reasons).toEqual([]);
    await clock.advance(1);
    await stopped;
    expect(reasons).toEqual(['The engine stops.']);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'pending', attempt: 0, claims: 0 });
    expect(clock.pending).toBe(0);
  });

  it('called again aborts at once', async () => {
    const { clock, engine, store } = stage({ grace: '1h' });
    engine.handle('a', (_: unknown, { signal }: HandlerContext) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    const state = watched(engine.stop());
    await clock.advance('1s');
    expect(state.isOver).toBe(false);
    const again = engine.stop();
    await clock.advance(0);
    await again;
    expect(state.isOver).toBe(true);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'pending', claims: 0 });
  });

  it('leaves a deaf handler its lease: the task runs elsewhere when that is over', async () => {
    const { clock, engine, make, store } = stage({ grace: '3s', lease: '30s' });
    engine.handle('a', { timeout: '20s' }, () => new Promise(nothing));
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance('4s');
    await stopped;
    expect((await store.get({ id: 1 }))?.lease).toBeDefined();
    const starts: number[] = [];
    const other = make({ poll: '1s' }).handle('a', () => starts.push(clock.monotonic()));
    await other.start();
    await clock.advance('1m');
    expect(starts).toHaveLength(1);
    expect(starts[0]).toBeGreaterThanOrEqual(30_000);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'done', attempt: 0 });
  });

  it('leaves a deaf handler its lease also when its time limit ends within the second after the abort', async () => {
    const { clock, engine, make, store } = stage({ grace: '3s', lease: '30s' });
    // It ends 500 ms after it was told to, while the engine still waits for it.
    engine.handle('a', { timeout: 3500 }, () => new Promise(nothing));
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance(3600);
    expect(engine.stats()).toMatchObject({ running: 1, held: 1 });
    await clock.advance(400);
    await stopped;
    expect(await store.get({ id: 1 })).toMatchObject({ claims: 1, lease: expect.anything() });
    const starts: number[] = [];
    const other = make({ poll: '1s' }).handle('a', () => starts.push(clock.monotonic()));
    await other.start();
    await clock.advance('1m');
    expect(starts).toHaveLength(1);
    expect(starts[0]).toBeGreaterThanOrEqual(30_000);
  });

  it('does not wait for what was only being put into the inbox', async () => {
    const { clock, engine, store } = stage({ grace: '1h' });
    engine.handle('a', nothing);
    await engine.submit('a', 1, { expiresAt: clock.now() + 5 });
    await clock.advance('1s');
    const { settle } = store;
    let go = nothing as () => void;
    const gate = new Promise<void>((resolve) => {
      go = () => resolve();
    });
    store.settle = async (batch) => {
      await gate;
      return settle.call(store, batch);
    };
    await engine.start();
    await clock.advance(0);
    expect(engine.stats()).toMatchObject({ running: 0, held: 1 });
    const stopped = engine.stop();
    go();
    await clock.advance(0);
    await stopped;
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'failed' });
  });

  it('loses nothing, whenever it comes', async () => {
    for (let stopAtMs = 0; stopAtMs < 60; stopAtMs += 7) {
      const { clock, make, store } = stage();
      const runs = new Map<number, number>();
      const work = async (n: number) => {
        await new Promise<void>((resolve) => {
          clock.setTimer(resolve, 10);
        });
        runs.set(n, (runs.get(n) ?? 0) + 1);
      };
      const first = make({ instance: 'first' }).handle('a', { concurrency: 3 }, work);
      const tasks = Array.from({ length: 20 }, (_, n) => ({ to: 'a' as const, payload: n }));
      await first.submitMany(tasks);
      await first.start();
      await clock.advance(stopAtMs);
      const stopped = first.stop();
      await clock.advance('1s');
      await stopped;
      const second = make({ instance: 'second' }).handle('a', work);
      await second.start();
      await clock.advance('1m');
      expect(await store.list({ status: 'done', limit: 99 })).toHaveLength(20);
      expect([...runs.values()].every((count) => count === 1)).toBe(true);
      expect(runs.size).toBe(20);
    }
  });

  it('leaves no timer behind', async () => {
    const { clock, engine } = stage({ brokers: [createTestBroker()] });
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1, { dueAt: clock.now() + 50_000 });
    await clock.advance('15s');
    const stopped = engine.stop();
    await clock.advance(0);
    await stopped;
    expect(clock.pending).toBe(0);
  });

  it('gives up on a settle that the store does not take, and nothing is lost by it', async () => {
    const { clock, engine, store, make } = stage({ grace: '2s' });
    const { settle } = store;
    engine.handle('a', nothing);
    await engine.start();
    store.settle = () => Promise.reject(new Error('away'));
    await engine.submit('a', 1);
    await clock.advance('1s');
    const stopped = engine.stop();
    await clock.advance('10s');
    await stopped;
    store.settle = settle;
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'pending', claims: 1 });
    const other = make({ poll: '1s' }).handle('a', nothing);
    await other.start();
    await clock.advance('1m');
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'done' });
  });

  it('says so when something could not even be given back: its lease will end', async () => {
    const said: string[] = [];
    const say = (_: object, message: string) => void said.push(message);
    const log: Log = { ...silent, error: say };
    const { clock, engine, store } = stage({ grace: '1s', log });
    engine.handle('a', { concurrency: 1 }, async (n: number) => {
      if (n > 1) await new Promise(nothing);
    });
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'a', payload })));
    await engine.start();
    await clock.advance(0);
    expect(engine.stats()).toMatchObject({ running: 1, held: 2 });
    store.settle = () => Promise.reject(new Error('away'));
    const stopped = engine.stop();
    await clock.advance('1m');
    await stopped;
    expect(said).toEqual(['not given back: its lease will end']);
  });

  it('says so when something could not be put into the inbox: its lease will end', async () => {
    const said: string[] = [];
    const say = (_: object, message: string) => void said.push(message);
    const { clock, engine, store } = stage({ grace: '1s', log: { ...silent, error: say } });
    engine.handle('a', nothing);
    await engine.submit('a', 1, { expiresAt: clock.now() });
    store.settle = () => Promise.reject(new Error('away'));
    await engine.start();
    await clock.advance('1s');
    const stopped = engine.stop();
    await clock.advance('1m');
    await stopped;
    expect(said).toEqual(['not settled: its lease will end']);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'pending', claims: 1 });
  });
});
