import { expect } from 'vitest';
import type { Account } from './account.ts';
import type { Fleet } from './fleet.ts';
import type { Place } from './job.ts';
import { settleAccounts } from './scene.ts';

/** Nothing lost, nothing wrong, every task at the end that it was meant for, and duplicates only where a kill explains them. */
export function expectAccounted(result: Account): void {
  expect(result.faults).toEqual([]);
  const { works = {}, stumbles = {}, fails = {}, givesUp = {} } = result.ends;
  expect(Object.keys({ ...works, ...stumbles })).toEqual(['done']);
  expect(Object.keys(fails)).toEqual(['EXHAUSTED']);
  expect(Object.keys(givesUp)).toEqual(['GAVE_UP']);
  expect(result.duplicates).toBeLessThanOrEqual(result.cutOff + result.leasesLost);
}

/** One task among many kills whoever executes it. Two workers, each replaced when it dies. */
export async function expectPoisonContained(fleet: Fleet, place: Place): Promise<void> {
  const engine = { lease: '2s', poll: '200ms' } as const;
  const work = { concurrency: 3, paceMs: 10 };
  const submit = { from: 0, count: 40, atOnce: 10, paceMs: 0 };
  const submitters = [
    fleet.start({ name: 'harmless', place, submit: { ...submit, plans: ['works', 'stumbles'] } }),
    fleet.start({
      name: 'harmful',
      place,
      submit: { ...submit, from: 40, count: 1, plans: ['kills'] },
    }),
  ];
  const keepAlive = async (name: string): Promise<void> => {
    const child = fleet.start({ name, place, engine, work });
    await fleet.until('it is killed, or all is over', () => child.isOver);
    if (child.wasKilled) await keepAlive(name);
  };
  const [result] = await Promise.all([
    settleAccounts(fleet, place, submitters),
    keepAlive('first'),
    keepAlive('second'),
  ]);

  expect(result.faults).toEqual([]);
  expect(result.ends).toEqual({
    works: { done: 20 },
    stumbles: { done: 20 },
    kills: { WORKER_LOST: 1 },
  });
  // Three leases, three workers, and then no more.
  expect(result.executions.kills).toBe(3);
  expect(fleet.records().filter(({ wasKilled }) => wasKilled)).toHaveLength(3);
  expect(result.duplicates).toBeLessThanOrEqual(result.cutOff + result.leasesLost);
}
