import type { Clock } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import { type EngineOptions, type LaneOptions, laneSettings } from '../engine-options.ts';
import type { EngineEvent } from '../events.ts';
import { hostOf, type Log } from '../host.ts';
import { type Entry, Lanes } from './lanes.ts';
import { createTestBroker } from '../testing/index.ts';

const nothing = () => undefined;

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const events: EngineEvent[] = [];
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
      on: (event) => events.push(event),
      policy: { maxAttempts: 4, base: '1s', cap: '1s', jitter: 'none' },
      ...options,
      ...more,
    });
  return { clock, store, events, said, make, engine: make() };
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

const down = () => {
  throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
};

const many = (to: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ to, payload: n }));

describe('a breaker', () => {
  it('opens after failures in a row of more than one task, and then nothing is tried', async () => {
    const { clock, engine, store } = stage();
    let runs = 0;
    let isDown = false;
    engine.handle('a', { concurrency: 1, failures: 5, openFor: '30s' }, () => {
      runs += 1;
      if (isDown) down();
    });
    await engine.start();
    await engine.submitMany(many('a', 20));
    await clock.advance('1s');
    isDown = true;
    runs = 0;
    await engine.submitMany(many('a', 100));
    await clock.advance('10s');
    expect(runs).toBe(5);
    expect(await engine.lanes()).toMatchObject([{ lane: 'handler:a', state: 'open', running: 0 }]);
    // An outage that is known burns no attempts: only those that found out have counted.
    const attempts = (await store.list({ limit: 999 })).map(({ attempt }) => attempt);
    expect(attempts.filter((attempt) => attempt > 0)).toEqual([1, 1, 1, 1, 1]);
  });

  it('opens after twice as many where nothing is known of the lane yet', async () => {
    const { clock, engine } = stage();
    let runs = 0;
    engine.handle('a', { concurrency: 1, failures: 5, openFor: '30s' }, () => {
      runs += 1;
      return down();
    });
    await engine.submitMany(many('a', 100));
    await engine.start();
    await clock.advance('10s');
    expect(runs).toBe(10);
    expect(await engine.lanes()).toMatchObject([{ lane: 'handler:a', state: 'open' }]);
  });

  it.each([1, 10])('does not open where every second delivery fails, %i at once', async (at) => {
    const { clock, engine, store } = stage({ policy: { maxAttempts: 50, base: 10, cap: 10 } });
    const random = seededRandom(7);
    const states = new Set<string>();
    engine.handle('a', { concurrency: at }, async () => {
      await sleep(clock, 5 + 10 * random());
      if (random() < 0.5) down();
    });
    await engine.submitMany(many('a', 1000));
    await engine.start();
    for (let i = 0; i < 60; i++) {
      await clock.advance('1s');
      for (const { state } of await engine.lanes()) states.add(state);
    }
    expect([...states]).toEqual(['closed']);
    expect(await store.list({ status: 'done', limit: 1000 })).toHaveLength(1000);
  });

  it('does not open for one task that keeps failing: that is its own trouble', async () => {
    const { clock, engine } = stage({ policy: { maxAttempts: 50, base: 10, cap: 10 } });
    let runs = 0;
    engine.handle('a', { failures: 5 }, () => {
      runs += 1;
      return down();
    });
    await engine.submit('a', 1);
    await engine.start();
    await clock.advance('1m');
    expect(runs).toBe(50);
    expect(await engine.lanes()).toMatchObject([{ state: 'closed' }]);
  });

  it('does not open for failures that say nothing of the lane, nor where one works in between', async () => {
    const { clock, engine } = stage();
    engine.handle('wrong', { concurrency: 1 }, () => {
      throw Object.assign(new Error('no such order'), { status: 404 });
    });
    engine.handle('busy', { concurrency: 1 }, () => {
      throw Object.assign(new Error('slow down'), { status: 429 });
    });
    engine.handle('some', { concurrency: 1 }, (n: number) => (n % 4 === 3 ? undefined : down()));
    for (const to of ['wrong', 'busy', 'some']) await engine.submitMany(many(to, 30));
    await engine.start();
    await clock.advance(0);
    const states = (await engine.lanes()).map(({ lane, state }) => `${lane} ${state}`);
    expect(states.sort()).toEqual([
      'handler:busy closed',
      'handler:some closed',
      'handler:wrong closed',
    ]);
  });

  it('counts nothing for what was under way when it opened, up to maxUncounted', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', { concurrency: 8, failures: 3 }, async () => {
      await sleep(clock, 100);
      return down();
    });
    await engine.submitMany(many('a', 8));
    await engine.start();
    await clock.advance(100);
    const tasks = await store.list({ limit: 99 });
    expect(tasks.filter(({ attempt }) => attempt === 1)).toHaveLength(6);
    expect(tasks.filter(({ attempt, uncounted }) => attempt === 0 && uncounted === 1)).toHaveLength(
      2,
    );
  });

  it('gives back what waited here, so that nothing of it starts', async () => {
    const { clock, engine, store } = stage();
    let isDown = false;
    let runs = 0;
    engine.handle('a', { concurrency: 1, failures: 2 }, async () => {
      runs += 1;
      await sleep(clock, 10);
      if (isDown) down();
    });
    await engine.submitMany(many('a', 200));
    await engine.start();
    await clock.advance(500);
    expect(engine.stats().held).toBeGreaterThan(10);
    isDown = true;
    const before = runs;
    await clock.advance(100);
    expect(engine.stats()).toMatchObject({ held: 0, running: 0 });
    expect(runs - before).toBeLessThanOrEqual(3);
    for (const task of await store.list({ status: 'pending', limit: 999 })) {
      expect(task).toMatchObject({ claims: 0 });
      expect(task).not.toHaveProperty('lease');
    }
  });

  it('opens at once for a broker that refuses, also a single message', async () => {
    const broker = createTestBroker();
    const failure = { class: 'transient', code: 'NACK' } as const;
    broker.answer = () => ({ outcome: 'refused', failure });
    const { clock, engine } = stage({ brokers: [broker], lane: { failures: 3 } });
    const { id } = await engine.submit({ kind: 'queue', address: 'q' }, 1);
    await engine.start();
    await clock.advance('5s');
    expect(await engine.lanes()).toMatchObject([{ lane: 'queue:q', state: 'open' }]);
    expect(await engine.get(id)).toMatchObject({ status: 'pending', attempt: 0, uncounted: 6 });
    broker.answer = () => ({ outcome: 'confirmed' });
    await clock.advance('5m');
    expect(await engine.get(id)).toMatchObject({ status: 'retried', attempt: 0 });
  });

  it('opens here also when it cannot be told to the others', async () => {
    const { clock, engine, store, said } = stage();
    const { writeState } = store;
    store.writeState = () => Promise.reject(new Error('away'));
    let runs = 0;
    engine.handle('a', { concurrency: 1, failures: 2 }, () => {
      runs += 1;
      return down();
    });
    await engine.submitMany(many('a', 50));
    await engine.start();
    await clock.advance(900);
    expect(runs).toBe(4);
    expect(said).toContain('the state of a lane could not be shared');
    store.writeState = writeState;
  });

  it('keeps the state of somebody who was faster', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', { concurrency: 1, failures: 2 }, down);
    await engine.start();
    await engine.submitMany(many('a', 5));
    // Written before the engine has heard of it.
    const paused = { paused: { atMs: clock.now(), by: 'ops' }, breaker: { state: 'closed' } };
    await store.writeState('lane:handler:a', paused, 0);
    await clock.advance(0);
    expect(await engine.lanes()).toMatchObject([{ state: 'paused' }]);
    const { documents } = await store.readState('lane:');
    expect(documents).toMatchObject([{ value: { paused: { by: 'ops' } } }]);
  });

  it('is known to an instance that starts later', async () => {
    const { clock, engine, make } = stage();
    engine.handle('a', { concurrency: 1, failures: 2, openFor: '1m' }, down);
    await engine.submitMany(many('a', 20));
    await engine.start();
    await clock.advance(0);
    const stopped = engine.stop();
    await clock.advance(0);
    await stopped;
    let runs = 0;
    const other = make().handle('a', () => void (runs += 1));
    await other.start();
    await clock.advance('59s');
    expect(runs).toBe(0);
    await clock.advance('5s');
    expect(runs).toBe(20);
  });
});

describe('a probe', () => {
  /** More than one instance holds in advance. */
  const COUNT = 300;

  function outage(settings: object = {}) {
    const { clock, make, store, ...rest } = stage();
    const world = {
      isDown: true,
      starts: [] as { who: string; n: number; at: number; running: number }[],
    };
    let running = 0;
    const work = (who: string) => async (n: number) => {
      running += 1;
      world.starts.push({ who, n, at: clock.monotonic(), running });
      await sleep(clock, 100);
      running -= 1;
      if (world.isDown) down();
    };
    const options = { concurrency: 8, failures: 3, openFor: '30s', ...settings } as const;
    const engines = ['one', 'two'].map((who) =>
      make({ instance: who }).handle('a', options, work(who)),
    );
    const open = async () => {
      await engines[0]!.submitMany(many('a', COUNT));
      for (const engine of engines) await engine.start();
      await clock.advance('1s');
      expect(await engines[1]!.lanes()).toMatchObject([{ state: 'open' }]);
      world.starts.length = 0;
    };
    return { ...rest, clock, store, world, engines, open };
  }

  it('is one in all, and when it works the lane is ramped up by one instance: 1, 2, 4, then all', async () => {
    const { clock, store, world, open } = outage();
    await open();
    await clock.advance('27s');
    expect(world.starts).toEqual([]);
    world.isDown = false;
    await clock.advance('10s');
    const { starts } = world;
    const rounds = new Map<number, { who: Set<string>; count: number }>();
    for (const { at, who } of starts) {
      const round = rounds.get(at) ?? { who: new Set(), count: 0 };
      round.who.add(who);
      round.count += 1;
      rounds.set(at, round);
    }
    const counts = [...rounds.values()].map(({ count }) => count);
    expect(counts.slice(0, 3)).toEqual([1, 2, 4]);
    const probers = new Set([...rounds.values()].slice(0, 3).flatMap(({ who }) => [...who]));
    expect(probers.size).toBe(1);
    // Closed for all, and both take part.
    expect(Math.max(...counts)).toBeGreaterThan(8);
    expect(new Set(starts.map(({ who }) => who))).toEqual(new Set(['one', 'two']));
    const { documents } = await store.readState('lane:');
    expect(documents).toMatchObject([{ value: { breaker: { state: 'closed' } } }]);
    expect(await store.list({ status: 'done', limit: 999 })).toHaveLength(COUNT);
  });

  it('that fails opens the lane for twice as long, burns nothing, and the next is another task', async () => {
    const { clock, store, world, open } = outage();
    await open();
    const before = new Map((await store.list({ limit: 999 })).map((task) => [task.id, task]));
    await clock.advance('5m');
    const times = world.starts.map(({ at }) => at);
    const gaps = times.slice(1).map((at, i) => Math.round((at - times[i]!) / 1000));
    expect(gaps).toEqual([60, 120]);
    expect(new Set(world.starts.map(({ n }) => n)).size).toBe(3);
    for (const { id, attempt, uncounted } of await store.list({ limit: 999 })) {
      expect({ attempt, uncounted }).toEqual({
        attempt: before.get(id)!.attempt,
        uncounted: before.get(id)!.uncounted,
      });
    }
    // What it found out is kept all the same.
    const probed = world.starts[0]!.n + 1;
    const records = await store.attempts(probed);
    expect(records.at(-1)).toMatchObject({ failure: { code: 'ECONNREFUSED' } });
  });

  it('whose instance is gone is taken over by another', async () => {
    const { clock, world, engines, open } = outage();
    await open();
    world.isDown = false;
    await clock.advance(28_950);
    while (world.starts.length === 0) await clock.advance(10);
    const [first] = world.starts;
    const index = first!.who === 'one' ? 0 : 1;
    // Killed: its timers, and what it would write, are gone with it.
    const stopped = engines[index]!.stop();
    await clock.advance('1m');
    await stopped;
    const others = world.starts.filter(({ who }) => who !== first!.who);
    expect(others.length).toBeGreaterThan(0);
    await clock.advance('1m');
    expect(world.starts).toHaveLength(COUNT);
  });

  it('of a lane of one closes it by one success', async () => {
    const { clock, engines, world, open } = outage({ concurrency: 1 });
    await open();
    world.isDown = false;
    await clock.advance('31s');
    expect((await engines[0]!.lanes())[0]?.state).toBe('closed');
  });
});

describe('an answer that is older than a write', () => {
  /** Reads the lanes now, and has the answer come when it is let go. */
  function held(store: ReturnType<typeof memory>) {
    const { readState } = store;
    let release = nothing as () => void;
    store.readState = async (prefix) => {
      const answer = await readState.call(store, prefix);
      if (!prefix.startsWith('lane:')) return answer;
      store.readState = readState;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return answer;
    };
    return { release: () => release() };
  }

  it.each(['no document', 'an older one'])('does not undo it: %s', async (before) => {
    const { clock, engine, store } = stage();
    let runs = 0;
    engine.handle('a', { concurrency: 1, failures: 2, openFor: '30s' }, () => {
      runs += 1;
      return down();
    });
    await engine.start();
    if (before === 'an older one') {
      await engine.pause('handler:a');
      await engine.resume('handler:a');
    }
    const answer = held(store);
    const reading = engine.lanes();
    await clock.advance(0);
    await engine.submitMany(many('a', 50));
    await clock.advance(10);
    expect(runs).toBe(4);
    answer.release();
    await reading;
    await clock.advance('10s');
    expect(runs).toBe(4);
    expect(await engine.lanes()).toMatchObject([{ state: 'open' }]);
  });

  it('does not undo one that is still under way', async () => {
    const { clock, engine, store } = stage();
    let runs = 0;
    engine.handle('a', { concurrency: 1, failures: 2, openFor: '30s' }, () => {
      runs += 1;
      return down();
    });
    await engine.start();
    const { writeState } = store;
    store.writeState = async (...args) => {
      await sleep(clock, 5000);
      return writeState.apply(store, args);
    };
    await engine.submitMany(many('a', 50));
    await clock.advance(10);
    expect(runs).toBe(4);
    expect(await engine.lanes()).toMatchObject([{ state: 'open' }]);
    await clock.advance('10s');
    expect(runs).toBe(4);
  });
});

describe('a pause', () => {
  it('is shared by all instances, and ends for all', async () => {
    const { clock, make, store } = stage();
    const starts: string[] = [];
    const work = (who: string) => async () => {
      starts.push(who);
      await sleep(clock, 100);
    };
    const one = make({ instance: 'one' }).handle('a', { concurrency: 2 }, work('one'));
    const two = make({ instance: 'two' }).handle('a', { concurrency: 2 }, work('two'));
    await one.start();
    await two.start();
    await one.submitMany(many('a', 40) as { to: 'a'; payload: unknown }[]);
    await clock.advance(250);
    await one.pause('handler:a', 'the operator');
    await clock.advance('1s');
    const before = starts.length;
    expect(before).toBeLessThan(40);
    expect((await two.lanes())[0]).toMatchObject({ state: 'paused', running: 0 });
    const { documents } = await store.readState('lane:');
    expect(documents).toMatchObject([{ value: { paused: { by: 'the operator' } } }]);
    await clock.advance('1h');
    expect(starts).toHaveLength(before);
    await two.resume('handler:a');
    await clock.advance('5s');
    expect(starts).toHaveLength(40);
    expect(new Set(starts)).toEqual(new Set(['one', 'two']));
  });

  it('does not interrupt what runs, and counts nothing', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', () => sleep(clock, 1000));
    await engine.start();
    const { id } = await engine.submit('a', 1);
    await clock.advance(10);
    await engine.pause('handler:a');
    await clock.advance('2s');
    expect(await engine.get(id)).toMatchObject({ status: 'done' });
    const other = await engine.submit('a', 2);
    await clock.advance('1h');
    expect(await store.get({ id: 2 })).toMatchObject({ status: 'pending', attempt: 0, claims: 0 });
    await engine.resume('handler:a');
    await clock.advance('2s');
    expect(await engine.get(other.id)).toMatchObject({ status: 'done' });
  });

  it('may come before there is such a lane, and stays while it is made', async () => {
    const { clock, engine, make } = stage();
    await make().pause('handler:a');
    let runs = 0;
    engine.handle('a', () => void (runs += 1));
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1h');
    expect(runs).toBe(0);
  });

  it('is written even when others write the same lane at that moment', async () => {
    const { engine, store } = stage();
    const { writeState } = store;
    let isFirst = true;
    store.writeState = async (key, value, version) => {
      if (isFirst) {
        isFirst = false;
        const breaker = { state: 'open', untilMs: 1, openings: 3 };
        await writeState.call(store, key, { breaker }, version);
      }
      return writeState.call(store, key, value, version);
    };
    await engine.pause('handler:a');
    const { documents } = await store.readState('lane:');
    expect(documents).toMatchObject([
      { value: { paused: {}, breaker: { state: 'open', openings: 3 } }, version: 2 },
    ]);
  });
});

describe('the ramp', () => {
  const TURN_MS = 30_000;

  /** A lane at whose ramp this instance is, and its deliveries as they end. */
  async function ramp(limit: number) {
    const clock = virtualClock(1_000_000);
    const store = memory({ clock });
    const settings = laneSettings({ concurrency: 16 }, TURN_MS);
    const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const host = hostOf({ clock, log });
    const lanes = new Lanes(
      store,
      host,
      'me',
      () => settings,
      () => () => true,
      nothing,
    );
    const lane = lanes.get('queue:a');
    await clock.advance(1000);
    const untilMs = clock.now() + TURN_MS;
    const breaker = { state: 'probing', untilMs, openings: 1, by: 'me', limit };
    await store.writeState('lane:queue:a', { breaker }, 0);
    await lanes.refresh();
    let taskId = 0;
    const entry = (startedAt: number): Entry =>
      ({ lane, startedAt, task: { id: (taskId += 1) } }) as Entry;
    const end = async (how: 'worked' | 'failed', count: number, startedAt = clock.monotonic()) => {
      for (let i = 0; i < count; i++) {
        if (how === 'worked') lanes.worked(entry(startedAt));
        else lanes.failed(entry(startedAt), false);
        await clock.advance(0);
      }
    };
    return { clock, end, untilMs, state: () => lane.state.breaker };
  }

  it('repeats a round that was too flaky, and is over when one shows nothing', async () => {
    const { clock, end, untilMs, state } = await ramp(4);
    await clock.advance(5000);
    await end('worked', 1);
    await end('failed', 7);
    expect(state()).toMatchObject({ state: 'probing', limit: 4, untilMs: untilMs + 5000 });
    await end('failed', 7);
    expect(state()).toMatchObject({ state: 'probing', limit: 4 });
    await end('failed', 1);
    expect(state()).toMatchObject({ state: 'open', openings: 2 });
  });

  it('goes on where a quarter worked', async () => {
    const { end, state } = await ramp(4);
    await end('failed', 6);
    await end('worked', 2);
    expect(state()).toMatchObject({ state: 'probing', limit: 8 });
  });

  it('takes no word from deliveries that began before it', async () => {
    const { clock, end, state } = await ramp(1);
    await end('failed', 3, clock.monotonic() - 1);
    expect(state()).toMatchObject({ state: 'probing', limit: 1 });
    await end('failed', 1);
    expect(state()).toMatchObject({ state: 'open' });
  });

  it('keeps its turn while something works, however seldom that is', async () => {
    const { clock, end, untilMs, state } = await ramp(4);
    await clock.advance(20_000);
    await end('worked', 1);
    expect(state()).toMatchObject({ state: 'probing', limit: 4, untilMs: untilMs + 20_000 });
    await end('worked', 3);
    expect(state()).toMatchObject({ state: 'probing', limit: 8 });
  });

  it('leaves its turn to others where nothing works', async () => {
    const { clock, end, untilMs, state } = await ramp(4);
    await clock.advance(20_000);
    await end('failed', 3);
    expect(state()).toMatchObject({ state: 'probing', limit: 4, untilMs });
  });
});

describe('the lanes of an instance', () => {
  function lanesOf(
    store = memory({ clock: virtualClock() }),
    clock = virtualClock(),
    options: LaneOptions = {},
  ) {
    const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const host = hostOf({ clock, log });
    return new Lanes(
      store,
      host,
      'me',
      () => laneSettings(options, 30_000),
      () => () => true,
      nothing,
    );
  }

  it('are forgotten where they have no work, but for the last thousand', () => {
    const lanes = lanesOf();
    const due = lanes.agenda;
    due.expect('due', 0);
    const busy = due.takeNext(0)!;
    const running = lanes.get('running');
    running.zombies = 1;
    for (let n = 1; n <= 50_000; n++) {
      due.expect(`lane ${n}`, 0);
      due.takeNext(0);
      due.asked(`lane ${n}`);
    }
    expect(lanes.all.size).toBeLessThanOrEqual(2002);
    expect(lanes.get('due')).toBe(busy);
    expect(lanes.get('running')).toBe(running);
    const last = [...lanes.all.keys()].slice(-1000);
    expect(last).toContain('lane 50000');
    expect(last).toContain('lane 49010');
  });

  it('that are forgotten take their rates along', () => {
    const lanes = lanesOf(undefined, undefined, { rate: 5 });
    for (let n = 1; n <= 5000; n++) lanes.get(`lane ${n}`);
    expect(new Set(lanes.rated)).toEqual(new Set(lanes.all.values()));
    expect(lanes.rated.size).toBeLessThanOrEqual(2000);
  });

  it('take no notice of what started before their turn at probing began again', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const lanes = lanesOf(store, clock);
    const breaker = { state: 'probing', by: 'me', limit: 4, openings: 1, untilMs: clock.now() };
    await store.writeState('lane:a', { breaker }, 0);
    await lanes.refresh();
    const lane = lanes.get('a');
    const startedAt = clock.monotonic();
    await clock.advance(10);
    // The turn is over, and nobody else has taken one.
    lanes.permit(lane);
    await clock.advance(0);
    expect(lane.state.breaker).toMatchObject({ state: 'probing', by: 'me', limit: 1 });
    const entry = { lane, task: { id: 1 }, startedAt } as Entry;
    lanes.failed(entry, true);
    lanes.worked(entry);
    await clock.advance(0);
    expect(lane.state.breaker).toMatchObject({ state: 'probing', limit: 1 });
    lanes.worked({ ...entry, startedAt: clock.monotonic() });
    await clock.advance(0);
    expect(lane.state.breaker).toMatchObject({ state: 'probing', limit: 2 });
  });

  it('are looked at again after a turn at probing that could not be written', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const lanes = lanesOf(store, clock);
    const breaker = { state: 'open', openings: 1, untilMs: clock.now() };
    await store.writeState('lane:a', { breaker }, 0);
    await lanes.refresh();
    lanes.agenda.expect('a', 0);
    const lane = lanes.agenda.takeNext(0)!;
    store.writeState = () => Promise.reject(new Error('away'));
    const permit = lanes.permit(lane);
    expect(permit).toEqual({ may: 'wait' });
    lanes.holdBack(lane, {});
    await clock.advance(999);
    expect([...lanes.agenda.due]).toEqual([]);
    await clock.advance(1);
    expect([...lanes.agenda.due]).toEqual([lane]);
  });

  it('that may not be served hold up no other, however many they are', async () => {
    const broker = createTestBroker();
    const { clock, engine, store } = stage({ brokers: [broker], poll: '1h' });
    const names = Array.from({ length: 5000 }, (_, n) => `paused-${n}`);
    for (const name of names) {
      await store.writeState(`lane:queue:${name}`, { paused: { atMs: 1 } }, 0);
    }
    await engine.start();
    await clock.advance('1s');
    const to = (address: string) => ({ to: { kind: 'queue', address }, payload: 1 });
    await engine.submitMany([...names, 'served'].map(to));
    await clock.advance(100);
    expect(await engine.list({ status: 'retried', limit: 10 })).toHaveLength(1);
  });

  it('that only wait for their time are not made', async () => {
    const { clock, engine } = stage();
    let runs = 0;
    engine.handle('a', () => void (runs += 1));
    await engine.start();
    await engine.submit('a', 1, { dueAt: clock.now() + 60_000 });
    await clock.advance('59s');
    expect(runs).toBe(0);
    await clock.advance('1s');
    expect(runs).toBe(1);
  });

  it('whose documents say nothing any more lose them after an hour', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', nothing);
    await engine.start();
    await engine.pause('handler:a');
    await engine.pause('handler:b');
    await engine.resume('handler:a');
    const keys = async () => (await store.readState('lane:')).documents.map(({ key }) => key);
    await clock.advance('59m');
    expect(await keys()).toEqual(['lane:handler:a', 'lane:handler:b']);
    await clock.advance('2m');
    expect(await keys()).toEqual(['lane:handler:b']);
    // The version begins anew, and that is noticed.
    await engine.pause('handler:a', 'ops');
    expect(await engine.lanes()).toMatchObject([
      { lane: 'handler:a', state: 'paused' },
      { lane: 'handler:b', state: 'paused' },
    ]);
  });

  it('lose no more documents at once than they are asked for', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const lanes = lanesOf(store, clock);
    for (const name of ['a', 'b', 'c']) {
      await store.writeState(`lane:${name}`, { breaker: { state: 'closed' } }, 0);
    }
    await lanes.refresh();
    await clock.advance('1h');
    expect(await lanes.documents.prune(2)).toBe(2);
    expect((await store.readState('lane:')).documents).toHaveLength(1);
  });

  it('know the time of the store, never ahead of it', async () => {
    const clock = virtualClock(1000);
    const storeClock = virtualClock(9000);
    const store = memory({ clock: storeClock });
    const lanes = new Lanes(
      store,
      hostOf({ clock }),
      'me',
      () => laneSettings({}, 30_000),
      () => () => true,
      nothing,
    );
    expect(lanes.nowMs).toBe(1000);
    await lanes.refresh();
    expect(lanes.nowMs).toBe(9000);
    await clock.advance(500);
    expect(lanes.nowMs).toBe(9500);
    // The wall clock here may jump as it likes.
    clock.jump(-100_000);
    expect(lanes.nowMs).toBe(9500);
  });
});
