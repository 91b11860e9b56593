import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Census, Store } from '../ports/store.ts';
import type { Reason } from '../model/task.ts';
import {
  at,
  claimExpired,
  claimLost,
  HOUR_MS,
  inLane,
  inLine,
  newTask,
  put,
  putClaimed,
  rawItem,
  settlements,
  SHORT_MS,
} from './fixtures.ts';
import { actOne, dead, deadRaw } from './inbox/inbox-fixtures.ts';
import type { StoreCases } from './stage.ts';

export const censusCases: StoreCases = {
  'finds nothing where nothing is': async ({ store }) => {
    deepEqual(await store.census(), { pending: 0, open: {} });
  },

  'counts what is pending, whatever it waits for': async ({ store, pass }) => {
    await store.insert([inLane('a'), inLane('b', { due: { inMs: HOUR_MS } })]);
    await putClaimed(store, inLane('c'));
    await putClaimed(store, inLane('d'), { leaseMs: SHORT_MS });
    await store.insert([inLine('k'), inLine('k'), inLine('k')]);
    await pass(SHORT_MS + 1);
    equal((await store.census()).pending, 7);
  },

  'counts nothing that is over': async ({ store }) => {
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store);
      await store.settle([settlements[kind](task)]);
    }
    const { pending, oldestDueInMs } = await store.census();
    deepEqual([pending, oldestDueInMs], [0, undefined]);
  },

  'counts each once: one that is blocked and was claimed since it has expired': async (stage) => {
    const { store, pass, nowMs } = stage;
    const expiresAtMs = (await nowMs()) + SHORT_MS;
    await store.insert([inLine('k'), inLine('k', { expiresAtMs })]);
    await pass(SHORT_MS + 1);
    equal((await claimExpired(store)).tasks.length, 1);
    equal((await store.census()).pending, 2);
  },

  'counts nothing that has failed in its place behind others': async ({ store, pass, nowMs }) => {
    const expiresAtMs = (await nowMs()) + SHORT_MS;
    await store.insert([
      inLine('k'),
      inLine('k', { expiresAtMs }),
      inLine('k', { expiresAtMs, onDead: 'release' }),
      inLine('k'),
    ]);
    await pass(SHORT_MS + 1);
    const { tasks } = await claimExpired(store);
    equal(tasks.length, 2);
    await store.settle(tasks.map((task) => settlements.failed(task)));
    const { pending, open } = await store.census();
    deepEqual([pending, open], [2, { EXHAUSTED: 2 }]);
  },

  'counts beyond a page': async ({ store }) => {
    const lanes = Array.from({ length: 2500 }, (_, i) => inLane(`lane ${i % 3}`));
    await store.insert(lanes);
    equal((await store.census()).pending, 2500);
  },

  'says when the first is due, in whichever lane': async ({ store, sameTime }) => {
    await store.insert([
      inLane('b', { due: { inMs: 3 * HOUR_MS } }),
      inLane('a', { due: { inMs: 5 * HOUR_MS } }),
      inLane('c', { due: { inMs: 2 * HOUR_MS } }),
      inLane('c', { due: { inMs: 4 * HOUR_MS } }),
    ]);
    sameTime((await store.census()).oldestDueInMs, 2 * HOUR_MS);
  },

  'says for how long the first is overdue': async ({ store, pass, nowMs }) => {
    const { dueAtMs } = await put(store);
    await store.insert([newTask()]);
    await pass(SHORT_MS);
    const beforeMs = await nowMs();
    const { oldestDueInMs } = await store.census();
    const afterMs = await nowMs();
    ok(oldestDueInMs !== undefined && oldestDueInMs <= dueAtMs - beforeMs, `${oldestDueInMs}`);
    ok(oldestDueInMs >= dueAtMs - afterMs, `${oldestDueInMs}`);
  },

  'does not take what is in delivery for due': async ({ store, sameTime }) => {
    await putClaimed(store, inLane('a'));
    deepEqual(await store.census(), { pending: 1, open: {} });
    await store.insert([inLane('a', { due: { inMs: 2 * HOUR_MS } })]);
    sameTime((await store.census()).oldestDueInMs, 2 * HOUR_MS);
  },

  'takes one whose lease is over for due since then': async ({ store, pass, nowMs }) => {
    const { visibleAtMs } = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await pass(3 * SHORT_MS);
    const beforeMs = await nowMs();
    const { oldestDueInMs } = await store.census();
    const afterMs = await nowMs();
    ok(oldestDueInMs !== undefined && oldestDueInMs <= visibleAtMs - beforeMs, `${oldestDueInMs}`);
    ok(oldestDueInMs >= visibleAtMs - afterMs, `${oldestDueInMs}`);
  },

  'knows one that waits again, though it was claimed before': async ({ store, pass, sameTime }) => {
    await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    const [task] = (await claimLost(store, ['a'])).tasks;
    const { claims } = task!;
    await store.settle([
      { ...settlements.released(task!), delayMs: HOUR_MS, reschedule: true, claims } as never,
    ]);
    equal((await store.get(at(task!)))?.claims, 2);
    sameTime((await store.census()).oldestDueInMs, HOUR_MS);
  },

  'does not take what is blocked for due': async ({ store, sameTime }) => {
    await store.insert([
      inLine('k', { due: { inMs: 2 * HOUR_MS } }),
      inLine('k'),
      inLine('k', { due: { inMs: HOUR_MS } }),
    ]);
    sameTime((await store.census()).oldestDueInMs, 2 * HOUR_MS);
  },

  'counts open items by their reason': async ({ store }) => {
    const reasons: Reason[] = ['EXHAUSTED', 'PERMANENT', 'EXHAUSTED', 'EXPIRED', 'EXHAUSTED'];
    for (const reason of reasons) await dead(store, inLane('a'), { reason });
    await store.append([rawItem('what'), rawItem('and what')]);
    deepEqual((await store.census()).open, {
      EXHAUSTED: 3,
      PERMANENT: 1,
      EXPIRED: 1,
      UNREADABLE: 2,
    });
  },

  'counts an item while it is open': async ({ store }) => {
    const items = [];
    for (let i = 0; i < 4; i++) items.push((await dead(store)).item);
    const raw = await deadRaw(store);
    await store.append([rawItem('what', { messageId: raw.messageId })]);
    await actOne(store, items[0]!, { type: 'resolve' });
    await actOne(store, items[1]!, { type: 'discard' });
    await actOne(store, items[2]!, { type: 'replay' });
    deepEqual(await openIn(store), { EXHAUSTED: 1, UNREADABLE: 1 });
    await actOne(store, items[1]!, { type: 'restore' });
    deepEqual(await openIn(store), { EXHAUSTED: 2, UNREADABLE: 1 });
    equal((await store.census()).pending, 1);
  },
};

async function openIn(store: Store): Promise<Census['open']> {
  return (await store.census()).open;
}
