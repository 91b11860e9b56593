import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ItemAction } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { bytes, claimDue, expectRow, ids, inLane, newTask, put, row } from '../fixtures.ts';
import {
  actOne,
  comeBack,
  dead,
  deadMany,
  deadRaw,
  failIn,
  itemBy,
  openItem,
  sameItem,
} from './inbox-fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

const elsewhere = { kind: 'queue', address: 'elsewhere' };

/** Each action on an open item. */
const actions: Readonly<Record<'replay' | 'edit' | 'resolve' | 'discard', ItemAction>> = {
  replay: { type: 'replay' },
  edit: { type: 'edit', edit: { headers: { 'x-a': '1' } } },
  resolve: { type: 'resolve' },
  discard: { type: 'discard' },
};
const names = ['replay', 'edit', 'resolve', 'discard'] as const;

/** What operators do to items, one or many at a time. */
export const actCases: StoreCases = {
  ...each(
    names,
    (name) => `${name}: says of each item what became of it, and spoils no other`,
    async (name, { store }: Stage) => {
      const [closed, one, two] = await deadMany(store, 3);
      await actOne(store, closed!, { type: 'resolve' });
      const before = await itemBy(store, closed!.id);
      const unknown = two!.id + 1000;
      const asked = [one!.id, unknown, closed!.id, two!.id];
      deepEqual(await store.act(asked, actions[name]), ['done', 'unknown', 'closed', 'done']);
      sameItem(await itemBy(store, closed!.id), before);
    },
  ),

  ...each(
    ['replay', 'resolve', 'discard'] as const,
    (name) => `${name}: does it once, to one that stands twice in a call too`,
    async (name, { store }: Stage) => {
      const [one] = await deadMany(store, 1);
      deepEqual(await store.act([one!.id, one!.id], actions[name]), ['done', 'closed']);
      const after = await row(store, one!.taskId!);
      deepEqual(await store.act([one!.id], actions[name]), ['closed']);
      await expectRow(store, after);
    },
  ),

  ...each(
    ['replay', 'resolve', 'discard'] as const,
    (name) => `${name}: does it once where several do it at once`,
    async (name, { store }: Stage) => {
      const all = ids(await deadMany(store, 40));
      const calls = [all.slice(0, 30), all.slice(10), all.toReversed(), all.slice(20, 25)];
      const results = await Promise.all(calls.map((some) => store.act(some, actions[name])));
      const done = calls.flatMap((some, i) => some.filter((_, j) => results[i]![j] === 'done'));
      deepEqual(
        done.toSorted((a, b) => a - b),
        all,
      );
      const others = results.flat().filter((result) => result !== 'done');
      ok(others.every((result) => result === 'closed'));
    },
  ),

  'does it to a few hundred at once': async ({ store }) => {
    const all = ids(await deadMany(store, 300));
    deepEqual(
      await store.act(all, { type: 'replay' }),
      all.map(() => 'done'),
    );
    equal(await store.count({ state: 'replayed' }), 300);
    const { tasks } = await claimDue(store, [{ lane: 'a', limit: 1000 }]);
    equal(tasks.length, 300);
    ok(tasks.every(({ generation, attempt }) => generation === 1 && attempt === 0));
  },

  'answers nothing where it is asked for nothing': async ({ store }) => {
    await dead(store);
    deepEqual(await store.act([], { type: 'replay' }), []);
    equal(await store.count({ state: 'open' }), 1);
  },

  ...each(
    ['resolve', 'discard'] as const,
    (type) => `${type}: closes the item and cancels its task, with who did it and when`,
    async (type, { store, pass, sameTime, nowMs }: Stage) => {
      const { task, item: before } = await dead(store);
      await pass(5);
      deepEqual(await store.act([before.id], { type, by: 'eva' }), ['done']);
      const after = await itemBy(store, before.id);
      const state = type === 'resolve' ? 'resolved' : 'discarded';
      sameItem(after, { ...before, state, closedBy: 'eva', closedAtMs: after.closedAtMs! });
      sameTime(after.closedAtMs, await nowMs());
      const { finishedAtMs } = await row(store, task.id);
      await expectRow(store, { ...task, status: 'cancelled', finishedAtMs: finishedAtMs! });
      equal(finishedAtMs, after.closedAtMs);
      ok(finishedAtMs! > task.finishedAtMs!);
      deepEqual((await claimDue(store, 'a')).tasks, []);
    },
  ),

  ...each(
    ['resolve', 'discard'] as const,
    (type) => `${type}: closes one without a task`,
    async (type, { store }: Stage) => {
      const raw = await deadRaw(store);
      equal(await actOne(store, raw, { type }), 'done');
      const after = await itemBy(store, raw.id);
      const state = type === 'resolve' ? 'resolved' : 'discarded';
      sameItem(after, { ...raw, state, closedAtMs: after.closedAtMs! });
    },
  ),

  'edit: keeps what is there and writes the change beside it': async ({ store }) => {
    const { task, item: before } = await dead(
      store,
      inLane('a', { payload: bytes('old'), context: { headers: { 'x-a': '1' }, method: 'PUT' } }),
    );
    const edit = {
      payload: Uint8Array.from({ length: 256 }, (_, i) => i),
      headers: { 'x-b': 'ünï 🚀' },
      destination: elsewhere,
      by: 'eva',
    };
    equal(await actOne(store, before, { type: 'edit', edit }), 'done');
    sameItem(await itemBy(store, before.id), { ...before, edit });
    await expectRow(store, task);
  },

  'edit: writes each part alone, and an empty payload': async ({ store }) => {
    const { item: before } = await dead(store);
    for (const edit of [
      { payload: new Uint8Array() },
      { headers: {} },
      { destination: elsewhere },
      { payload: bytes('new'), by: 'tom' },
    ]) {
      equal(await actOne(store, before, { type: 'edit', edit }), 'done');
      sameItem(await itemBy(store, before.id), { ...before, edit });
    }
  },

  'edit: can be taken back': async ({ store }) => {
    const { item: before } = await dead(store);
    await actOne(store, before, { type: 'edit', edit: { payload: bytes('new') } });
    equal(await actOne(store, before, { type: 'edit', edit: undefined }), 'done');
    sameItem(await itemBy(store, before.id), before);
    equal(await actOne(store, before, { type: 'replay' }), 'done');
    const { payload, edited } = await row(store, before.taskId!);
    deepEqual([Uint8Array.from(payload), edited], [Uint8Array.from(before.payload), undefined]);
  },

  'edit: writes one of a message that could not be read': async ({ store }) => {
    const raw = await deadRaw(store);
    const edit = { payload: bytes('readable'), destination: elsewhere };
    equal(await actOne(store, raw, { type: 'edit', edit }), 'done');
    sameItem(await itemBy(store, raw.id), { ...raw, edit });
  },

  'pass: changes nothing and says fault': async ({ store }) => {
    const { task, item: before } = await dead(store);
    deepEqual(await store.act([before.id, before.id + 1000], { type: 'pass' }), ['fault', 'fault']);
    sameItem(await itemBy(store, before.id), before);
    await expectRow(store, task);
  },
};

export const restoreCases: StoreCases = {
  ...each(
    ['resolve', 'discard'] as const,
    (type) => `opens again what was closed by ${type}`,
    async (type, { store }: Stage) => {
      const { task, item: before } = await dead(store);
      await actOne(store, before, { type, by: 'eva' });
      const { finishedAtMs } = await row(store, task.id);
      equal(await actOne(store, before, { type: 'restore', by: 'tom' }), 'done');
      sameItem(await itemBy(store, before.id), before);
      await expectRow(store, { ...task, finishedAtMs: finishedAtMs! });
      equal(await actOne(store, before, { type: 'replay' }), 'done');
      deepEqual(ids((await claimDue(store, 'a')).tasks), [task.id]);
    },
  ),

  'keeps the change of an operator': async ({ store }) => {
    const { item: before } = await dead(store);
    const edit = { payload: bytes('new') };
    await actOne(store, before, { type: 'edit', edit });
    await actOne(store, before, { type: 'discard' });
    await actOne(store, before, { type: 'restore' });
    sameItem(await itemBy(store, before.id), { ...before, edit });
  },

  'opens again one without a task': async ({ store }) => {
    const raw = await deadRaw(store);
    await actOne(store, raw, { type: 'discard' });
    equal(await actOne(store, raw, { type: 'restore' }), 'done');
    sameItem(await itemBy(store, raw.id), raw);
  },

  'says open of what is open, and unknown of what nobody knows': async ({ store }) => {
    const { item: before } = await dead(store);
    const asked = [before.id, before.id + 1000];
    deepEqual(await store.act(asked, { type: 'restore' }), ['open', 'unknown']);
    sameItem(await itemBy(store, before.id), before);
  },

  'leaves closed what was replayed, and what was erased': async ({ store }) => {
    const [replayed, erased] = await deadMany(store, 2);
    await actOne(store, replayed!, { type: 'replay' });
    await store.erase(erased!.messageId);
    const asked = [replayed!.id, erased!.id];
    deepEqual(await store.act(asked, { type: 'restore' }), ['closed', 'closed']);
    equal((await row(store, replayed!.taskId!)).status, 'pending');
  },

  'leaves closed what came back meanwhile and has another item': async ({ store }) => {
    const { task, item: before } = await dead(store);
    await actOne(store, before, { type: 'discard' });
    equal(await comeBack(store, task), 'failed');
    const closed = await itemBy(store, before.id);
    equal(await actOne(store, before, { type: 'restore' }), 'gone');
    sameItem(await itemBy(store, before.id), closed);
    equal(await store.count({ state: 'open', messageId: task.messageId }), 1);
  },

  'leaves closed one without a task that came again meanwhile': async ({ store }) => {
    const raw = await deadRaw(store, 'twice');
    await actOne(store, raw, { type: 'discard' });
    const { payload, reason, failure, fingerprint, messageId } = raw;
    const again = { payload, reason, failure, fingerprint, messageId, source: 'retry.scheduled' };
    await store.append([again]);
    equal(await store.count({ messageId }), 2);
    equal(await actOne(store, raw, { type: 'restore' }), 'gone');
    equal((await itemBy(store, raw.id)).state, 'discarded');
  },

  'makes the task anew where it was deleted': async ({ store, pass }) => {
    const { task, item: before } = await pruned(store, pass);
    const attempts = await store.attempts(task.id);
    equal(await actOne(store, before, { type: 'restore' }), 'done');
    const after = await itemBy(store, before.id);
    deepEqual(await store.attempts(after.taskId!), attempts);
    deepEqual(await store.attempts(task.id), []);
    ok(after.taskId !== undefined && after.taskId !== task.id);
    sameItem(after, { ...before, taskId: after.taskId });
    const anew = await row(store, after.taskId);
    deepEqual([anew.status, anew.messageId, anew.lane], ['failed', task.messageId, 'a']);
    deepEqual([Uint8Array.from(anew.payload), anew.context], [bytes('kept'), task.context]);
    deepEqual([anew.attempt, anew.generation, anew.maxAttempts], [1, 2, 4]);
    equal(await actOne(store, before, { type: 'replay' }), 'done');
    const [again] = (await claimDue(store, 'a')).tasks;
    deepEqual([again?.id, again?.generation, again?.attempt], [after.taskId, 3, 0]);
  },

  'makes it anew with what it was to whoever gets it, and to its line': async ({ store, pass }) => {
    for (const edits of [[], [{ headers: { 'x-b': '2' } }]]) {
      const { task, item: first } = await dead(store, inLane('a', { onDead: 'release' }));
      await actOne(store, first, { type: 'replay', edit: { payload: bytes('new') } });
      await failIn(store, 'a');
      const second = await openItem(store, task.id);
      for (const edit of edits) await actOne(store, second, { type: 'edit', edit });
      await actOne(store, second, { type: 'discard' });
      await pass(5);
      await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 10 });
      equal(await store.get({ id: task.id }), undefined);
      equal(await actOne(store, second, { type: 'restore' }), 'done');
      const { taskId } = await itemBy(store, second.id);
      const anew = await row(store, taskId!);
      deepEqual([anew.edited, anew.onDead], [1, 'release']);
      deepEqual(Uint8Array.from(anew.payload), bytes('new'));
      await actOne(store, second, { type: 'discard' });
    }
  },

  'is erased with its executions where its task was deleted': async ({ store, pass }) => {
    const { task } = await pruned(store, pass);
    equal((await store.attempts(task.id)).length, 1);
    equal(await store.erase(task.messageId), 'erased');
    deepEqual(await store.attempts(task.id), []);
  },

  'leaves closed one whose message is there anew': async ({ store, pass }) => {
    const { task, item: before } = await pruned(store, pass);
    const { messageId, destination } = task;
    const fresh = await put(store, newTask({ messageId, destination }));
    equal(await actOne(store, before, { type: 'restore' }), 'conflict');
    equal((await itemBy(store, before.id)).state, 'resolved');
    await expectRow(store, fresh);
  },
};

/** A resolved item whose task was deleted, and that item as it was when it was open. */
async function pruned(store: Store, pass: Stage['pass']) {
  const context = { headers: { 'x-a': '1' } };
  const found = await dead(store, inLane('a', { payload: bytes('kept'), context, generation: 2 }));
  await actOne(store, found.item, { type: 'resolve' });
  await pass(5);
  const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
  equal(await store.prune({ olderThanMs, limit: 10 }), 1);
  return found;
}
