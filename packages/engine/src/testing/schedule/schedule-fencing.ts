import { deepEqual, equal } from 'node:assert/strict';
import { accept } from '../../model/moves.ts';
import type { Task } from '../../model/task.ts';
import {
  arrivalOf,
  at,
  claimLost,
  expectRow,
  HOUR_MS,
  inLane,
  outboxTexts,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  token,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

const kinds = ['done', 'retried', 'cancelled', 'pending', 'released', 'failed'] as const;

/** A worker that comes back late finds its lease taken. Whatever it says then must change nothing. */
export const fencingCases: StoreCases = {
  ...each(
    kinds,
    (kind) => `a stale token settles nothing: ${kind}`,
    async (kind, stage: Stage) => {
      const { store } = stage;
      const { stale, held } = await overtaken(stage);
      deepEqual(await store.settle([settlements[kind](stale)]), ['lost']);
      await expectRow(store, held);
      deepEqual((await store.items({ limit: 10 })).items, []);
      deepEqual(await store.attempts(held.id), []);
      deepEqual(await outboxTexts(store), []);
      deepEqual(await store.settle([settlements.done(held)]), ['settled']);
    },
  ),

  'a stale token renews nothing': async (stage) => {
    const { store } = stage;
    const { stale, held } = await overtaken(stage);
    deepEqual(await store.renew([at(stale)], 2 * HOUR_MS), ['lost']);
    await expectRow(store, held);
  },

  'a stale token abandons nothing': async (stage) => {
    const { store } = stage;
    const { stale, held } = await overtaken(stage);
    await store.abandon(stale.lease!);
    await expectRow(store, held);
  },

  'a stale token does not take back what the next worker settled': async (stage) => {
    const { store } = stage;
    const { stale, held } = await overtaken(stage);
    await store.settle([settlements.done(held)]);
    const after = await row(store, held.id);
    for (const kind of kinds) deepEqual(await store.settle([settlements[kind](stale)]), ['lost']);
    deepEqual(await store.renew([at(stale)], HOUR_MS), ['lost']);
    await expectRow(store, after);
  },

  'a stale token does not take what arrived from the next worker': async (stage) => {
    const { store } = stage;
    const { stale, held } = await overtaken(stage);
    const arrival = arrivalOf(held);
    await store.change([held], (task, nowMs) => accept(arrival, task, nowMs, 0));
    const before = await row(store, held.id);
    deepEqual(await store.settle([settlements.retried(stale)]), ['lost']);
    await expectRow(store, before);
    deepEqual(await store.settle([settlements.retried(held)]), ['rearmed']);
  },

  'tokens that differ in their last digit are different': async ({ store }) => {
    const lease = 2 ** 52 - 1;
    const task = await putClaimed(store, inLane('a'), { lease });
    deepEqual(await store.settle([{ ...settlements.done(task), lease: lease - 1 }]), ['lost']);
    deepEqual(await store.settle([settlements.done(task)]), ['settled']);
  },

  'a stale token among good ones spoils none of them': async (stage) => {
    const { store } = stage;
    const { stale, held } = await overtaken(stage);
    const good = await putClaimed(store, inLane('b'));
    const answers = await store.settle([settlements.done(stale), settlements.done(good)]);
    deepEqual(answers, ['lost', 'settled']);
    equal((await row(store, good.id)).status, 'done');
    await expectRow(store, held);
  },
};

/** A task as the first worker knows it, and as the second one holds it. */
async function overtaken({ store, pass }: Stage): Promise<{ stale: Task; held: Task }> {
  const stale = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
  await pass(SHORT_MS + 1);
  const { tasks } = await claimLost(store, ['a'], { lease: token() });
  return { stale, held: tasks[0]! };
}
