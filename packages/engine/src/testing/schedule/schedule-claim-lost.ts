import { deepEqual, equal } from 'node:assert/strict';
import { cancel } from '../../model/moves.ts';
import type { NewTask, Task } from '../../model/task.ts';
import {
  claimDue,
  claimExpired,
  claimLost,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  plain,
  put,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  token,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';

export const claimLostCases: StoreCases = {
  'leases what was claimed and whose lease is over': async ({ store, pass, sameTime }) => {
    const before = await lose({ store, pass });
    const lease = token();
    const { tasks, nowMs } = await claimLost(store, ['a'], { lease });
    equal(tasks.length, 1);
    const { visibleAtMs, ...rest } = tasks[0]!;
    const { visibleAtMs: _, ...wanted } = before;
    deepEqual(plain(rest), plain({ ...wanted, lease, claims: 2 }));
    sameTime(visibleAtMs, nowMs + HOUR_MS);
    await expectRow(store, tasks[0]!);
  },

  'leases nothing whose lease still runs': async ({ store, sameTime }) => {
    await putClaimed(store, inLane('a'));
    const { tasks, nextInMs } = await claimLost(store, ['a']);
    deepEqual(tasks, []);
    equal(nextInMs.length, 1);
    sameTime(nextInMs[0], HOUR_MS);
  },

  'leases nothing that only waits': async ({ store }) => {
    await put(store, inLane('a'));
    const { tasks, nextInMs } = await claimLost(store, ['a']);
    deepEqual([tasks, nextInMs], [[], [undefined]]);
  },

  'hides what it leased': async ({ store, pass }) => {
    await lose({ store, pass });
    equal((await claimLost(store, ['a'])).tasks.length, 1);
    equal((await claimLost(store, ['a'])).tasks.length, 0);
  },

  'has one limit for all of its lanes, and says when there is more': async ({ store, pass }) => {
    await store.insert([inLane('a'), inLane('a'), inLane('b'), inLane('c')]);
    await claimDue(store, ['a', 'b', 'c'], { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const { tasks, nextInMs } = await claimLost(store, ['a', 'b'], { limit: 2 });
    equal(tasks.length, 2);
    deepEqual(nextInMs, [0]);
    equal((await claimLost(store, ['a', 'b'], { limit: 2 })).tasks.length, 1);
    equal((await claimLost(store, ['c'])).tasks.length, 1);
  },

  'leases the one that was lost first, first': async ({ store, pass }) => {
    const [late, early] = await store.insert([inLane('a'), inLane('b')]);
    await claimDue(store, 'b', { leaseMs: SHORT_MS });
    await claimDue(store, 'a', { leaseMs: 400 });
    await pass(400);
    deepEqual(ids((await claimLost(store, ['a', 'b'], { limit: 1 })).tasks), [early]);
    deepEqual(ids((await claimLost(store, ['a', 'b'], { limit: 1 })).tasks), [late]);
  },

  'leases one always and then no more bytes than it may': async ({ store, pass }) => {
    const payload = new Uint8Array(100);
    await store.insert(Array.from({ length: 4 }, () => inLane('a', { payload })));
    await claimDue(store, 'a', { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const { tasks, nextInMs } = await claimLost(store, ['a'], { maxBytes: 299 });
    equal(tasks.length, 2);
    deepEqual(nextInMs, [0]);
    equal((await claimLost(store, ['a'], { maxBytes: 1 })).tasks.length, 1);
  },

  'leases nothing that is over': async ({ store, pass }) => {
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
      await pass(SHORT_MS + 1);
      equal((await store.settle([settlements[kind](task)]))[0], 'settled');
    }
    deepEqual((await claimLost(store, ['a'])).tasks, []);
  },

  'leases nothing that was renewed': async ({ store, pass }) => {
    const { id, lease } = await lose({ store, pass });
    deepEqual(await store.renew([{ id, lease: lease! }], HOUR_MS), ['held']);
    deepEqual((await claimLost(store, ['a'])).tasks, []);
  },

  'leases again what was lost and given back': async ({ store, pass }) => {
    await lose({ store, pass });
    const [second] = (await claimLost(store, ['a'])).tasks;
    await store.settle([settlements.released(second!)]);
    equal((await row(store, second!.id)).claims, 1);
    deepEqual((await claimDue(store, 'a')).tasks, []);
    const [third] = (await claimLost(store, ['a'])).tasks;
    equal(third?.claims, 2);
  },

  'leases nothing that is blocked': async ({ store, pass }) => {
    const task = await lose({ store, pass });
    await store.change([task], (found) => ({ result: 1, task: { ...found!, blocked: true } }));
    deepEqual((await claimLost(store, ['a'])).tasks, []);
  },

  'never gives one task to two claims at once': async ({ store, pass }) => {
    await store.insert(Array.from({ length: 50 }, () => inLane('a')));
    await claimDue(store, 'a', { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => claimLost(store, ['a'], { limit: 5 })),
    );
    const claimed = claims.flatMap(({ tasks }) => ids(tasks));
    equal(new Set(claimed).size, claimed.length);
    const rest = await claimLost(store, ['a']);
    equal(claimed.length + rest.tasks.length, 50);
  },

  'gives another instance what a dead one held': {
    needs: 'shared',
    run: async ({ store, second, pass }) => {
      const task = await lose({ store, pass });
      const other = await second();
      deepEqual(ids((await claimLost(other, ['a'])).tasks), [task.id]);
    },
  },
};

export const claimExpiredCases: StoreCases = {
  'leases what is past its expiry, in any lane, due or not': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const due = await put(store, inLane('a', { expiresAtMs }));
    const waiting = await put(store, inLane('b', { expiresAtMs, due: { inMs: HOUR_MS } }));
    const lease = token();
    const { tasks, nextInMs } = await claimExpired(store, { lease });
    deepEqual(
      ids(tasks).toSorted((a, b) => a - b),
      [due.id, waiting.id],
    );
    deepEqual(nextInMs, []);
    for (const task of tasks) {
      deepEqual([task.lease, task.claims], [lease, 1]);
      await expectRow(store, task);
    }
  },

  'leases nothing that has time left, or no end': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) + HOUR_MS;
    await store.insert([inLane('a', { expiresAtMs }), inLane('a')]);
    deepEqual((await claimExpired(store)).tasks, []);
  },

  'leases at the expiry': async ({ store, nowMs, pass }) => {
    const expiresAtMs = Math.floor(await nowMs()) + 100;
    await put(store, inLane('a', { expiresAtMs, due: { inMs: HOUR_MS } }));
    await pass(100);
    equal((await claimExpired(store)).tasks.length, 1);
  },

  'leaves a lease that runs alone, and takes one that is over': async ({ store, nowMs, pass }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    await putClaimed(store, inLane('a', { expiresAtMs }));
    const over = await putClaimed(store, inLane('b', { expiresAtMs }), { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const { tasks } = await claimExpired(store);
    deepEqual(ids(tasks), [over.id]);
    equal(tasks[0]?.claims, 2);
  },

  'leases the one that expired first, first, and no more than the limit': async ({
    store,
    nowMs,
  }) => {
    const atMs = Math.floor(await nowMs());
    const later = await put(store, expiring(atMs - 10));
    const first = await put(store, expiring(atMs - 30));
    const middle = await put(store, expiring(atMs - 20));
    deepEqual(ids((await claimExpired(store, { limit: 2 })).tasks), [first.id, middle.id]);
    deepEqual(ids((await claimExpired(store, { limit: 2 })).tasks), [later.id]);
  },

  'leases nothing that is over': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store, inLane('a', { expiresAtMs }));
      await store.settle([settlements[kind](task)]);
    }
    deepEqual((await claimExpired(store)).tasks, []);
  },

  'leases what is blocked too, and leaves it so': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const { id } = await put(store, inLane('a', { expiresAtMs, blocked: true }));
    const { tasks } = await claimExpired(store);
    deepEqual(
      tasks.map((task) => [task.id, task.blocked, task.claims]),
      [[id, true, 1]],
    );
    deepEqual((await claimExpired(store)).tasks, []);
    await expectRow(store, tasks[0]!);
  },

  'keeps to the bytes that it may': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const payload = new Uint8Array(100);
    await store.insert(Array.from({ length: 3 }, () => inLane('a', { expiresAtMs, payload })));
    equal((await claimExpired(store, { maxBytes: 200 })).tasks.length, 2);
    equal((await claimExpired(store, { maxBytes: 1 })).tasks.length, 1);
  },

  'takes part in no other claim at once': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    await store.insert(Array.from({ length: 50 }, () => inLane('a', { expiresAtMs })));
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        i % 2 ? claimExpired(store, { limit: 10 }) : claimDue(store, [{ lane: 'a', limit: 10 }]),
      ),
    );
    const claimed = claims.flatMap(({ tasks }) => ids(tasks));
    equal(new Set(claimed).size, claimed.length);
  },
};

export const abandonCases: StoreCases = {
  'gives back what was leased, as if it had not been': async ({ store }) => {
    const before = await put(store, inLane('a', { uncounted: 2, attempt: 1 }));
    const lease = token();
    await claimDue(store, 'a', { lease });
    await store.abandon(lease);
    await expectRow(store, before);
    deepEqual(ids((await claimDue(store, 'a')).tasks), [before.id]);
  },

  'gives back all of one claim and nothing of another': async ({ store }) => {
    const lease = token();
    await store.insert([inLane('a'), inLane('a'), inLane('b')]);
    await claimDue(store, 'a', { lease });
    const [other] = (await claimDue(store, 'b')).tasks;
    await store.abandon(lease);
    equal((await claimDue(store, 'a')).tasks.length, 2);
    await expectRow(store, other!);
  },

  'keeps the count of those that were lost before': async ({ store, pass }) => {
    await lose({ store, pass });
    const lease = token();
    const [again] = (await claimLost(store, ['a'], { lease })).tasks;
    await store.abandon(lease);
    const { claims, lease: held } = await row(store, again!.id);
    deepEqual([claims, held], [1, undefined]);
    equal((await claimLost(store, ['a'])).tasks.length, 1);
  },

  'does nothing for a token that nobody has, and nothing the second time': async ({ store }) => {
    const task = await putClaimed(store);
    await store.abandon(token());
    await expectRow(store, task);
    await store.abandon(task.lease!);
    const after = await row(store, task.id);
    await store.abandon(task.lease!);
    await expectRow(store, after);
  },

  'leaves alone what is settled': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.done(task)]);
    const after = await row(store, task.id);
    await store.abandon(task.lease!);
    await expectRow(store, after);
  },

  'cancels what was cancelled meanwhile': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await putClaimed(store);
      await store.change([task], cancel);
      await store.abandon(task.lease!);
      equal((await row(store, task.id)).status, 'cancelled');
    },
  },
};

/** A task in lane a whose worker is gone: claimed once, and the lease is over. */
async function lose({ store, pass }: Pick<Stage, 'store' | 'pass'>): Promise<Task> {
  const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
  await pass(SHORT_MS + 1);
  return task;
}

function expiring(expiresAtMs: number): NewTask {
  return inLane('a', { expiresAtMs, due: { inMs: HOUR_MS } });
}
