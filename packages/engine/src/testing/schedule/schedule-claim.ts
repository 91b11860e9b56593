import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  bytes,
  claimDue,
  claimLost,
  expectRow,
  HOUR_MS,
  ids,
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

export const claimCases: StoreCases = {
  'leases what is due': async ({ store, sameTime }) => {
    const before = await put(store, newTask({ context: { method: 'PUT' } }));
    const lease = token();
    const { tasks, nowMs } = await claimDue(store, before.lane, { lease });
    equal(tasks.length, 1);
    const { visibleAtMs, ...rest } = tasks[0]!;
    const { visibleAtMs: _, ...wanted } = before;
    deepEqual(plain(rest), plain({ ...wanted, lease, claims: 1 }));
    sameTime(visibleAtMs, nowMs + HOUR_MS);
  },

  'writes what it answers': async ({ store }) => {
    await expectRow(store, await putClaimed(store));
  },

  'tells the time of the store': async ({ store, sameTime, nowMs }) => {
    sameTime((await claimDue(store, 'any')).nowMs, await nowMs());
  },

  'leases the earliest first': async ({ store, pass }) => {
    const delays = [400, 0, 200];
    const [late, early, middle] = await store.insert(
      delays.map((inMs) => inLane('a', { due: { inMs } })),
    );
    await pass(400);
    deepEqual(ids((await claimDue(store, 'a')).tasks), [early, middle, late]);
  },

  'leases the earliest where there are more than it may': async ({ store, pass }) => {
    const [late, early] = await store.insert(
      [400, 0].map((inMs) => inLane('a', { due: { inMs } })),
    );
    await pass(400);
    const one = [{ lane: 'a', limit: 1 }];
    deepEqual(ids((await claimDue(store, one)).tasks), [early]);
    deepEqual(ids((await claimDue(store, one)).tasks), [late]);
  },

  'leases in the order of ids what is due at the same time': async ({ store, nowMs, pass }) => {
    const due = { atMs: Math.floor(await nowMs()) + 400 };
    const made = await store.insert(Array.from({ length: 10 }, () => inLane('a', { due })));
    await pass(400);
    const { tasks } = await claimDue(store, 'a');
    deepEqual(
      ids(tasks),
      (made as number[]).toSorted((a, b) => a - b),
    );
  },

  'leases nothing before it is due': async ({ store }) => {
    await put(store, inLane('a', { due: { inMs: HOUR_MS } }));
    deepEqual((await claimDue(store, 'a')).tasks, []);
  },

  'leases at the due time, not before': async ({ store, pass, until, nowMs }) => {
    const { dueAtMs, id } = await put(store, inLane('a', { due: { inMs: 100 } }));
    await pass(99);
    await until('the task is claimed', async () => {
      const { tasks, nowMs: atMs } = await claimDue(store, 'a');
      if (atMs < dueAtMs) deepEqual(tasks, []);
      return tasks[0]?.id === id;
    });
    ok((await nowMs()) >= dueAtMs);
  },

  'hides what it leased': async ({ store }) => {
    await putClaimed(store, inLane('a'));
    deepEqual((await claimDue(store, 'a')).tasks, []);
  },

  'leases nothing that was claimed before, also when that lease is over': async ({
    store,
    pass,
  }) => {
    await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const { tasks, nextInMs } = await claimDue(store, 'a');
    deepEqual(tasks, []);
    deepEqual(nextInMs, [undefined]);
  },

  'leases no more than the limit of a lane': async ({ store }) => {
    await store.insert(Array.from({ length: 5 }, () => inLane('a')));
    equal((await claimDue(store, [{ lane: 'a', limit: 3 }])).tasks.length, 3);
    equal((await claimDue(store, [{ lane: 'a', limit: 3 }])).tasks.length, 2);
    equal((await claimDue(store, [{ lane: 'a', limit: 3 }])).tasks.length, 0);
  },

  'keeps to the limit of each lane by itself': async ({ store }) => {
    for (const lane of ['a', 'b', 'c'])
      await store.insert(Array.from({ length: 4 }, () => inLane(lane)));
    const { tasks } = await claimDue(store, [
      { lane: 'a', limit: 1 },
      { lane: 'b', limit: 9 },
      { lane: 'c', limit: 2 },
    ]);
    deepEqual(countByLane(tasks), { a: 1, b: 4, c: 2 });
  },

  'leases nothing for a limit of 0': async ({ store }) => {
    await put(store, inLane('a'));
    const { tasks, nextInMs } = await claimDue(store, [{ lane: 'a', limit: 0 }]);
    deepEqual(tasks, []);
    deepEqual(nextInMs, [0]);
  },

  'looks only into the lanes that it is given': async ({ store }) => {
    await store.insert([inLane('a'), inLane('ab'), inLane('A'), inLane('b')]);
    deepEqual(countByLane((await claimDue(store, ['a'])).tasks), { a: 1 });
  },

  'takes no lanes at all': async ({ store }) => {
    await put(store);
    const { tasks, nextInMs } = await claimDue(store, []);
    deepEqual([tasks, nextInMs], [[], []]);
  },

  'takes hundreds of lanes at once': async ({ store }) => {
    const lanes = Array.from({ length: 300 }, (_, i) => `lane ${i}`);
    await store.insert(lanes.filter((_, i) => i % 3 === 0).map((lane) => inLane(lane)));
    const { tasks, nextInMs } = await claimDue(store, lanes);
    equal(tasks.length, 100);
    equal(nextInMs.length, 300);
  },

  'leases nothing that is over': async ({ store }) => {
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store, inLane('a'));
      await store.settle([settlements[kind](task)]);
    }
    const { tasks, nextInMs } = await claimDue(store, 'a');
    deepEqual([tasks, nextInMs], [[], [undefined]]);
  },

  'leases nothing that is blocked': async ({ store }) => {
    await put(store, inLane('a', { blocked: true }));
    const { tasks, nextInMs } = await claimDue(store, 'a');
    deepEqual([tasks, nextInMs], [[], [undefined]]);
  },

  'gives different tokens to different claims': async ({ store }) => {
    await store.insert([inLane('a'), inLane('b')]);
    const [one, two] = [token(), token()];
    const first = await claimDue(store, 'a', { lease: one });
    const second = await claimDue(store, 'b', { lease: two });
    deepEqual([first.tasks[0]?.lease, second.tasks[0]?.lease], [one, two]);
  },

  'tells how long until there is more, lane by lane': async ({ store, sameTime }) => {
    await store.insert([
      inLane('later', { due: { inMs: HOUR_MS } }),
      inLane('later', { due: { inMs: 2 * HOUR_MS } }),
      inLane('more'),
      inLane('more'),
      inLane('one'),
      inLane('then'),
      inLane('then', { due: { inMs: HOUR_MS } }),
    ]);
    const lanes = ['nothing', 'later', { lane: 'more', limit: 1 }, 'one', 'then'];
    const { nextInMs } = await claimDue(store, lanes);
    equal(nextInMs.length, 5);
    equal(nextInMs[0], undefined);
    sameTime(nextInMs[1], HOUR_MS);
    equal(nextInMs[2], 0);
    equal(nextInMs[3], undefined);
    sameTime(nextInMs[4], HOUR_MS);
  },

  'counts only what can be claimed as due when it tells what is next': async ({ store }) => {
    await putClaimed(store, inLane('a'));
    deepEqual((await claimDue(store, 'a')).nextInMs, [undefined]);
  },

  'stops where the bytes are used up, and says that there is more': async ({ store }) => {
    const payload = new Uint8Array(100);
    await store.insert(Array.from({ length: 5 }, () => inLane('a', { payload })));
    const { tasks, nextInMs } = await claimDue(store, 'a', { maxBytes: 299 });
    equal(tasks.length, 2);
    deepEqual(nextInMs, [0]);
    equal((await claimDue(store, 'a', { maxBytes: 300 })).tasks.length, 3);
  },

  'leases one always, however large it is': async ({ store }) => {
    const payload = new Uint8Array(1000);
    await store.insert([inLane('a', { payload }), inLane('a', { payload })]);
    equal((await claimDue(store, 'a', { maxBytes: 10 })).tasks.length, 1);
    equal((await claimDue(store, 'a', { maxBytes: 0 })).tasks.length, 1);
  },

  'gives every lane its first before any its second where bytes are short': async ({ store }) => {
    const payload = new Uint8Array(100);
    for (const lane of ['a', 'b', 'c']) {
      await store.insert(Array.from({ length: 4 }, () => inLane(lane, { payload })));
    }
    const { tasks } = await claimDue(store, ['a', 'b', 'c'], { maxBytes: 300 });
    deepEqual(countByLane(tasks), { a: 1, b: 1, c: 1 });
    const more = await claimDue(store, ['a', 'b', 'c'], { maxBytes: 600 });
    deepEqual(countByLane(more.tasks), { a: 2, b: 2, c: 2 });
  },

  'leaves what did not fit as it was': async ({ store }) => {
    const payload = new Uint8Array(100);
    await put(store, inLane('a', { payload }));
    const left = await put(store, inLane('a', { payload }));
    await claimDue(store, 'a', { maxBytes: 100 });
    await expectRow(store, left);
  },

  'hands out bytes of its own': async ({ store }) => {
    const task = await putClaimed(store, inLane('a', { payload: bytes('kept') }));
    task.payload.fill(0);
    deepEqual(plain((await row(store, task.id)).payload), bytes('kept'));
  },

  'leases once what was written several times while it waited': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await put(store, inLane('a'));
      for (const attempt of [1, 2, 3]) {
        await store.change([task], (found) => ({ result: 1, task: { ...found!, attempt } }));
      }
      const { tasks } = await claimDue(store, 'a');
      deepEqual([ids(tasks), tasks[0]?.attempt, tasks[0]?.claims], [[task.id], 3, 1]);
    },
  },

  'counts every claim since the last settle': async ({ store, pass }) => {
    const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    equal(task.claims, 1);
    await pass(SHORT_MS + 1);
    const { tasks } = await claimLost(store, ['a']);
    equal(tasks[0]?.claims, 2);
    await store.settle([settlements.pending(tasks[0])]);
    equal((await store.get(task))?.claims, 0);
  },

  'never gives one task to two claims at once': async ({ store }) => {
    await store.insert(Array.from({ length: 100 }, () => inLane('a')));
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => claimDue(store, [{ lane: 'a', limit: 7 }])),
    );
    const claimed = claims.flatMap(({ tasks }) => ids(tasks));
    equal(new Set(claimed).size, claimed.length);
    const rest = await claimDue(store, 'a');
    equal(claimed.length + rest.tasks.length, 100);
  },

  'never gives one task to two instances at once': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const stores = [store, await second()];
      await store.insert(Array.from({ length: 100 }, () => inLane('a')));
      const claims = await Promise.all(
        Array.from({ length: 20 }, (_, i) => claimDue(stores[i % 2]!, [{ lane: 'a', limit: 7 }])),
      );
      const claimed = claims.flatMap(({ tasks }) => ids(tasks));
      equal(new Set(claimed).size, claimed.length);
      const rest = await claimDue(store, 'a');
      equal(claimed.length + rest.tasks.length, 100);
    },
  },
};

function countByLane(tasks: readonly { lane: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { lane } of tasks) counts[lane] = (counts[lane] ?? 0) + 1;
  return counts;
}
