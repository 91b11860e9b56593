import type { Clock } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../adapters/memory/store.ts';
import { EngineError } from '../errors.ts';
import { hostOf } from '../host.ts';
import { itemOf } from '../model/item.ts';
import { JobRunner } from './job-runner.ts';
import { type Job, newJob, resumedJob } from '../model/jobs.ts';
import { jobKey } from '../ports/inbox.ts';
import type { Task } from '../model/task.ts';
import { newTask } from '../testing/fixtures.ts';

const failure = { class: 'transient', code: 'E' } as const;

async function stage(items: number) {
  const clock = virtualClock();
  const store = new MemoryStore(clock, 20_000);
  const logged: string[] = [];
  const log = (_: object, message: string) => void logged.push(message);
  const host = hostOf({
    clock,
    log: { debug: log, info: log, warn: log, error: log },
  });
  for (let n = 1; n <= items; n++) {
    const task = newTask({ status: 'failed', failure });
    await store.change([task], () => ({
      result: true,
      task,
      item: itemOf('EXHAUSTED', failure, task.lane),
    }));
  }
  const ended: Job[] = [];
  const runner = (instance: string, on = store, nowMs = () => clock.now()) =>
    new JobRunner({
      store: on,
      host,
      instance,
      nowMs,
      pollMs: 1000,
      ended: (job) => void ended.push(job),
    });
  const write = (job: Partial<Job> = {}) => store.writeState(jobKey(1), jobOf(items, job), 0);
  const read = async () => (await store.readState(jobKey(1))).documents[0]!.value as Job;
  return { clock, store, runner, write, read, ended, logged };
}

/** The same store, of which some methods do something else. */
function altered(store: MemoryStore, methods: object): MemoryStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** So many of those that wait are done; how many there were. */
async function finish(store: MemoryStore, limit: number): Promise<number> {
  const from = { kind: 'due' as const, lanes: [{ lane: newTask().lane, limit }] };
  const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
  await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'done' })));
  return tasks.length;
}

function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

function jobOf(items: number, more: Partial<Job>): Job {
  return newJob({
    id: 1,
    action: 'resolve',
    filter: {},
    canary: [],
    observeMs: 0,
    createdAtMs: 0,
    before: items + 1,
    ...more,
  });
}

describe('the runner of bulk jobs', () => {
  test('carries out a job to its end, and says so once', async () => {
    const { clock, store, runner, write, read, ended } = await stage(2500);
    await write();
    const one = runner('one');
    one.start();
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'finished', total: 2500, done: 2500 });
    expect(await store.count({ state: 'open' })).toBe(0);
    expect(ended).toHaveLength(1);
    await one.stop();
  });

  test('leaves a job alone that another one is at, and takes it over when that one is silent', async () => {
    const { clock, runner, write, read } = await stage(3);
    const owner = { by: 'dead', untilMs: clock.now() + 30_000 };
    await write({ owner });
    const one = runner('one');
    one.start();
    await clock.advance(20_000);
    expect(await read()).toMatchObject({ state: 'running', done: 0, owner });
    await clock.advance(15_000);
    expect(await read()).toMatchObject({ state: 'finished', done: 3 });
    await one.stop();
  });

  test('takes over a job whose turn a clock gave that was set back since', async () => {
    const { clock, runner, write, read } = await stage(3);
    await write({ owner: { by: 'dead', untilMs: clock.now() + 2 * 3600_000 } });
    const one = runner('one');
    one.start();
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'finished', done: 3 });
    await one.stop();
  });

  test('hands a job over when it stops', async () => {
    const { clock, runner, write, read } = await stage(3);
    await write({ action: 'replay', perSecond: 1 });
    const one = runner('one');
    one.start();
    await clock.advance(1500);
    await one.stop();
    const { owner, done } = await read();
    expect({ owner, done }).toEqual({ owner: undefined, done: 2 });
    const two = runner('two');
    two.start();
    await clock.advance(10_000);
    expect(await read()).toMatchObject({ done: 3, owner: { by: 'two' } });
    await two.stop();
  });

  test('goes on where the next members could not be read while it acted', async () => {
    const { clock, store, runner, write, read, logged } = await stage(6000);
    let reads = 0;
    const members = (...args: Parameters<MemoryStore['members']>) =>
      ++reads === 2 ? Promise.reject(new Error('not now')) : store.members(...args);
    const unsteady = altered(store, { members });
    await write();
    const one = runner('one', unsteady);
    one.start();
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'finished', done: 6000, failed: 0 });
    expect(reads).toBeGreaterThan(2);
    expect(logged).toEqual([]);
    await one.stop();
  });

  test('looks at what waits when something of it is settled, not when others are written', async () => {
    const { clock, store, runner, write } = await stage(3);
    let looks = 0;
    const tally = (...args: Parameters<MemoryStore['tally']>) => {
      looks += 1;
      return store.tally(...args);
    };
    await write({ action: 'replay' });
    const one = runner('one', altered(store, { tally }));
    one.start();
    await clock.advance(20_000);
    looks = 0;
    for (let i = 0; i < 50; i++) {
      one.wake();
      one.settled(2);
      await clock.advance(1);
    }
    expect(looks).toBeLessThan(2);
    one.settled(1);
    await clock.advance(1);
    expect(looks).toBeGreaterThan(0);
    await one.stop();
  });

  test.for([true, false])(
    'sends on as what it sent is over here, and counts only where it does not know: %s',
    async (isOver) => {
      const { clock, store, runner, write, read } = await stage(9000);
      let counts = 0;
      const tally = (...args: Parameters<MemoryStore['tally']>) => {
        counts += 1;
        return store.tally(...args);
      };
      // All that is sent is over before the next is.
      const act = async (...args: Parameters<MemoryStore['act']>) => {
        const results = await store.act(...args);
        for (let n = await finish(store, 2000); n > 0; n--) one.settled(1, isOver);
        return results;
      };
      await write({ action: 'replay' });
      const one = runner('one', altered(store, { tally, act }));
      one.start();
      await clock.advance(5000);
      expect(await read()).toMatchObject({ state: 'finished', done: 9000 });
      // At the beginning and at the end; and where nothing is known of what it sent, whenever the window seems full.
      expect(counts > 2).toBe(!isOver);
      await one.stop();
    },
  );

  test('what moves is not parked, also where more is under way than there should be', async () => {
    const { clock, store, runner, write, read } = await stage(14_000);
    let isToldLate = true;
    // Done before a count, and told after it: taken off twice.
    const tally = async (...args: Parameters<MemoryStore['tally']>) => {
      const isFull = (await store.tally(1, 1e6)).underway >= 5000;
      if (!isToldLate || !isFull) return store.tally(...args);
      isToldLate = false;
      const done = await finish(store, 2000);
      queueMicrotask(() => {
        for (let n = done; n > 0; n--) one.settled(1, true);
      });
      return store.tally(...args);
    };
    await write({ action: 'replay' });
    const one = runner('one', altered(store, { tally }));
    one.start();
    let most = 0;
    for (let tenths = 0; tenths < 150; tenths++) {
      await clock.advance(100);
      most = Math.max(most, (await store.tally(1, 1e6)).underway);
      for (let n = await finish(store, 10); n > 0; n--) one.settled(1, true);
    }
    expect(most).toBeGreaterThan(5000);
    expect(most).toBeLessThanOrEqual(7000);
    expect(await read()).toMatchObject({ parked: 0 });
    await one.stop();
  });

  test('without a canary, stops when more came back than may, however much it could still send', async () => {
    const { clock, store, runner, write, read } = await stage(4001);
    // One of each chunk comes back before the next chunk is sent.
    const act = async (...args: Parameters<MemoryStore['act']>) => {
      const results = await store.act(...args);
      const from = { kind: 'due' as const, lanes: [{ lane: newTask().lane, limit: 1 }] };
      const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
      const item = itemOf('EXHAUSTED', failure, newTask().lane);
      await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'failed', attempt: 1, item })));
      return results;
    };
    await write({ action: 'replay', maxFailures: 0 });
    const one = runner('one', altered(store, { act }));
    one.start();
    await clock.advance(1000);
    expect(await read()).toMatchObject({ state: 'stopped', done: 2000 });
    await one.stop();
  });

  test('a canary is counted in every step, whatever is over here', async () => {
    const { clock, store, runner, write, read } = await stage(30);
    await write({ action: 'replay', canary: [1, 10] });
    const one = runner('one');
    one.start();
    for (let i = 0; i < 20; i++) {
      for (let n = 0; n < 50; n++) one.settled(1, true);
      await clock.advance(1000);
    }
    expect(await store.tally(1, 100)).toMatchObject({ underway: 1 });
    expect(await read()).toMatchObject({ step: 0, done: 1 });
    await one.stop();
  });

  describe('a canary step at a broker', () => {
    const OBSERVE_MS = 800;

    /** The first of three is sent and taken over by its broker. `count` answers when the runner counts. */
    async function observed(count: (store: MemoryStore) => MemoryStore['tally']) {
      const { clock, store, runner, write, read } = await stage(3);
      const about = { canary: [1, 1], observeMs: OBSERVE_MS, maxFailures: 0 };
      await write({ action: 'replay', ...about });
      const one = runner('one', altered(store, { tally: count(store) }));
      one.start();
      await clock.advance(1);
      return { clock, store, one, read, task: await take(store) };
    }

    test('is observed as long as the others when the clock of the store was set back since, unheard of', async () => {
      const { clock, store, runner, write, read } = await stage(3);
      const startMs = clock.now();
      await write({ action: 'replay', canary: [1, 1], observeMs: OBSERVE_MS, maxFailures: 0 });
      const one = runner('one', store, () => startMs + clock.monotonic());
      one.start();
      await clock.advance(1);
      await take(store);
      await clock.advance(OBSERVE_MS / 2);
      clock.jump(-20_000);
      await clock.advance(OBSERVE_MS);
      // Whatever the first step did: nothing of the second is passed before its time.
      for (let ms = 0; ms < 25_000 && (await read()).done === 1; ms += 50) await clock.advance(50);
      await take(store);
      one.settled(1);
      for (let ms = 0; ms < OBSERVE_MS; ms += 50) {
        expect(await read()).toMatchObject({ step: 1, done: 2 });
        await clock.advance(50);
      }
      await clock.advance(25_000);
      expect(await read()).toMatchObject({ done: 3 });
      await one.stop();
    });

    /** The broker of the only one that waits takes it over. */
    async function take(store: MemoryStore): Promise<Task> {
      const from = { kind: 'due' as const, lanes: [{ lane: newTask().lane, limit: 10 }] };
      const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
      await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'retried' })));
      expect(tasks).toHaveLength(1);
      return tasks[0]!;
    }

    /** It failed at its consumer. */
    async function comeBack(store: MemoryStore, task: Task): Promise<void> {
      const item = itemOf('EXHAUSTED', failure, task.lane);
      const failed = { ...task, status: 'failed' as const, failure };
      await store.change([task], () => ({ result: true, task: failed, item }));
      expect(await store.tally(1, 10)).toMatchObject({ back: 1, taken: 0 });
    }

    test('does not pass by a count from within the observation, however late that is answered', async () => {
      let isSlow = false;
      const { clock, store, one, read, task } = await observed((real) => async (...args) => {
        const counted = await real.tally(...args);
        if (isSlow) await wait(clock, 2 * OBSERVE_MS);
        return counted;
      });
      isSlow = true;
      one.settled(1);
      await clock.advance(5);
      await comeBack(store, task);
      isSlow = false;
      for (let ms = 0; ms < 4 * OBSERVE_MS; ms += 50) {
        await clock.advance(50);
        expect(await read()).toMatchObject({ step: 0 });
      }
      expect(await read()).toMatchObject({ state: 'stopped', done: 1 });
      await one.stop();
    });

    test('that is passed just before its message comes back sends nothing more', async () => {
      const { clock, store, one, read, task } = await observed((real) => real.tally);
      const { writeState } = store;
      store.writeState = async (key, value, version) => {
        const isPass = (value as Job).step === 1 && (await read()).step === 0;
        if (isPass) await comeBack(store, task);
        return writeState.call(store, key, value, version);
      };
      await clock.advance(3 * OBSERVE_MS);
      expect(await read()).toMatchObject({ state: 'stopped', done: 1 });
      await one.stop();
    });

    test('passes when it was counted after the observation that nothing came back', async () => {
      const { clock, one, read } = await observed((real) => real.tally);
      await clock.advance(OBSERVE_MS - 2);
      expect(await read()).toMatchObject({ step: 0, done: 1 });
      await clock.advance(OBSERVE_MS);
      expect(await read()).toMatchObject({ state: 'running', done: 2 });
      await one.stop();
    });
  });

  test('what could not move when it was counted long ago is not taken for standing still', async () => {
    const { clock, store, runner, write, read } = await stage(3);
    await write({ action: 'replay', canary: [1, 1] });
    let counts = 0;
    const tally = async (...args: Parameters<MemoryStore['tally']>) => {
      const counted = await store.tally(...args);
      if (counted.underway === 0) return counted;
      counts += 1;
      if (counts === 2) await wait(clock, 6000);
      return { ...counted, blocked: counted.underway };
    };
    const one = runner('one', altered(store, { tally }));
    one.start();
    await clock.advance(500);
    expect(counts).toBe(2);
    await finish(store, 10);
    await clock.advance(7000);
    expect(await read()).toMatchObject({ state: 'running', done: 2 });
    await one.stop();
  });

  test('stops a job whose members are not there any more, and says so', async () => {
    const { clock, store, runner, write, read, ended } = await stage(3);
    await write();
    const one = runner('one', altered(store, { members: () => Promise.resolve([]) }));
    one.start();
    await clock.advance(5000);
    const stopped = { state: 'stopped', why: '3 of its members are not there any more.' };
    expect(await read()).toMatchObject(stopped);
    expect(ended).toEqual([expect.objectContaining(stopped)]);
    await one.stop();
  });

  test('is at a hundred jobs at once, and begins another one as soon as one is over', async () => {
    const { clock, store, runner } = await stage(0);
    const about = {
      action: 'replay',
      filter: {},
      canary: [],
      observeMs: 0,
      createdAtMs: 0,
    } as const;
    const JOBS = 101;
    for (let id = 1; id <= JOBS; id++)
      await store.writeState(jobKey(id), newJob({ ...about, id, total: 1 }), 0);
    const asked = new Map<number, PromiseWithResolvers<void>>();
    // The members of a job are read when it is at work.
    const members = async ({ job }: Parameters<MemoryStore['members']>[0]) => {
      const reading = Promise.withResolvers<void>();
      asked.set(job, reading);
      await reading.promise;
      return [];
    };
    const one = runner('one', altered(store, { members }));
    one.start();
    await clock.advance(100);
    expect(asked.size).toBe(JOBS - 1);
    // Without waiting for the next look.
    asked.values().next().value!.resolve();
    await clock.advance(1);
    expect(asked.size).toBe(JOBS);
    for (const { resolve } of asked.values()) resolve();
    await one.stop();
  });

  test('carries out a job that was stopped and let go on by hand', async () => {
    const { clock, store, runner, write, read } = await stage(2);
    await write({ action: 'replay', canary: [1], maxFailures: 0 });
    const one = runner('one');
    one.start();
    await clock.advance(1000);
    const lanes = [{ lane: newTask().lane, limit: 1 }];
    const claim = { from: { kind: 'due' as const, lanes }, lease: 1, leaseMs: 1000, maxBytes: 1e9 };
    const { tasks } = await store.claim(claim);
    const item = itemOf('EXHAUSTED', failure, newTask().lane);
    await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'failed', attempt: 1, item })));
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'stopped', done: 1 });
    const { value, version } = (await store.readState(jobKey(1))).documents[0]!;
    await store.writeState(jobKey(1), resumedJob(value as Job, await store.tally(1, 10)), version);
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'running', done: 2 });
    await one.stop();
  });

  test('passes over no member because the store was away', async () => {
    const { clock, store, runner, write, read } = await stage(1);
    let tries = 0;
    const act = (...args: Parameters<MemoryStore['act']>) =>
      ++tries === 1
        ? Promise.reject(new EngineError('STORE_UNAVAILABLE', 'away'))
        : store.act(...args);
    await write();
    const one = runner('one', altered(store, { act }));
    one.start();
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'finished', done: 1, failed: 0 });
    await one.stop();
  });

  test('passes over a member that cannot be written, and no other', async () => {
    const { clock, store, runner, write, read, logged } = await stage(40);
    const act = (...args: Parameters<MemoryStore['act']>) =>
      args[0].includes(17) && args[1].type !== 'pass'
        ? Promise.reject(new Error('cannot be written'))
        : store.act(...args);
    const poisoned = altered(store, { act });
    await write();
    const one = runner('one', poisoned);
    one.start();
    await clock.advance(5000);
    expect(await read()).toMatchObject({ state: 'finished', done: 39, failed: 1 });
    expect(await store.members({ job: 1, result: 'fault', after: 0, limit: 9 })).toEqual([
      { itemId: 17, result: 'fault' },
    ]);
    expect(logged).toContain('an item is passed over');
    await one.stop();
  });
});
