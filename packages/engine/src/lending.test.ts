import { seededRandom, type VirtualClock, virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { memory } from './adapters/memory/index.ts';
import { createEngine } from './engine.ts';
import type { EngineOptions, LaneOptions } from './engine-options.ts';
import { EngineError } from './errors.ts';
import { itemOf } from './item.ts';
import type { Acted, Loan } from './ports/inbox.ts';
import type { Settlement } from './ports/schedule.ts';
import type { Store } from './ports/store.ts';
import { newTask, put } from './testing/fixtures.ts';

const MEAN_MS = 5;
/** By four at once. */
const LENT = (4 * 50) / MEAN_MS;
const failure = { class: 'transient', code: 'E' } as const;

/** An engine whose lane `a` is known to be fast, and so many dead tasks of it; what the store was asked to do. */
async function stage(
  dead: number,
  options: Partial<EngineOptions> = {},
  { meanMs = MEAN_MS, ...lane }: Pick<LaneOptions, 'rate'> & { meanMs?: number } = {},
) {
  const clock = virtualClock();
  const store = memory({ clock });
  const loans: Loan[] = [];
  const abandoned: number[] = [];
  const claimed: number[] = [];
  const released: number[] = [];
  const real = {
    act: store.act,
    claim: store.claim,
    abandon: store.abandon,
    settle: store.settle,
  };
  const answers: { act: (acted: Acted | undefined) => unknown } = { act: (acted) => acted };
  Object.assign(store, {
    act: async (...args: Parameters<Store['act']>) => {
      const loan = (args as unknown[])[3] as Loan | undefined;
      if (loan) loans.push(loan);
      return answers.act(await real.act.apply(store, args as never));
    },
    claim: async (...args: Parameters<Store['claim']>) => {
      const claim = await real.claim.apply(store, args);
      claimed.push(...claim.tasks.map(({ id }) => id));
      return claim;
    },
    settle: (settlements: readonly Settlement[]) => {
      released.push(...settlements.flatMap(({ to, id }) => (to === 'pending' ? [id] : [])));
      return real.settle.call(store, settlements);
    },
    abandon: async (lease: number) => {
      abandoned.push(lease);
      await real.abandon.call(store, lease);
    },
  });
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const engine = createEngine({
    store,
    clock,
    log,
    random: seededRandom(1),
    defer: queueMicrotask,
    poll: '1d',
    ...options,
  });
  const ran: unknown[] = [];
  const takes = { ms: meanMs };
  const work = (payload: unknown) =>
    new Promise<void>((resolve) => {
      ran.push(payload);
      clock.setTimer(resolve, takes.ms);
    });
  engine.handle('a', { concurrency: 4, timeout: '5s', ...lane }, work);
  await engine.start();
  await engine.submit('a', 'first');
  await clock.advance('1s');
  for (let n = 1; n <= dead; n++) {
    const task = newTask({
      destination: { kind: 'handler', address: 'a' },
      payload: Buffer.from(String(n)),
      status: 'failed',
      failure,
    });
    await store.change([task], () => ({
      result: true,
      task,
      item: itemOf('EXHAUSTED', failure, task.lane),
    }));
  }
  claimed.length = 0;
  return { clock, store, engine, ran, takes, loans, claimed, released, abandoned, answers, real };
}

function nothing(): void {}

function sleep(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

/** Not before all the steps of a job are through that take no time. */
async function soon(clock: VirtualClock): Promise<void> {
  await clock.advance(1);
}

describe('what a bulk replay is lent', () => {
  test('is delivered without a claim: what its lane does in a twentieth of a second', async () => {
    const { clock, engine, store, ran, loans, claimed } = await stage(100);
    await engine.inbox.replayAll({ all: true });
    await clock.advance('10s');
    expect(loans[0]).toMatchObject({ lanes: ['handler:a'], limit: LENT });
    expect(claimed).toHaveLength(100 - LENT);
    expect(ran).toHaveLength(101);
    expect(await store.list({ status: 'done', limit: 200 })).toHaveLength(101);
  });

  test('is nothing where its lane is paused', async () => {
    const { clock, engine, loans, ran } = await stage(3);
    await engine.pause('handler:a');
    await engine.inbox.replayAll({ all: true });
    await clock.advance('1s');
    expect([loans.length, ran.length]).toEqual([0, 1]);
  });

  test('is nothing where starts are limited by a rate', async () => {
    const { clock, engine, loans, ran } = await stage(3, {}, { rate: 10 });
    await engine.inbox.replayAll({ all: true });
    await clock.advance('5s');
    expect([loans.length, ran.length]).toEqual([0, 4]);
  });

  test('goes back when its lane is paused before it starts', async () => {
    const { clock, engine, store, ran, claimed } = await stage(30);
    await engine.inbox.replayAll({ all: true });
    await soon(clock);
    await engine.pause('handler:a');
    await clock.advance('1s');
    // The first and four more that ran by then.
    expect(ran).toHaveLength(5);
    const waiting = await store.list({ status: 'pending', limit: 99 });
    expect(waiting.map(({ lease, claims }) => [lease, claims])).toEqual(
      waiting.map(() => [undefined, 0]),
    );
    await engine.resume('handler:a');
    await clock.advance('1m');
    expect([ran.length, claimed.length]).toEqual([31, 26]);
  });

  test.each([
    ['becomes slow', 2000],
    ['stands still', 4900],
  ])('goes back when its lane %s, so that nobody waits behind it', async (_, ms) => {
    const { clock, engine, store, takes, claimed, released } = await stage(LENT);
    takes.ms = ms;
    await engine.inbox.replayAll({ all: true });
    await soon(clock);
    expect(claimed).toEqual([]);
    await clock.advance(200);
    expect(released.length).toBeGreaterThan(LENT / 2);
    await clock.advance('1m');
    expect(await store.list({ status: 'done', limit: 99 })).toHaveLength(LENT + 1);
  });

  test('goes back when the engine stops, and is not counted as lost', async () => {
    const { clock, engine, store } = await stage(30);
    await engine.inbox.replayAll({ all: true });
    await soon(clock);
    const stopping = engine.stop();
    await clock.advance('1m');
    await stopping;
    const waiting = await store.list({ status: 'pending', limit: 99 });
    expect(waiting).toHaveLength(26);
    expect(waiting.filter(({ lease, claims }) => lease !== undefined || claims > 0)).toEqual([]);
  });

  test('takes no room from what is claimed', async () => {
    const { clock, engine, takes, claimed, loans } = await stage(2000, {}, { meanMs: 0 });
    takes.ms = 60_000;
    await engine.inbox.replayAll({ all: true });
    await clock.advance(0);
    expect([loans[0]?.limit, claimed.length]).toEqual([2000, 0]);
    await engine.submit('a', 'fresh');
    await clock.advance(0);
    expect(claimed).toHaveLength(1);
  });
});

describe('a job that has been lent all there is room for', () => {
  test('waits a moment, and is lent the rest too', async () => {
    const { clock, engine, ran, claimed } = await stage(4000, {}, { meanMs: 0 });
    await engine.inbox.replayAll({ all: true });
    await clock.advance(20);
    expect([ran.length, claimed.length]).toEqual([4001, 0]);
  });

  test('does not wait longer: others may have the rest', async () => {
    const { clock, engine, store, takes, loans } = await stage(4000, {}, { meanMs: 0 });
    takes.ms = 60_000;
    await engine.inbox.replayAll({ all: true });
    await clock.advance(20);
    expect(await store.count({ state: 'open' })).toBe(2000);
    await clock.advance(10);
    expect(await store.count({ state: 'open' })).toBe(0);
    expect(loans).toHaveLength(1);
  });
});

describe('a loan whose answer', () => {
  test('is lost is given back, and all is claimed', async () => {
    const { clock, engine, store, ran, loans, abandoned, claimed, answers } = await stage(30);
    answers.act = () => {
      answers.act = (later) => later;
      throw new EngineError('STORE_UNAVAILABLE', 'made up');
    };
    await engine.inbox.replayAll({ all: true });
    await clock.advance('20s');
    expect(new Set(abandoned)).toEqual(new Set([loans[0]!.lease]));
    expect([claimed.length, ran.length]).toEqual([30, 31]);
    // Nothing ran apart, as what was lost does.
    expect((await store.list({ status: 'done', limit: 99 })).map(({ claims }) => claims)).toEqual(
      Array.from({ length: 31 }, () => 0),
    );
  });

  test('is lost before it takes effect is looked for again', async () => {
    const { clock, engine, store, ran, real } = await stage(30);
    const act = store.act;
    Object.assign(store, {
      act: async (...args: Parameters<Store['act']>) => {
        store.act = act;
        clock.setTimer(() => void real.act.apply(store, args as never), 500);
        throw new EngineError('STORE_UNAVAILABLE', 'made up');
      },
    });
    await engine.inbox.replayAll({ all: true });
    // By a lease that nobody knows of it would be half a minute.
    await clock.advance('3s');
    expect(ran).toHaveLength(31);
    expect(await store.list({ status: 'pending', limit: 9 })).toEqual([]);
  });

  test('comes too late to start anything is given back', async () => {
    const { clock, engine, store, claimed, answers } = await stage(30, { lease: '10s' });
    answers.act = async (acted) => {
      answers.act = (later) => later;
      await sleep(clock, 9000);
      return acted;
    };
    await engine.inbox.replayAll({ all: true });
    await clock.advance('20s');
    expect(claimed).toHaveLength(30);
    const done = await store.list({ status: 'done', limit: 99 });
    expect(done.filter(({ claims }) => claims === 0)).toHaveLength(31);
  });
});

test('an engine that stops waits for a loan under way, and gives back what is lost of it', async () => {
  const { clock, engine, store, loans, abandoned, answers } = await stage(30);
  answers.act = async () => {
    await sleep(clock, 1000);
    throw new EngineError('STORE_UNAVAILABLE', 'made up');
  };
  await engine.inbox.replayAll({ all: true });
  await soon(clock);
  const stopping = engine.stop();
  await clock.advance('1m');
  await stopping;
  expect(abandoned).toEqual([loans[0]!.lease]);
  const leased = await store.list({ status: 'pending', limit: 99 });
  expect(leased.filter(({ lease }) => lease !== undefined)).toEqual([]);
});

describe('a task whose worker was lost', () => {
  test('waits for a loan under way, and what comes with it does not run beside it', async () => {
    const { clock, engine, store, ran, answers } = await stage(30, { poll: '1s' });
    let answer = nothing;
    const late = new Promise<void>((resolve) => {
      answer = resolve;
    });
    answers.act = async (acted) => {
      await late;
      return acted;
    };
    await engine.inbox.replayAll({ all: true });
    await soon(clock);
    const suspect = newTask({ destination: { kind: 'handler', address: 'a' }, claims: 1 });
    await put(store, { ...suspect, payload: Buffer.from('"suspect"') });
    await clock.advance('2s');
    expect(ran).toEqual(['first']);
    answer();
    await clock.advance(2);
    expect(ran).toEqual(['first', 'suspect']);
    await clock.advance('1m');
    expect(ran).toHaveLength(32);
  });
});
