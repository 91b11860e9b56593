import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../adapters/memory/store.ts';
import { hostOf } from '../host.ts';
import { itemOf } from '../model/item.ts';
import { JobRunner } from './job-runner.ts';
import { type Job, newJob } from '../model/jobs.ts';
import { jobKey } from '../ports/inbox.ts';
import { newTask } from '../testing/fixtures.ts';

const failure = { class: 'transient', code: 'E' } as const;
const MINUTE_MS = 60_000;
const nothing = () => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

async function stage(items: number) {
  const clock = virtualClock();
  const store = new MemoryStore(clock, 20_000);
  const host = hostOf({ clock, log: silent });
  for (let n = 1; n <= items; n++) {
    const task = newTask({ status: 'failed', failure });
    await store.change([task], () => ({
      result: true,
      task,
      item: itemOf('EXHAUSTED', failure, task.lane),
    }));
  }
  const runner = (instance: string) => {
    const parts = {
      store,
      host,
      instance,
      nowMs: () => clock.now(),
      pollMs: 1000,
      ended: nothing,
    };
    return new JobRunner(parts);
  };
  const write = (more: Partial<Job>) =>
    store.writeState(
      jobKey(1),
      newJob({
        id: 1,
        action: 'replay',
        filter: {},
        canary: [],
        observeMs: 0,
        createdAtMs: clock.now(),
        before: items + 1,
        ...more,
      }),
      0,
    );
  const read = async () => (await store.readState(jobKey(1))).documents[0]!.value as Job;
  /** Whatever is due is taken by its broker, and might come back. */
  const deliver = async () => {
    const from = { kind: 'due' as const, lanes: [{ lane: newTask().lane, limit: 100 }] };
    const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
    await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'retried' })));
  };
  return { clock, store, runner, write, read, deliver };
}

describe('of two runners the one that has a job', () => {
  test.each<[string, Partial<Job>]>([
    ['observes a canary step', { canary: [1], observeMs: 10 * MINUTE_MS }],
    ['waits for its rate', { perSecond: 1 / 600 }],
    ['waits for what it has sent', { canary: [1], observeMs: 1000 }],
  ])('keeps it while it %s for minutes', async (what, more) => {
    const { clock, runner, write, read, deliver } = await stage(3);
    await write(more);
    const [one, two] = [runner('one'), runner('two')];
    one.start();
    await clock.advance(1000);
    two.start();
    for (let second = 0; second < 5 * 60; second++) {
      await clock.advance(1000);
      if (!what.includes('sent')) await deliver();
      const { owner, state, done } = await read();
      expect({ second, by: owner?.by, state, done }).toEqual({
        second,
        by: 'one',
        state: 'running',
        done: 1,
      });
      // Its turn never comes to its end, so that nobody could take the job.
      expect(owner!.untilMs).toBeGreaterThan(clock.now());
    }
    await Promise.all([one.stop(), two.stop()]);
  });

  test('leaves it to another one that has taken it over meanwhile', async () => {
    const { clock, store, runner, write, read } = await stage(3);
    await write({ perSecond: 1 });
    const one = runner('one');
    one.start();
    await clock.advance(500);
    // As after a long sleep of its process: its turn was over.
    const { value, version } = (await store.readState(jobKey(1))).documents[0]!;
    const owner = { by: 'two', untilMs: clock.now() + 29_000 };
    await store.writeState(jobKey(1), { ...(value as Job), owner }, version);
    for (let second = 0; second < 28; second++) {
      await clock.advance(1000);
      expect(await read()).toMatchObject({ owner, done: 1 });
    }
    await one.stop();
  });
});
