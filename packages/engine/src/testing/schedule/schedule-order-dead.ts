import { deepEqual, equal } from 'node:assert/strict';
import { accept, cancel } from '../../model/moves.ts';
import type { ItemAction } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  arrivalOf,
  claimDue,
  claimExpired,
  HOUR_MS,
  ids,
  inLine,
  put,
  row,
  settlements,
} from '../fixtures.ts';
import { arrive, claimed, deliverAll, fill, turns } from './schedule-order.ts';
import { listen } from './schedule-watch.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each, needing } from '../suite.ts';

const plenty = { items: 100, tasks: 100 };

/** What lies in the inbox holds its place, unless it lets its followers pass. */
export const orderDeadCases: StoreCases = needing('ordering', {
  'its followers wait': async ({ store }) => {
    const { rows } = await dead(store, 3);
    deepEqual(await turns(store, rows), []);
    deepEqual(await claimed(store), []);
    deepEqual(await store.lanes({ limit: 10 }), []);
    deepEqual((await claimDue(store, 'a')).nextInMs, [undefined]);
    const late = await put(store, inLine('k'));
    equal(late.blocked, true);
  },

  'tells who waits behind an item, and where': async ({ store }) => {
    const { item } = await dead(store, 4);
    await put(store, inLine('k', { lane: 'b' }));
    await put(store, inLine('k', { lane: 'b' }));
    await fill(store, 2, { orderingKey: 'other' });
    deepEqual(await store.blocked(plenty), [{ lane: 'a', items: 1, tasks: 3 }]);
    await store.act([item], { type: 'resolve' });
    deepEqual(await store.blocked(plenty), []);
  },

  'counts items that nobody waits behind as nothing': async ({ store }) => {
    await dead(store, 1);
    deepEqual(await store.blocked(plenty), []);
  },

  'counts items that let their followers pass as nothing': async ({ store }) => {
    await dead(store, 3, 'release');
    deepEqual(await store.blocked(plenty), []);
  },

  'counts an item behind another neither as one that blocks nor as one that waits': async (
    stage,
  ) => {
    const { store, nowMs } = stage;
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const [first] = await fill(store, 1, { due: { inMs: HOUR_MS } });
    await put(store, inLine('k', { expiresAtMs }));
    await put(store, inLine('k'));
    await store.settle((await claimExpired(store)).tasks.map(settlements.failed));
    deepEqual(await store.blocked(plenty), []);
    await store.change([first!], cancel);
    deepEqual(await store.blocked(plenty), [{ lane: 'a', items: 1, tasks: 1 }]);
  },

  'adds up the lines of each lane, the lanes in order': async ({ store }) => {
    for (const [lane, key] of [
      ['b', 'x'],
      ['a', 'x'],
      ['b', 'y'],
    ] as const) {
      const of = { lane, orderingKey: key };
      for (let i = 0; i < 3; i++) await put(store, inLine(key, of));
      await store.settle((await claimDue(store, lane)).tasks.map(settlements.failed));
    }
    deepEqual(await store.blocked(plenty), [
      { lane: 'a', items: 1, tasks: 2 },
      { lane: 'b', items: 2, tasks: 4 },
    ]);
  },

  'looks at no more items, and at no more behind each, than it is told to': async ({ store }) => {
    for (const key of ['x', 'y', 'z']) {
      for (let i = 0; i < 5; i++) await put(store, inLine(key));
      await store.settle((await claimDue(store, 'a')).tasks.map(settlements.failed));
    }
    deepEqual(await store.blocked({ items: 2, tasks: 3 }), [{ lane: 'a', items: 2, tasks: 6 }]);
  },

  'its followers pass where it lets them': async ({ store }) => {
    const { rows } = await dead(store, 3, 'release');
    deepEqual(await deliverAll(store), ids(rows.slice(1)));
  },

  ...each(
    ['resolve', 'discard'] as const,
    (type) => `${type}: the next one comes`,
    async (type, { store }: Stage) => {
      const { rows, item } = await dead(store, 3);
      deepEqual(await store.act([item], { type }), ['done']);
      deepEqual(await deliverAll(store), ids(rows.slice(1)));
    },
  ),

  'erase: the next one comes': async ({ store }) => {
    const { rows, head } = await dead(store, 3);
    equal(await store.erase(head.messageId), 'erased');
    deepEqual(await turns(store, rows), [rows[1]!.id]);
    deepEqual(await deliverAll(store), ids(rows.slice(1)));
  },

  'replay: it comes before its followers': async ({ store }) => {
    const { rows, item } = await dead(store, 3);
    deepEqual(await store.act([item], { type: 'replay' }), ['done']);
    deepEqual(await turns(store, rows), [rows[0]!.id]);
    deepEqual(await deliverAll(store), ids(rows));
  },

  'replay of one that let others pass: it goes ahead of those that wait': async ({ store }) => {
    const { rows, item } = await dead(store, 3, 'release');
    deepEqual(await turns(store, rows), [rows[1]!.id]);
    await store.act([item], { type: 'replay' });
    deepEqual(await turns(store, rows), [rows[0]!.id]);
    deepEqual(await deliverAll(store), ids(rows));
  },

  'replay while a follower is in delivery: it waits for that one only': async ({ store }) => {
    const { rows, item } = await dead(store, 3, 'release');
    const [second] = (await claimDue(store, 'a')).tasks;
    await store.act([item], { type: 'replay' });
    deepEqual(await turns(store, rows), [second!.id]);
    deepEqual(await claimed(store), []);
    await store.settle([settlements.done(second!)]);
    deepEqual(await deliverAll(store), [rows[0]!.id, rows[2]!.id]);
  },

  'replay of several of one line: each in its place': async ({ store }) => {
    const rows = await fill(store, 4, { onDead: 'release' });
    for (let i = 0; i < 3; i++) await failNext(store);
    const items = await itemsOf(store, rows.slice(0, 3));
    deepEqual(await store.act(items.toReversed(), { type: 'replay' }), ['done', 'done', 'done']);
    deepEqual(await deliverAll(store), ids(rows));
  },

  'restore: its followers wait again': async ({ store }) => {
    const { rows, item } = await dead(store, 2);
    await store.act([item], { type: 'discard' });
    deepEqual(await turns(store, rows), [rows[1]!.id]);
    deepEqual(await store.act([item], { type: 'restore' }), ['done']);
    deepEqual(await turns(store, rows), []);
    deepEqual(await claimed(store), []);
  },

  'restore while a follower is in delivery: those behind it wait': async ({ store }) => {
    const { rows, item } = await dead(store, 3);
    await store.act([item], { type: 'resolve' });
    const [second] = (await claimDue(store, 'a')).tasks;
    await store.act([item], { type: 'restore' });
    deepEqual(await turns(store, rows), [second!.id]);
    await store.settle([settlements.done(second!)]);
    deepEqual(await turns(store, rows), []);
    await store.act([item], { type: 'resolve' });
    deepEqual(await claimed(store), [rows[2]!.id]);
  },

  'redirect: its old line goes on, and in the new one it is the last': async ({ store }) => {
    const { rows, item } = await dead(store, 2);
    const destination = { kind: 'queue', address: 'elsewhere' };
    const there = await put(store, inLine('k', { destination, lane: 'queue:elsewhere' }));
    deepEqual(await store.act([item], { type: 'replay', edit: { destination } }), ['done']);
    deepEqual(await claimed(store), [rows[1]!.id]);
    const moved = await store.get({ messageId: rows[0]!.messageId, destination });
    deepEqual([moved?.orderingKey, moved?.blocked], ['k', true]);
    const { tasks } = await claimDue(store, 'queue:elsewhere');
    deepEqual(ids(tasks), [there.id]);
    await store.settle(tasks.map(settlements.done));
    deepEqual(ids((await claimDue(store, 'queue:elsewhere')).tasks), [moved?.id]);
  },

  ...each(
    ['resolve', 'replay'] as const,
    (type) => `${type}: tells of the one whose turn has come`,
    async (type: ItemAction['type'] & ('resolve' | 'replay'), stage: Stage) => {
      const { store } = stage;
      const { item } = await dead(store, 2);
      const heard = await listen(stage, store);
      await store.act([item], { type });
      await stage.until('a hint of the lane', () => heard.lane('a'));
    },
  ),

  'a follower that expires fails in its place': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const [first] = await fill(store, 1, { due: { inMs: HOUR_MS } });
    const second = await put(store, inLine('k', { expiresAtMs }));
    const third = await put(store, inLine('k'));
    const { tasks } = await claimExpired(store);
    deepEqual(ids(tasks), [second.id]);
    deepEqual(await turns(store, [first!, second, third]), [first!.id]);
    deepEqual(await store.settle(tasks.map(settlements.failed)), ['settled']);
    deepEqual(await turns(store, [first!, third]), [first!.id]);
    await store.change([first!], cancel);
    deepEqual(await turns(store, [third]), []);
    const [item] = await itemsOf(store, [second]);
    await store.act([item!], { type: 'resolve' });
    deepEqual(await deliverAll(store), [third.id]);
  },

  'a follower that expires and is replayed comes in its place': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const [first] = await fill(store, 1);
    const second = await put(store, inLine('k', { expiresAtMs }));
    const third = await put(store, inLine('k'));
    await store.settle((await claimExpired(store)).tasks.map(settlements.failed));
    const [item] = await itemsOf(store, [second]);
    deepEqual(await store.act([item!], { type: 'replay' }), ['done']);
    deepEqual(await deliverAll(store), [first!.id, second.id, third.id]);
  },

  'a follower that expires and is given back stays blocked': async ({ store, nowMs }) => {
    const expiresAtMs = Math.floor(await nowMs()) - 1;
    const [first] = await fill(store, 1, { due: { inMs: HOUR_MS } });
    const second = await put(store, inLine('k', { expiresAtMs }));
    await store.settle((await claimExpired(store)).tasks.map(settlements.released));
    deepEqual(await turns(store, [first!, second]), [first!.id]);
    deepEqual(ids((await claimExpired(store)).tasks), [second.id]);
  },

  'one that comes back after it was cancelled holds its place again': async ({ store }) => {
    const rows = await fill(store, 2);
    await store.change([rows[0]!], cancel);
    deepEqual(await turns(store, rows), [rows[1]!.id]);
    equal(await arrive(store, rows[0]!), 'failed');
    deepEqual(await turns(store, rows), []);
    const [item] = await itemsOf(store, [rows[0]!]);
    await store.act([item!], { type: 'discard' });
    deepEqual(await turns(store, rows), [rows[1]!.id]);
  },

  'one that arrives and must not be retried holds its place': async ({ store }) => {
    const task = inLine('k');
    const arrival = arrivalOf(task, { verdict: 'PERMANENT' });
    const came = { ...arrival.task, lane: 'a', orderingKey: 'k', blocked: true };
    await store.change([task], (known, nowMs) =>
      accept({ ...arrival, task: came }, known, nowMs, 0),
    );
    equal((await store.get(task))?.status, 'failed');
    const follower = await put(store, inLine('k'));
    deepEqual(await turns(store, [follower]), []);
  },
});

/** A line whose first one lies in the inbox. */
async function dead(store: Store, count: number, onDead?: 'release') {
  const rows = await fill(store, count, onDead ? { onDead } : {});
  await failNext(store);
  const head = await row(store, rows[0]!.id);
  equal(head.status, 'failed');
  const [item] = await itemsOf(store, [head]);
  return { rows, head, item: item! };
}

async function failNext(store: Store): Promise<void> {
  await store.settle((await claimDue(store, 'a')).tasks.map(settlements.failed));
}

/** The open items of these tasks. */
async function itemsOf(store: Store, tasks: readonly Task[]): Promise<number[]> {
  const { items } = await store.items({ state: 'open', limit: 100 });
  return tasks.map(({ id }) => items.find(({ taskId }) => taskId === id)!.id);
}
