import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { cancel } from '../../model/moves.ts';
import {
  at,
  claimDue,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxMessage,
  outboxTexts,
  put,
  putClaimed,
  row,
  settlements,
} from '../fixtures.ts';
import type { StoreCases } from '../stage.ts';
import { needing } from '../suite.ts';

export const transactionCases: StoreCases = {
  'refuses what is no transaction, and writes nothing': async ({ store }) => {
    const task = newTask();
    await rejects(store.insert([task], {}));
    await rejects(store.change([task], () => ({ result: 1, task }), {}));
    equal(await store.get(task), undefined);
  },

  ...needing('transactions', {
    'refuses a connection that is in no transaction, and writes nothing': async ({
      store,
      outside,
    }) => {
      const refused = { code: 'NOT_IN_TRANSACTION' };
      const known = await put(store, newTask({ due: { inMs: HOUR_MS } }));
      for (const [name, tx] of Object.entries(await outside())) {
        const task = inLane('a');
        await rejects(store.insert([task], tx), refused, `insert by ${name}`);
        await rejects(store.change([known], cancel, tx), refused, `change by ${name}`);
        equal(await store.get(task), undefined, name);
        await expectRow(store, known);
      }
      deepEqual((await claimDue(store, 'a')).tasks, []);
    },

    'leaves what the caller has done in the transaction as it was': async ({ store, begin }) => {
      const tasks = [newTask(), newTask()];
      const { tx, commit } = await begin();
      for (const task of tasks) await store.insert([task], tx);
      await store.change([tasks[0]!], cancel, tx);
      await commit();
      equal((await store.get(tasks[0]!))?.status, 'cancelled');
      equal((await store.get(tasks[1]!))?.status, 'pending');
    },

    'inserts with what else is committed': async ({ store, begin }) => {
      const task = inLane('a');
      const { tx, commit } = await begin();
      const [id] = await store.insert([task], tx);
      ok(id !== undefined);
      equal(await store.get(task), undefined);
      deepEqual((await claimDue(store, 'a')).tasks, []);
      await commit();
      equal((await store.get(task))?.id, id);
      deepEqual(ids((await claimDue(store, 'a')).tasks), [id]);
    },

    'inserts nothing that is rolled back': async ({ store, begin }) => {
      const task = newTask();
      const { tx, rollback } = await begin();
      await store.insert([task], tx);
      await rollback();
      equal(await store.get(task), undefined);
      ok((await store.insert([task]))[0] !== undefined);
    },

    'knows inside of a transaction what it has inserted there': async ({ store, begin }) => {
      const task = newTask();
      const { tx, commit } = await begin();
      await store.insert([task], tx);
      deepEqual(await store.insert([task, newTask()], tx).then((all) => all[0]), undefined);
      await commit();
    },

    'leaves a transaction usable by a task that is known': async ({ store, begin }) => {
      const task = newTask();
      await put(store, task);
      const { tx, commit } = await begin();
      deepEqual(await store.insert([task], tx), [undefined]);
      const [id] = await store.insert([newTask()], tx);
      await commit();
      ok(await store.get({ id: id! }));
    },

    'changes with what else is committed': async ({ store, begin }) => {
      const task = await put(store, newTask({ due: { inMs: HOUR_MS } }));
      const { tx, commit } = await begin();
      const outbox = outboxMessage('together');
      const move = () => ({ result: 1, task: { ...task, attempt: 3 }, outbox });
      await store.change([task], move, tx);
      await expectRow(store, task);
      deepEqual(await outboxTexts(store), []);
      await commit();
      equal((await row(store, task.id)).attempt, 3);
      deepEqual(await outboxTexts(store), ['together']);
    },

    'changes nothing that is rolled back': async ({ store, begin }) => {
      const task = await put(store);
      const { tx, rollback } = await begin();
      await store.change([task], cancel, tx);
      await rollback();
      await expectRow(store, task);
    },

    'tells who watches when it is committed': async ({ store, begin, until }) => {
      const lanes: string[] = [];
      store.watch((hint) => lanes.push(...(hint.lanes ?? ['joined'])));
      // Watching may begin a moment after it was asked for: only what is committed after that is promised.
      await until('the hint', async () => {
        const { tx, commit } = await begin();
        await store.insert([inLane('joined')], tx);
        await commit();
        return lanes.includes('joined');
      });
    },

    'claims around a task that a transaction holds': async ({ store, begin }) => {
      const held = await put(store, inLane('a'));
      const free = await put(store, inLane('a'));
      const { tx, commit } = await begin();
      await store.change([held], (task) => ({ result: 1, task: { ...task!, attempt: 1 } }), tx);
      deepEqual(ids((await claimDue(store, 'a')).tasks), [free.id]);
      await commit();
      deepEqual(ids((await claimDue(store, 'a')).tasks), [held.id]);
    },

    'settles around a task that a transaction holds, and says so': async ({ store, begin }) => {
      const held = await putClaimed(store, inLane('a'));
      const free = await putClaimed(store, inLane('b'));
      const { tx, commit } = await begin();
      await store.change([held], cancel, tx);
      const both = [settlements.done(held), settlements.done(free)];
      deepEqual(await store.settle(both), ['busy', 'settled']);
      await commit();
      deepEqual(await store.settle(both), ['settled', 'lost']);
    },

    'renews around a task that a transaction holds, and says so': async ({ store, begin }) => {
      const held = await putClaimed(store, inLane('a'));
      const free = await putClaimed(store, inLane('b'));
      const { tx, rollback } = await begin();
      await store.change([held], cancel, tx);
      deepEqual(await store.renew([at(held), at(free)], HOUR_MS), ['busy', 'held']);
      await rollback();
      deepEqual(await store.renew([at(held)], HOUR_MS), ['held']);
    },
  }),
};
