import { type Clock, isConfigError } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import { type EngineOptions, type LaneOptions, laneSettings } from '../engine-options.ts';
import { hostOf, type Log } from '../host.ts';
import { rateSettings } from '../model/rate.ts';
import { StoreClock } from '../store-clock.ts';
import { createTestBroker, createTestEngine } from '../testing/index.ts';
import { newTask, put } from '../testing/fixtures.ts';
import { LaneRate } from './lane-rate.ts';

const nothing = () => undefined;

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const said: string[] = [];
  let seed = 0;
  const say = (_: object, message: string) => void said.push(message);
  const log: Log = { debug: nothing, info: nothing, warn: say, error: say };
  const make = (more: Partial<EngineOptions> = {}) =>
    createEngine({
      store,
      clock,
      log,
      random: seededRandom((seed += 1)),
      defer: queueMicrotask,
      policy: { base: '1m', jitter: 'none' },
      poll: '1d',
      ...options,
      ...more,
    });
  return { clock, store, said, make };
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

const many = (to: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ to, payload: n }));

/** The most by which any window has more starts than its burst and rate allow. */
function excess(starts: readonly number[], perSecond: number, burst: number): number {
  let worst = -Infinity;
  for (let first = 0; first < starts.length; first++) {
    for (let last = first; last < starts.length; last++) {
      const windowMs = starts[last]! - starts[first]!;
      worst = Math.max(worst, last - first + 1 - burst - (perSecond * windowMs) / 1000);
    }
  }
  return worst;
}

describe('the rate of a lane', () => {
  it.each([
    { perSecond: 100, burst: 10, seconds: 10 },
    { perSecond: 30, burst: 2, seconds: 10 },
    { perSecond: 1000, burst: 500, seconds: 2 },
    { perSecond: 2, burst: 1, seconds: 100 },
    { perSecond: 0.2, burst: 3, seconds: 500 },
  ])('is kept and reached by one instance: %j', async ({ perSecond, burst, seconds }) => {
    const { clock, make } = stage();
    const starts: number[] = [];
    const options = { concurrency: 50, rate: { perSecond, burst } };
    const engine = make().handle('a', options, () => void starts.push(clock.monotonic()));
    await engine.submitMany(many('a', Math.ceil(perSecond * seconds * 1.2) + burst));
    await engine.start();
    await clock.advance(`${seconds}s`);
    expect(excess(starts, perSecond, burst)).toBeLessThanOrEqual(1e-6);
    expect(starts.length).toBeGreaterThanOrEqual(Math.floor(perSecond * seconds * 0.97));
    expect(starts.filter((at) => at <= 10).length).toBeGreaterThanOrEqual(burst);
  });

  it('is shared by all instances, whatever each could do alone', async () => {
    const { clock, make } = stage();
    const starts: { who: string; at: number }[] = [];
    const engines = ['one', 'two', 'three'].map((who) =>
      make({ instance: who }).handle('a', { rate: 100 }, async () => {
        starts.push({ who, at: clock.monotonic() });
        await sleep(clock, 30);
      }),
    );
    await engines[0]!.submitMany(many('a', 1500));
    for (const engine of engines) await engine.start();
    await clock.advance('10s');
    const times = starts.map(({ at }) => at);
    expect(excess(times, 100, 10)).toBeLessThanOrEqual(1e-6);
    expect(times.length).toBeGreaterThanOrEqual(970);
    for (const who of ['one', 'two', 'three']) {
      expect(starts.filter((start) => start.who === who).length).toBeGreaterThan(0);
    }
  });

  it('holds where the store is slow and an instance crashes, and the others go on at full rate', async () => {
    const { clock, store, make } = stage();
    const random = seededRandom(7);
    const later = async <T>(work: () => Promise<T>): Promise<T> => {
      await sleep(clock, 1 + Math.floor(random() * 10));
      const result = await work();
      await sleep(clock, 1 + Math.floor(random() * 5));
      return result;
    };
    let isDead = false;
    /** What one that crashed asks for is never answered, and what it does counts no more. */
    const member = (mayDie: boolean) => {
      const slow = <T>(work: () => Promise<T>): Promise<T> =>
        mayDie && isDead ? new Promise(nothing) : later(work);
      const own: typeof store = Object.create(store) as typeof store;
      for (const method of ['claim', 'writeState', 'readState', 'settle'] as const) {
        const real = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
        Object.assign(own, { [method]: (...args: unknown[]) => slow(() => real(...args)) });
      }
      for (const method of ['watch', 'open', 'close', 'insert', 'change', 'renew'] as const) {
        Object.assign(own, { [method]: store[method].bind(store) });
      }
      Object.assign(own, { lanes: store.lanes.bind(store), capabilities: store.capabilities });
      const options = { concurrency: 20, rate: { perSecond: 100, burst: 10 } };
      return make({ store: own }).handle('a', options, async () => {
        if (!mayDie || !isDead) starts.push(clock.monotonic());
        await sleep(clock, 40);
      });
    };
    const starts: number[] = [];
    const [one, two] = [member(true), member(false)];
    await make().submitMany(many('a', 3000));
    const started = Promise.all([one.start(), two.start()]);
    await clock.advance('6s');
    await started;
    const before = starts.length;
    expect(before).toBeGreaterThanOrEqual(570);
    isDead = true;
    await clock.advance('5s');
    expect(starts.length - before).toBeGreaterThanOrEqual(470);
    expect(excess(starts, 100, 10)).toBeLessThanOrEqual(1e-6);
  });

  it('claims no more than it may start, and leaves the store alone until the next slot', async () => {
    const { clock, store, make } = stage();
    const calls: number[] = [];
    const { claim, writeState } = store;
    let most = 0;
    store.claim = async (request) => {
      calls.push(clock.monotonic());
      const result = await claim.call(store, request);
      most = Math.max(most, result.tasks.length);
      return result;
    };
    store.writeState = (...args) => {
      calls.push(clock.monotonic());
      return writeState.apply(store, args);
    };
    const at: number[] = [];
    const engine = make().handle('a', { rate: 0.1 }, () => void at.push(clock.monotonic()));
    await engine.submitMany(many('a', 5));
    await engine.start();
    await clock.advance('9s');
    expect(engine.stats()).toMatchObject({ held: 0 });
    calls.length = 0;
    await clock.advance(999);
    expect(calls).toEqual([]);
    await clock.advance('21s');
    expect(at).toEqual([0, 10_010, 20_210, 30_410]);
    expect(most).toBe(1);
  });

  it('holds for what others have lost, too, in lanes that run apart and in others', async () => {
    const broker = createTestBroker();
    const { clock, store, make } = stage({ brokers: [broker], poll: '1s' });
    const at: number[] = [];
    broker.answer = () => {
      at.push(clock.monotonic());
      return { outcome: 'confirmed' };
    };
    for (let n = 0; n < 12; n++) {
      await put(store, newTask({ destination: { kind: 'queue', address: 'q' }, claims: 1 }));
    }
    const runs: number[] = [];
    for (let n = 0; n < 4; n++) {
      const destination = { kind: 'handler', address: 'a' };
      await put(store, newTask({ destination, payload: Buffer.from('1'), claims: 1 }));
    }
    const lane = { rate: { perSecond: 2, burst: 3 } };
    const engine = make({ lane }).handle('a', () => void runs.push(clock.monotonic()));
    await engine.start();
    await clock.advance('30s');
    expect(at).toHaveLength(12);
    expect(excess(at, 2, 3)).toBeLessThanOrEqual(1e-6);
    expect(at.at(-1)).toBeLessThan(8000);
    expect(runs).toHaveLength(4);
    expect(excess(runs, 2, 3)).toBeLessThanOrEqual(1e-6);
  });

  it('gives up what it did not use after a second, and an idle lane takes nothing', async () => {
    const { clock, store, make } = stage();
    let writes = 0;
    const { writeState } = store;
    store.writeState = (...args) => {
      writes += 1;
      return writeState.apply(store, args);
    };
    const starts: number[] = [];
    const options = { rate: { perSecond: 20, burst: 40 } };
    const engine = make().handle('a', options, () => void starts.push(clock.monotonic()));
    await engine.start();
    for (let n = 0; n < 10; n++) {
      await engine.submit('a', n);
      await clock.advance('5s');
    }
    expect(starts).toEqual([0, 5, 10, 15, 20, 25, 30, 35, 40, 45].map((s) => s * 1000));
    expect(writes).toBeLessThanOrEqual(20);
    // What was given up is missing from a burst for a while, and no more.
    await engine.submitMany(many('a', 100));
    await clock.advance(0);
    expect(starts.filter((at) => at === 50_000).length).toBeGreaterThanOrEqual(38);
  });

  it('makes nobody wait for long while less comes than the rate allows, though each takes slots for itself', async () => {
    const { clock, make } = stage();
    const lateMs: number[] = [];
    const [one] = await Promise.all(
      ['one', 'two', 'three'].map(async (instance) => {
        const options = { rate: { perSecond: 100, burst: 10 } };
        const engine = make({ instance }).handle('a', options, (at: number) => {
          lateMs.push(clock.monotonic() - at);
        });
        await engine.start();
        return engine;
      }),
    );
    for (let n = 0; n < 200; n++) {
      await one!.submit('a', clock.monotonic());
      await clock.advance(15);
    }
    await clock.advance('1s');
    expect(lateMs).toHaveLength(200);
    expect(Math.max(...lateMs)).toBeLessThan(100);
  });

  it('does not close the lane for long when the clock of the store is set back', async () => {
    const { clock, make } = stage({ poll: '1s' });
    const starts: number[] = [];
    const engine = make().handle('a', { rate: 10 }, () => void starts.push(clock.monotonic()));
    await engine.submitMany(many('a', 500));
    await engine.start();
    await clock.advance('5s');
    clock.jump(-3_600_000);
    await engine.submitMany(many('a', 500));
    await clock.advance('10s');
    const after = starts.filter((at) => at > 7000);
    expect(after.length).toBeGreaterThanOrEqual(78);
    expect(excess(after, 10, 2)).toBeLessThanOrEqual(1e-6);
  });

  it('is kept when the clock of the store is set back and comes to a slot of before once more', async () => {
    const { clock, store } = stage();
    const starts: number[] = [];
    const host = hostOf({ clock, random: seededRandom(1), defer: queueMicrotask });
    const join = () => {
      const time = new StoreClock(clock);
      const parts = { schedule: store, host, time, changed: nothing };
      const rate = new LaneRate('a', rateSettings(5, 2), parts);
      const look = () => time.saw(clock.now(), clock.monotonic());
      return { rate, look };
    };
    const [idle, busy] = [join(), join()];
    const work = async (seconds: number, more: () => void = nothing) => {
      for (let n = 0; n < seconds * 500; n++) {
        busy.look();
        busy.rate.claimable(2, 0);
        if (busy.rate.take(1)) starts.push(clock.monotonic());
        more();
        await clock.advance('2ms');
      }
    };
    await work(2);
    // Its first try only tells it what the other has taken.
    for (let n = 0; n < 200 && idle.rate.inHand(0) === 0; n++) {
      idle.look();
      idle.rate.claimable(1, 0);
      await clock.advance('2ms');
    }
    expect(idle.rate.inHand(0)).toBe(1);
    clock.jump(-5900);
    starts.length = 0;
    await work(5);
    // With nothing to do for a while, it may use the burst when the time of that slot comes.
    await clock.advance('900ms');
    await work(1, () => {
      idle.look();
      if (idle.rate.inHand(0) > 0 && idle.rate.take(0)) starts.push(clock.monotonic());
    });
    expect(starts.length).toBeGreaterThanOrEqual(25);
    expect(excess(starts, 5, 2)).toBeLessThanOrEqual(1e-6);
  });

  it('is kept when the clock of the store is set ahead and an answer from before that comes late', async () => {
    const { clock, store, make } = stage({ poll: '1s' });
    const { readState } = store;
    let reads = 0;
    store.readState = async (prefix) => {
      const answer = await readState.call(store, prefix);
      // The first is that of the start.
      if (prefix === 'lane:' && ++reads === 2) await sleep(clock, 3600);
      return answer;
    };
    const starts: number[] = [];
    const options = { rate: { perSecond: 5, burst: 2 } };
    const engine = make().handle('a', options, () => void starts.push(clock.monotonic()));
    await engine.submitMany(many('a', 100));
    await engine.start();
    await clock.advance('3s');
    clock.jump(2800);
    await clock.advance('10s');
    expect(reads).toBeGreaterThan(2);
    const after = starts.filter((at) => at > 3000);
    expect(after.length).toBeGreaterThanOrEqual(48);
    expect(excess(after, 5, 2)).toBeLessThanOrEqual(1e-6);
  });

  it('is kept by an instance that has heard nothing since the clock of the store was set ahead', async () => {
    const { clock, store, make } = stage();
    const starts: number[] = [];
    let isDeaf = true;
    const deaf = new Proxy(store, {
      get(target, name) {
        const watch: typeof store.watch = (tell) => store.watch((hint) => isDeaf || tell(hint));
        const value: unknown = name === 'watch' ? watch : Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const join = (on: typeof store) =>
      make({ store: on }).handle('a', { rate: { perSecond: 5, burst: 2 } }, () => {
        starts.push(clock.monotonic());
      });
    const [busy, idle] = [join(store), join(deaf)];
    await busy.start();
    await idle.start();
    await clock.advance('1s');
    clock.jump(3_600_000);
    await busy.submitMany(many('a', 20));
    await clock.advance('1s');
    isDeaf = false;
    await busy.submitMany(many('a', 20));
    await clock.advance('5s');
    expect(starts.length).toBeGreaterThanOrEqual(29);
    expect(excess(starts, 5, 2)).toBeLessThanOrEqual(1e-6);
  });

  it('is kept while the lane is paused and when its breaker opens', async () => {
    const { clock, store, make } = stage();
    const starts: number[] = [];
    const options = { rate: { perSecond: 50, burst: 5 }, failures: 3, concurrency: 4 };
    let isDown = false;
    const engine = make().handle('a', options, () => {
      starts.push(clock.monotonic());
      if (isDown) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
    });
    await engine.submitMany(many('a', 1000));
    await engine.start();
    await clock.advance('1s');
    await engine.pause('handler:a');
    await clock.advance('1s');
    const { documents } = await store.readState('rate:');
    expect(documents).toMatchObject([{ key: 'rate:handler:a' }]);
    await engine.resume('handler:a');
    await clock.advance('1s');
    expect(starts.length).toBeGreaterThan(90);
    isDown = true;
    await clock.advance('1s');
    expect(await engine.lanes()).toMatchObject([{ state: 'open' }]);
    isDown = false;
    await clock.advance('1m');
    expect(starts.length).toBeGreaterThan(900);
    expect(excess(starts, 50, 5)).toBeLessThanOrEqual(1e-6);
  });

  it('waits for a store that cannot be written, says so, and goes on', async () => {
    const { clock, store, said, make } = stage();
    const { writeState } = store;
    store.writeState = () => Promise.reject(new Error('away'));
    let runs = 0;
    const engine = make().handle('a', { rate: 10 }, () => void (runs += 1));
    await engine.submit('a', 1);
    await engine.start();
    await clock.advance('3s');
    expect(runs).toBe(0);
    expect(said).toContain('the rate of a lane could not be shared');
    store.writeState = writeState;
    await clock.advance('2s');
    expect(runs).toBe(1);
  });

  it('goes on where its document is deleted, as by somebody who restores a backup', async () => {
    const { clock, store, make } = stage();
    let runs = 0;
    const engine = make().handle('a', { rate: 10 }, () => void (runs += 1));
    await engine.submitMany(many('a', 5));
    await engine.start();
    await clock.advance('5s');
    expect(runs).toBe(5);
    const { documents } = await store.readState('rate:');
    expect(await store.dropState(documents)).toBe(1);
    const { writeState } = store;
    let writes = 0;
    // A loop without end would leave the test no turn.
    store.writeState = (...args) =>
      ++writes > 100 ? Promise.reject(new Error('too often')) : writeState.apply(store, args);
    await engine.submitMany(many('a', 5));
    await clock.advance('5s');
    expect(runs).toBe(10);
  });

  it('costs a lane without one nothing: no document, no write', async () => {
    const { clock, store, make } = stage();
    let writes = 0;
    const { writeState } = store;
    const engine = make().handle('a', nothing);
    await engine.start();
    store.writeState = (...args) => {
      writes += 1;
      return writeState.apply(store, args);
    };
    await engine.submitMany(many('a', 100));
    await clock.advance('10s');
    expect(writes).toBe(0);
    expect((await store.readState('rate:')).documents).toEqual([]);
  });

  it('works in a test engine', async () => {
    const starts: number[] = [];
    const engine = createTestEngine().handle('a', { rate: 1 }, () => {
      starts.push(engine.clock.monotonic());
    });
    for (let n = 0; n < 5; n++) await engine.submit('a', n);
    await engine.advance('3s');
    expect(starts).toHaveLength(3);
    await engine.advance('10s');
    expect(starts).toHaveLength(5);
    await engine.stop();
  });
});

describe('the option rate', () => {
  const faultsOf = (options: unknown): string[] => {
    try {
      laneSettings(options as LaneOptions, 30_000);
      return [];
    } catch (error) {
      if (!isConfigError(error)) throw error;
      return error.faults.map(({ path, message }) => `${path}: ${message}`);
    }
  };

  it('takes a number, or a rate with its burst', () => {
    for (const rate of [0.2, 10, { perSecond: 5 }, { perSecond: 5, burst: 20 }]) {
      expect(faultsOf({ rate })).toEqual([]);
    }
    expect(laneSettings({ rate: 10 }, 30_000).rate).toEqual(
      laneSettings({ rate: { perSecond: 10, burst: 2 } }, 30_000).rate,
    );
    expect(laneSettings({}, 30_000)).not.toHaveProperty('rate');
  });

  it.each([
    [{ rate: 0 }, ['rate: 0 is not a number from 0.000001 to 100000.']],
    [{ rate: '10' }, ["rate: '10' is not a number from 0.000001 to 100000."]],
    [{ rate: {} }, ['rate.perSecond: is missing: { perSecond: 10, burst: 5 }, or just a number.']],
    [
      { rate: { perSecond: 100, burst: 2 } },
      ['rate.burst: 2 is too few to reach 100 per second: give at least 3, or leave it out.'],
    ],
    [
      { rate: { perSecond: -1, bursts: 1 }, failures: 0 },
      [
        'rate.perSecond: -1 is not a number from 0.000001 to 100000.',
        "rate.bursts: there is no such field. Did you mean 'burst'?",
        'failures: 0 is not a whole number from 1 to 1000000.',
      ],
    ],
  ])('says what is wrong with %j', (options, faults) => {
    expect(faultsOf(options)).toEqual(faults);
  });
});
