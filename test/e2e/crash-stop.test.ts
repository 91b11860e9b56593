import { join } from 'node:path';
import { describePostgres, everyPostgres } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import { allTasks } from './crash/evidence.ts';
import { type Child, Fleet, TEST_TIMEOUT_MS } from './crash/fleet.ts';
import { type Place, type Plan, storeAt } from './crash/job.ts';
import { settleAccounts } from './crash/scene.ts';

// Longer than the test: a task that is not given back is never seen again.
const engine = { lease: '10m', grace: '10m' } as const;

describe('on SQLite', () => {
  stopping((fleet) => {
    const place: Place = { kind: 'sqlite', file: join(fleet.folder, 'tasks.db') };
    return Promise.resolve({ place, [Symbol.asyncDispose]: () => Promise.resolve() });
  });
});

describePostgres(({ freshDatabase }) => {
  stopping(async () => {
    const database = await freshDatabase();
    const place: Place = { kind: 'postgres', url: database.url };
    return { place, [Symbol.asyncDispose]: () => database.drop() };
  });
}, everyPostgres);

function stopping(prepare: (fleet: Fleet) => Promise<AsyncDisposable & { place: Place }>): void {
  describe.concurrent('a process that is told to stop', () => {
    test(
      'gives back at once what it has not started, and finishes the rest',
      { timeout: TEST_TIMEOUT_MS },
      async () => {
        await using fleet = new Fleet();
        await using stage = await prepare(fleet);
        const { place } = stage;
        const submitter = await submitted(fleet, place, ['works'], 400);
        const work = { concurrency: 4, paceMs: 10 };
        const first = fleet.start({ name: 'first', place, engine, work });
        await fleet.until('it is in the midst of it', () => first.counts.began >= 60);
        first.signal('SIGTERM');
        await first.over();
        expect((await waiting(place)).length).toBeGreaterThan(0);
        expect(await notGivenBack(place)).toBe(0);

        fleet.start({ name: 'second', place, engine, work });
        const result = await settleAccounts(fleet, place, [submitter]);
        expect(result.faults).toEqual([]);
        expect(result.ends).toEqual({ works: { done: 400 } });
        expect(result.duplicates).toBe(0);
      },
    );

    test(
      'aborts what runs when it is told twice, and burns no attempt by it',
      { timeout: TEST_TIMEOUT_MS },
      async () => {
        await using fleet = new Fleet();
        await using stage = await prepare(fleet);
        const { place } = stage;
        const submitter = await submitted(fleet, place, ['waits'], 20);
        const work = { concurrency: 5, paceMs: 0 };
        const first = fleet.start({ name: 'first', place, engine, work });
        await fleet.until('all hands are busy', () => first.counts.began === 5);
        await stopTwice(fleet, first);
        expect(await waiting(place)).toHaveLength(20);
        expect(await notGivenBack(place)).toBe(0);

        const second = fleet.start({ name: 'second', place, engine, work });
        second.tell('openGate');
        const result = await settleAccounts(fleet, place, [submitter]);
        expect(result.faults).toEqual([]);
        expect(result.ends).toEqual({ waits: { done: 20 } });
        expect(result.duplicates).toBe(5);
      },
    );

    test(
      'does not wait for work that ignores its signal: that is done again when its lease is over',
      { timeout: TEST_TIMEOUT_MS },
      async () => {
        await using fleet = new Fleet();
        await using stage = await prepare(fleet);
        const { place } = stage;
        const submitter = await submitted(fleet, place, ['hangs', 'waits', 'waits'], 3);
        const work = { concurrency: 5, paceMs: 0 };
        const short = { ...engine, lease: '2s', poll: '200ms' } as const;
        const first = fleet.start({ name: 'first', place, engine: short, work });
        await fleet.until('all hands are busy', () => first.counts.began === 3);
        await stopTwice(fleet, first);
        expect(await notGivenBack(place)).toBe(1);

        const second = fleet.start({ name: 'second', place, engine: short, work });
        second.tell('openGate');
        const result = await settleAccounts(fleet, place, [submitter]);
        expect(result.faults).toEqual([]);
        expect(result.ends).toEqual({ hangs: { done: 1 }, waits: { done: 2 } });
        expect(result.duplicates).toBe(3);
      },
    );
  });
}

async function submitted(fleet: Fleet, place: Place, plans: Plan[], count: number): Promise<Child> {
  const submit = { from: 0, count, atOnce: 50, paceMs: 0, plans };
  const submitter = fleet.start({ name: 'submitter', place, submit });
  await fleet.until('all is submitted', () => submitter.counts.submitted);
  return submitter;
}

async function stopTwice(fleet: Fleet, child: Child): Promise<void> {
  child.signal('SIGTERM');
  await fleet.until('it has heard', () => child.counts.stopping === 1);
  child.signal('SIGTERM');
  await child.over();
}

async function waiting(place: Place) {
  const store = await storeAt(place);
  await store.open();
  const pending = (await allTasks(store)).filter(({ status }) => status === 'pending');
  await store.close();
  return pending;
}

/** How many still bear the mark of the process that is gone. */
async function notGivenBack(place: Place): Promise<number> {
  const tasks = await waiting(place);
  return tasks.filter(({ lease, claims, attempt }) => lease !== undefined || claims + attempt > 0)
    .length;
}
