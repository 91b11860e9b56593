import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../adapters/memory/store.ts';
import { itemOf } from '../../model/item.ts';
import { newJob } from '../../model/jobs.ts';
import { jobKey } from '../../ports/inbox.ts';
import { newTask } from '../fixtures.ts';
import { InboxLedger } from './inbox-ledger.ts';

const failure = { class: 'transient', code: 'E' } as const;

/** A canary job sends one message. The broker takes it over, and it comes back `backMs` later; then the step is passed. */
async function passed(observeMs: number, backMs: number, jumpMs = 0): Promise<string[]> {
  const clock = virtualClock();
  const store = new MemoryStore(clock, 100);
  const violations: string[] = [];
  const now = () => ({ worldMs: clock.monotonic(), storeMs: clock.now() });
  const ledger = new InboxLedger(store, now, (violation) => violations.push(violation));
  const look = async () => {
    ledger.check([...store.peek().tasks]);
    await ledger.sawJobs();
  };
  const job = newJob({
    id: 1,
    action: 'replay',
    filter: {},
    canary: [1, 1],
    observeMs,
    maxFailures: 0,
    createdAtMs: 0,
    total: 3,
  });
  const lost = newTask({ status: 'failed', failure });
  const item = itemOf('EXHAUSTED', failure, lost.lane);
  await store.change([lost], () => ({ result: true, task: lost, item }));
  await store.writeState(jobKey(1), job, 0);
  await look();
  await store.act([1], { type: 'replay', job: 1, trial: true });
  const from = { kind: 'due' as const, lanes: [{ lane: lost.lane, limit: 1 }] };
  const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
  await store.settle([{ id: tasks[0]!.id, lease: 1, to: 'retried' }]);
  await look();
  clock.jump(jumpMs);
  await clock.advance(backMs);
  const back = { ...tasks[0]!, status: 'failed' as const, failure };
  await store.change([back], () => ({ result: true, task: back, item }));
  await look();
  await store.writeState(jobKey(1), { ...job, step: 1 }, 1);
  await look();
  return violations;
}

describe('a canary step that is passed although its message came back', () => {
  it('is a violation where that was within the time of observation', async () => {
    const violation = ['job 1 passed a step that had not worked'];
    expect(await passed(800, 5)).toEqual(violation);
    expect(await passed(800, 799)).toEqual(violation);
  });

  it('is none where that was later: the count had found nothing, and the pass was on its way', async () => {
    expect(await passed(1, 5)).toEqual([]);
    expect(await passed(800, 800)).toEqual([]);
  });

  it('is none where the time was over by one of two clocks', async () => {
    expect(await passed(800, 5, 3000)).toEqual([]);
    expect(await passed(800, 900, -3000)).toEqual([]);
  });
});
