import { deepEqual, equal } from 'node:assert/strict';
import {
  at,
  claimLost,
  expectRow,
  HOUR_MS,
  inLane,
  newTask,
  plain,
  put,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  token,
} from '../fixtures.ts';
import type { StoreCases } from '../stage.ts';

export const renewCases: StoreCases = {
  'prolongs a lease from now on, and changes nothing else': async ({ store, sameTime, nowMs }) => {
    const task = await putClaimed(store);
    deepEqual(await store.renew([at(task)], 3 * HOUR_MS), ['held']);
    const { visibleAtMs, ...rest } = await row(store, task.id);
    const { visibleAtMs: _, ...wanted } = task;
    deepEqual(plain(rest), plain(wanted));
    sameTime(visibleAtMs, (await nowMs()) + 3 * HOUR_MS);
  },

  'counts from now on, not from the end of the lease': async ({ store, sameTime, nowMs }) => {
    const task = await putClaimed(store, newTask(), { leaseMs: 5 * HOUR_MS });
    await store.renew([at(task)], HOUR_MS);
    sameTime((await row(store, task.id)).visibleAtMs, (await nowMs()) + HOUR_MS);
  },

  'keeps a task from being lost': async ({ store, pass }) => {
    const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await store.renew([at(task)], HOUR_MS);
    await pass(SHORT_MS + 1);
    deepEqual((await claimLost(store, ['a'])).tasks, []);
  },

  'takes up a lease that is over while nobody else took it': async ({ store, pass }) => {
    const task = await putClaimed(store, newTask(), { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    deepEqual(await store.renew([at(task)], HOUR_MS), ['held']);
    deepEqual(await store.settle([settlements.done(task)]), ['settled']);
  },

  'says lost for what is not held by that token': async ({ store }) => {
    const [waiting, held, over] = [
      await put(store),
      await putClaimed(store, inLane('b')),
      await putClaimed(store, inLane('c')),
    ];
    await store.settle([settlements.done(over)]);
    const finished = await row(store, over.id);
    const leases = [
      { id: waiting.id, lease: token() },
      { id: held.id, lease: token() },
      at(over),
      { id: held.id + 1000, lease: held.lease! },
    ];
    deepEqual(await store.renew(leases, HOUR_MS), ['lost', 'lost', 'lost', 'lost']);
    await expectRow(store, waiting);
    await expectRow(store, held);
    await expectRow(store, finished);
  },

  'answers each in its place': async ({ store }) => {
    const tasks = [];
    for (const lane of ['a', 'b', 'c']) tasks.push(await putClaimed(store, inLane(lane)));
    const leases = tasks.map(at).toReversed();
    leases[1] = { ...leases[1]!, lease: token() };
    deepEqual(await store.renew(leases, 2 * HOUR_MS), ['held', 'lost', 'held']);
  },

  'takes no leases at all': async ({ store }) => {
    deepEqual(await store.renew([], HOUR_MS), []);
  },

  'does not bring a finished task back': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.retried(task)]);
    await store.renew([at(task)], HOUR_MS);
    equal((await row(store, task.id)).status, 'retried');
  },
};
