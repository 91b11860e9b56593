import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ActResult, Edit, InboxItem, ItemAction, Loan } from '../ports/inbox.ts';
import type { Store } from '../ports/store.ts';
import {
  at,
  bytes,
  claimDue,
  claimLost,
  HOUR_MS,
  ids,
  inLane,
  inLine,
  row,
  token,
} from './fixtures.ts';
import { actOne, dead, deadMany, jobDocument, newJob } from './inbox-fixtures.ts';
import { hold, JOB } from './inbox-jobs.ts';
import type { StoreCases } from './stage.ts';
import { each } from './suite.ts';

const replay: ItemAction = { type: 'replay', job: JOB };

/** Leases that are given with a replay. */
export const loanCases: StoreCases = {
  'leases what it replays, as a claim does': async ({ store, nowMs }) => {
    const items = await deadMany(store, 3);
    const beforeMs = await nowMs();
    const { leased, loan } = await lend(store, items);
    deepEqual(new Set(ids(leased.tasks)), new Set(items.map(({ taskId }) => taskId!)));
    ok(leased.nowMs >= beforeMs);
    for (const task of leased.tasks) {
      equal(task.dueAtMs, leased.nowMs);
      equal(task.visibleAtMs, leased.nowMs + HOUR_MS);
      deepEqual([task.lease, task.claims, task.generation, task.job], [loan.lease, 1, 1, JOB]);
      deepEqual(plainOf(task), plainOf(await row(store, task.id)));
    }
    deepEqual((await claimDue(store, 'a')).tasks, []);
  },

  'gives leases that can be settled': async ({ store }) => {
    const items = await deadMany(store, 2);
    const { leased } = await lend(store, items);
    const ends = leased.tasks.map((task) => ({ ...at(task), to: 'done' as const }));
    deepEqual(await store.settle(ends), ['settled', 'settled']);
    equal((await store.tally(JOB, 10)).underway, 0);
  },

  'gives leases that are lost when they are over': async ({ store, pass }) => {
    const [item] = await deadMany(store, 1);
    await lend(store, [item!], { leaseMs: 50 });
    await pass(51);
    const { tasks } = await claimLost(store, ['a']);
    deepEqual(
      tasks.map(({ id, claims }) => [id, claims]),
      [[item!.taskId, 2]],
    );
  },

  'gives leases that can be abandoned, as if they had not been': async ({ store }) => {
    const items = await deadMany(store, 3);
    const { loan } = await lend(store, items);
    await store.abandon(loan.lease);
    const { tasks } = await claimDue(store, 'a');
    deepEqual(ids(tasks).length, 3);
    deepEqual(
      tasks.map(({ claims }) => claims),
      [1, 1, 1],
    );
  },

  'leases nothing in other lanes': async ({ store }) => {
    const items = [...(await deadMany(store, 2, 'a')), ...(await deadMany(store, 2, 'b'))];
    const { leased } = await lend(store, items, { lanes: ['b', 'c'] });
    deepEqual(
      leased.tasks.map(({ lane }) => lane),
      ['b', 'b'],
    );
    equal((await claimDue(store, 'a')).tasks.length, 2);
  },

  'leases no more than the limit, and leaves the rest due': async ({ store }) => {
    const items = await deadMany(store, 5);
    const { leased } = await lend(store, items, { limit: 2 });
    deepEqual(new Set(ids(leased.tasks)), new Set(items.slice(0, 2).map(({ taskId }) => taskId!)));
    equal((await claimDue(store, 'a')).tasks.length, 3);
  },

  'leases nothing that is too large': async ({ store }) => {
    const small = await dead(store, inLane('a', { payload: bytes('1234') }));
    const large = await dead(store, inLane('a', { payload: bytes('12345') }));
    const { leased } = await lend(store, [small.item, large.item], { maxBytesEach: 4 });
    deepEqual(ids(leased.tasks), [small.task.id]);
    deepEqual(ids((await claimDue(store, 'a')).tasks), [large.task.id]);
  },

  'leases nothing where the version is another': async ({ store }) => {
    const items = await deadMany(store, 2);
    await newJob(store, JOB);
    equal(
      await store.act(
        ids(items),
        replay,
        hold(2, () => ({})),
        loanOf(),
      ),
      undefined,
    );
    deepEqual((await claimDue(store, 'a')).tasks, []);
    equal(await store.count({ state: 'open' }), 2);
  },

  'leases nothing by an action that replays nothing': async ({ store }) => {
    const items = await deadMany(store, 2);
    const answer = await underJob(store, items, { type: 'resolve' });
    deepEqual(answer, { results: ['done', 'done'] });
    deepEqual(
      await Promise.all(items.map(async ({ taskId }) => (await row(store, taskId!)).status)),
      ['cancelled', 'cancelled'],
    );
  },

  'answers without a lease where nothing is leased': async ({ store }) => {
    const items = await deadMany(store, 2);
    deepEqual(await underJob(store, items, replay, loanOf({ lanes: ['b'] })), {
      results: ['done', 'done'],
    });
  },

  ...each(
    ['changed', 'closed', 'in a line', 'unknown', 'there twice'] as const,
    (what) => `does all the rest where one of them is ${what}, and loses none`,
    async (what, { store }) => {
      const [first, last, ...others] = await deadMany(store, 4);
      const odd = await oddOne(store, what, first!);
      const all = [first!.id, odd, last!.id, ...ids(others)];
      await newJob(store, JOB);
      const under = hold<ActResult[]>(1, (results) => ({ results }));
      const loan = loanOf();
      const answer = await store.act(all, replay, under, loan);
      const { results, leased } = answer!;
      deepEqual(results, [
        'done',
        { changed: 'done', 'in a line': 'done', unknown: 'unknown' }[what as string] ?? 'closed',
        'done',
        'done',
        'done',
      ]);
      deepEqual(await jobDocument(store, JOB), [{ results }, 2]);
      // Whatever was leased and what was not: together all of them, each once.
      const { tasks } = await claimDue(store, 'a');
      const found = [...ids(leased?.tasks ?? []), ...ids(tasks)];
      equal(new Set(found).size, found.length);
      equal(found.length, results.filter((result) => result === 'done').length);
      for (const task of leased?.tasks ?? [])
        deepEqual([task.orderingKey, task.edited], [undefined, undefined]);
    },
  ),
};

async function oddOne(store: Store, what: string, first: InboxItem): Promise<number> {
  switch (what) {
    case 'changed': {
      const { item } = await dead(store);
      const edit: Edit = { headers: { 'x-a': '1' } };
      equal(await actOne(store, item, { type: 'edit', edit }), 'done');
      return item.id;
    }
    case 'closed': {
      const { item } = await dead(store);
      equal(await actOne(store, item, { type: 'discard' }), 'done');
      return item.id;
    }
    case 'in a line':
      return (await dead(store, inLine('k', { lane: 'a' }))).item.id;
    case 'unknown':
      return first.id + 1000;
    default:
      return first.id;
  }
}

function loanOf(changes: Partial<Loan> = {}): Loan {
  const room = { lanes: ['a'], limit: 100, maxBytesEach: 1000 };
  return { ...room, lease: token(), leaseMs: HOUR_MS, ...changes };
}

async function lend(store: Store, items: readonly InboxItem[], changes: Partial<Loan> = {}) {
  const loan = loanOf(changes);
  const answer = await underJob(store, items, replay, loan);
  deepEqual(
    answer?.results,
    items.map(() => 'done'),
  );
  ok(answer?.leased, 'Nothing was leased.');
  return { leased: answer.leased, loan };
}

async function underJob(
  store: Store,
  items: readonly InboxItem[],
  action: ItemAction,
  loan: Loan = loanOf(),
) {
  await newJob(store, JOB);
  return store.act(
    ids(items),
    action,
    hold<ActResult[]>(1, () => ({})),
    loan,
  );
}

function plainOf(task: { payload: Uint8Array }): unknown {
  return { ...task, payload: [...task.payload] };
}
