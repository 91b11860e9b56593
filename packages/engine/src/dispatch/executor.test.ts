import type { Clock } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { EngineError } from '../errors.ts';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { EngineEvent } from '../events.ts';
import type { HandlerContext } from './handlers.ts';
import type { Log } from '../host.ts';

const nothing = () => undefined;

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const events: EngineEvent[] = [];
  const said: string[] = [];
  const say = (_: object, message: string) => void said.push(message);
  const log: Log = { debug: nothing, info: nothing, warn: say, error: say };
  const make = (more: Partial<EngineOptions> = {}) =>
    createEngine({
      store,
      clock,
      log,
      random: seededRandom(1),
      defer: queueMicrotask,
      on: (event) => events.push(event),
      policy: { base: '1m', jitter: 'none' },
      ...options,
      ...more,
    });
  const types = () => events.map(({ type }) => type);
  return { clock, store, events, types, said, make, engine: make() };
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

/** Ends only when its signal is aborted, and says why. */
function obedient(reasons: unknown[] = []) {
  return (_: unknown, { signal }: HandlerContext) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reasons.push((signal.reason as Error).message);
        reject(signal.reason as Error);
      });
    });
}

describe('a delivery that takes too long', () => {
  it('is aborted at its time limit, and has failed', async () => {
    const { clock, engine, events } = stage();
    const reasons: unknown[] = [];
    engine.handle('slow', { timeout: '5s' }, obedient(reasons));
    await engine.start();
    const { id } = await engine.submit('slow', 1);
    await clock.advance(4999);
    expect(reasons).toEqual([]);
    await clock.advance(1);
    expect(reasons).toEqual(['The delivery took longer than its time limit.']);
    expect(await engine.get(id)).toMatchObject({
      attempt: 1,
      failure: { class: 'transient', code: 'TIMEOUT' },
    });
    expect(events.at(-1)).toMatchObject({ type: 'retry', delayMs: 60_000 });
    expect(await engine.inbox.attempts(1)).toMatchObject([{ attempt: 1, durationMs: 5000 }]);
  });

  it('is stopped for each by its own lane and its own start', async () => {
    const { clock, engine } = stage();
    const ended: string[] = [];
    const until =
      (name: string) =>
      (_: unknown, { signal }: HandlerContext) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            ended.push(`${name} ${clock.monotonic()}`);
            reject(signal.reason as Error);
          });
        });
    engine.handle('long', { timeout: '9s' }, until('long'));
    engine.handle('short', { timeout: '3s' }, until('short'));
    await engine.start();
    await engine.submit('long', 1);
    await clock.advance(1000);
    await engine.submit('short', 1);
    await clock.advance(1000);
    await engine.submit('short', 2);
    await clock.advance('20s');
    expect(ended).toEqual(['short 4000', 'short 5000', 'long 9000']);
  });

  it('keeps its slot while it ignores the signal, but not for ever', async () => {
    const { clock, engine } = stage({ lease: '30s' });
    let started = 0;
    engine.handle('deaf', { timeout: '5s', concurrency: 1, failures: 100 }, () => {
      started += 1;
      return new Promise(nothing);
    });
    await engine.start();
    await engine.submitMany([1, 2].map((payload) => ({ to: 'deaf', payload })));
    await clock.advance('5s');
    expect(engine.stats()).toMatchObject({ running: 0, held: 0 });
    await clock.advance('29s');
    expect(started).toBe(1);
    await clock.advance('1s');
    expect(started).toBe(2);
  });

  it('keeps its slot also from what was claimed for it in advance', async () => {
    const { clock, engine } = stage({ lease: '30s', heartbeat: '10s' });
    const started: number[] = [];
    engine.handle('deaf', { timeout: '5s', concurrency: 1, failures: 100 }, (n: number) => {
      started.push(n);
      return n === 2 ? new Promise(nothing) : undefined;
    });
    // The first shows the pace of the lane, and with that the third waits here behind the second.
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'deaf', payload })));
    await engine.start();
    await clock.advance('1s');
    expect(engine.stats()).toMatchObject({ running: 1, held: 2 });
    await clock.advance('33s');
    expect(started).toEqual([1, 2]);
    await clock.advance('1s');
    expect(started).toEqual([1, 2, 3]);
  });

  it('gives its slot back as soon as it really ends', async () => {
    const { clock, engine, events } = stage();
    const ends: (() => void)[] = [];
    engine.handle('deaf', { timeout: '5s', concurrency: 1 }, () => {
      return new Promise<void>((resolve) => {
        ends.push(resolve);
      });
    });
    await engine.start();
    const first = await engine.submit('deaf', 1);
    const second = await engine.submit('deaf', 2);
    await clock.advance('6s');
    expect(ends).toHaveLength(1);
    ends[0]!();
    await clock.advance(0);
    expect(ends).toHaveLength(2);
    // Its late success changes nothing: it was counted as a failure.
    expect(await engine.get(first.id)).toMatchObject({ status: 'pending', attempt: 1 });
    expect(events.filter((event) => 'id' in event && event.id === second.id).at(-1)?.type).toBe(
      'started',
    );
  });
});

describe('a heartbeat', () => {
  it('keeps the lease of work that takes longer than one', async () => {
    const { clock, engine, store, make, types } = stage({ lease: '3s', heartbeat: '1s' });
    let runs = 0;
    const work = () => {
      runs += 1;
      return sleep(clock, 20_000);
    };
    engine.handle('long', { timeout: '1h' }, work);
    const other = make({ instance: 'other', poll: '1s' }).handle('long', { timeout: '1h' }, work);
    await engine.start();
    await other.start();
    const { id } = await engine.submit('long', 1);
    await clock.advance('19s');
    expect(runs).toBe(1);
    const task = await engine.get(id);
    expect(task).toMatchObject({ claims: 1 });
    expect(task!.visibleAtMs).toBeGreaterThan(clock.now());
    await clock.advance('2s');
    expect(await store.get({ id: task!.id })).toMatchObject({ status: 'done' });
    expect(types().toSorted()).toEqual(['accepted', 'done', 'started']);
  });

  it('that fails is said, and the next one may work', async () => {
    const { clock, engine, store, said } = stage({ lease: '30s', heartbeat: '10s' });
    const { renew } = store;
    let calls = 0;
    store.renew = (leases, leaseMs) => {
      calls += 1;
      if (calls === 1) return Promise.reject(away());
      return renew.call(store, leases, leaseMs);
    };
    const reasons: unknown[] = [];
    engine.handle('long', { timeout: '10m' }, obedient(reasons));
    await engine.start();
    await engine.submit('long', 1);
    await clock.advance('5m');
    expect(said).toEqual(['a heartbeat failed']);
    expect(calls).toBeGreaterThan(20);
    expect(reasons).toEqual([]);
  });

  it('keeps a lease from when it was sent, however late its answer comes', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const { renew } = store;
    let calls = 0;
    store.renew = async (leases, leaseMs) => {
      calls += 1;
      if (calls > 1) throw away();
      const answer = await renew.call(store, leases, leaseMs);
      await sleep(clock, 15_000);
      return answer;
    };
    const reasons: unknown[] = [];
    engine.handle('long', { timeout: '1h' }, obedient(reasons));
    await engine.start();
    await engine.submit('long', 1);
    await clock.advance('39s');
    expect(reasons).toEqual([]);
    // Others may have it now: it was renewed at 10 s, not at 25 s.
    await clock.advance('1s');
    expect(reasons).toEqual(['The lease of this task was lost.']);
  });

  it('renews in steps of a thousand, and what waits here too', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const { renew } = store;
    const sizes: number[] = [];
    store.renew = (leases, leaseMs) => {
      sizes.push(leases.length);
      return renew.call(store, leases, leaseMs);
    };
    engine.handle('long', { timeout: '1h', concurrency: 1500 }, obedient());
    await engine.start();
    await engine.submitMany(Array.from({ length: 1500 }, (_, n) => ({ to: 'long', payload: n })));
    await clock.advance('15s');
    expect(sizes).toEqual([1000, 500]);
  });
});

describe('a lease that is lost', () => {
  it('aborts the signal, and what the worker says then changes nothing', async () => {
    const { clock, engine, store, events } = stage({ lease: '30s', heartbeat: '10s' });
    const reasons: unknown[] = [];
    engine.handle('long', { timeout: '1h' }, obedient(reasons));
    await engine.start();
    const { id } = await engine.submit('long', 1);
    await clock.advance('1s');
    // Somebody else took it and is done with it.
    const before = (await store.get({ id: 1 }))!;
    await store.settle([{ id: 1, lease: before.lease!, to: 'done' }]);
    await clock.advance('10s');
    expect(reasons).toEqual(['The lease of this task was lost.']);
    expect(events.at(-1)).toEqual({ type: 'leaseLost', id, lane: 'handler:long', attempt: 1 });
    expect(await engine.get(id)).toMatchObject({ status: 'done', attempt: 0 });
    expect(engine.stats()).toMatchObject({ running: 0, held: 0 });
  });

  it('is noticed also while the store is away, when its time is over', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    store.renew = () => Promise.reject(away());
    const reasons: unknown[] = [];
    engine.handle('long', { timeout: '1h' }, obedient(reasons));
    await engine.start();
    const { id } = await engine.submit('long', 1);
    await clock.advance('29s');
    expect(reasons).toEqual([]);
    await clock.advance('1s');
    expect(reasons).toEqual(['The lease of this task was lost.']);
    // It ended because it was told to: that is no failure of its own, and it may start again.
    await clock.advance('1s');
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 0 });
  });

  it('does not throw away work that was done all the same', async () => {
    const { clock, engine, store } = stage({ lease: '30s', poll: '1m' });
    store.renew = () => Promise.reject(away());
    let end = nothing as () => void;
    engine.handle('long', { timeout: '1h' }, () => {
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await engine.start();
    const { id } = await engine.submit('long', 1);
    await clock.advance('30s');
    end();
    await clock.advance(0);
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
  });

  it('does not block its slot for ever, when its worker is deaf', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    let started = 0;
    engine.handle('deaf', { timeout: '1m', concurrency: 1 }, () => {
      started += 1;
      return started === 1 ? new Promise(nothing) : undefined;
    });
    await engine.start();
    await engine.submit('deaf', 1);
    await clock.advance('1s');
    const { lease } = (await store.get({ id: 1 }))!;
    await store.settle([{ id: 1, lease: lease!, to: 'done' }]);
    const second = await engine.submit('deaf', 2);
    await clock.advance('80s');
    expect(started).toBe(1);
    await clock.advance('30s');
    expect(await engine.get(second.id)).toMatchObject({ status: 'done' });
    expect(engine.stats()).toMatchObject({ running: 0, held: 0 });
  });

  it('is not lost by a row that somebody keeps locked', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const { renew } = store;
    let isLocked = true;
    store.renew = async (leases, leaseMs) =>
      isLocked ? leases.map(() => 'busy') : renew.call(store, leases, leaseMs);
    const reasons: unknown[] = [];
    engine.handle('long', { timeout: '1h' }, obedient(reasons));
    await engine.start();
    await engine.submit('long', 1);
    await clock.advance('15s');
    isLocked = false;
    await clock.advance('1m');
    expect(reasons).toEqual([]);
  });
});

describe('a settle', () => {
  it('is written in the end, however long the store is away, and its task is not run again', async () => {
    const { clock, engine, store, said } = stage({ lease: '30s' });
    const { settle } = store;
    let isAway = true;
    store.settle = (batch) => (isAway ? Promise.reject(away()) : settle.call(store, batch));
    let runs = 0;
    engine.handle('quick', () => void (runs += 1));
    await engine.start();
    const { id } = await engine.submit('quick', 1);
    await clock.advance('1m');
    expect(engine.stats()).toMatchObject({ running: 0, held: 1, unsettled: 1 });
    isAway = false;
    await clock.advance('5s');
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
    expect(runs).toBe(1);
    expect(engine.stats()).toMatchObject({ held: 0, unsettled: 0 });
    expect(new Set(said)).toEqual(new Set(['settling failed, trying again']));
  });

  it('that waits for the store keeps its task from being claimed here once more, without a lease too', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s', poll: '1s' });
    const { settle, renew } = store;
    let isAway = true;
    store.settle = (batch) => (isAway ? Promise.reject(away()) : settle.call(store, batch));
    store.renew = (...of) => (isAway ? Promise.reject(away()) : renew.apply(store, of));
    let runs = 0;
    engine.handle('quick', () => void (runs += 1));
    await engine.start();
    const { id } = await engine.submit('quick', 1);
    await clock.advance('5m');
    expect(runs).toBe(1);
    isAway = false;
    await clock.advance('30s');
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
    expect(runs).toBe(1);
  });

  it('of a row that is locked waits a moment, and holds up no other', async () => {
    const { clock, engine, store } = stage();
    const { settle } = store;
    let calls = 0;
    let isLocked = true;
    store.settle = async (batch) => {
      calls += 1;
      const free = batch.filter(({ id }) => id !== 1 || !isLocked);
      const results = await settle.call(store, free);
      return batch.map((one) => results[free.indexOf(one)] ?? 'busy');
    };
    engine.handle('quick', nothing);
    await engine.start();
    const locked = await engine.submit('quick', 1);
    const free = await engine.submit('quick', 2);
    await clock.advance('1s');
    expect(await engine.get(free.id)).toMatchObject({ status: 'done' });
    expect(await engine.get(locked.id)).toMatchObject({ status: 'pending' });
    // Not without end, as fast as it goes.
    expect(calls).toBeLessThan(100);
    isLocked = false;
    await clock.advance('1s');
    expect(await engine.get(locked.id)).toMatchObject({ status: 'done' });
  });

  it('gives way to a failure that arrived while it was under way', async () => {
    const { clock, engine, store } = stage();
    let end = nothing as () => void;
    engine.handle(
      'quick',
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    await engine.start();
    const { id } = await engine.submit('quick', 1);
    await clock.advance(0);
    await store.change([{ id: 1 }], (task) => ({
      result: undefined,
      task: { ...task!, arrived: true, attempt: 1, dueAtMs: clock.now() + 5000, claims: 0 },
    }));
    end();
    await clock.advance(0);
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 1, arrived: false });
  });
});

describe('what a failure leaves behind', () => {
  it('is one record for each execution, with its time', async () => {
    const { clock, engine } = stage({ policy: { maxAttempts: 3, base: '1s', jitter: 'none' } });
    engine.handle('fails', async (_: unknown, { attempt }: HandlerContext) => {
      await sleep(clock, attempt * 10);
      throw new Error(`down ${attempt}`);
    });
    await engine.start();
    const startMs = clock.now();
    await engine.submit('fails', 1);
    await clock.advance('1m');
    const records = await engine.inbox.attempts(1);
    expect(
      records.map(({ attempt, durationMs, atMs, failure }) => ({
        attempt,
        durationMs,
        atMs: atMs - startMs,
        message: failure.message,
      })),
    ).toEqual([
      { attempt: 1, durationMs: 10, atMs: 10, message: 'down 1' },
      { attempt: 2, durationMs: 20, atMs: 1030, message: 'down 2' },
      { attempt: 3, durationMs: 30, atMs: 3060, message: 'down 3' },
    ]);
  });
});

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'away');
}
