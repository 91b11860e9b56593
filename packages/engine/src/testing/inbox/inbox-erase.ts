import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Failure } from 'redrive';
import { itemOf } from '../../model/item.ts';
import type { Store } from '../../ports/store.ts';
import { laneOf, type NewTask, type Task } from '../../model/task.ts';
import {
  bytes,
  claimDue,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxMessage,
  put,
  putClaimed,
  rawItem,
  row,
  settlements,
  uuid,
} from '../fixtures.ts';
import {
  actOne,
  comeBack,
  dead,
  deadMany,
  deadRaw,
  failIn,
  itemBy,
  newJob,
  openItem,
} from './inbox-fixtures.ts';
import type { StoreCases } from '../stage.ts';

/** What must not be found anywhere afterwards. */
const MARK = 'Eva Muster 7731';
const elsewhere = { kind: 'queue', address: 'elsewhere' };

export const eraseCases: StoreCases = {
  'leaves no trace of what was in it': async ({ store }) => {
    const task = await personal(store);
    const before = await everything(store, task);
    for (const part of ['task', 'attempts', 'items', 'groups', 'outbox'] as const) {
      ok(before[part].includes(MARK), `the mark stands in ${part} before`);
    }
    equal(await store.erase(task.messageId, 'the officer'), 'erased');
    const after = await everything(store, task);
    for (const [part, text] of Object.entries(after)) ok(!text.includes(MARK), `not in ${part}`);
    equal(await store.count({ text: 'Muster' }), 0);
    equal(await store.count({ orderingKey: MARK }), 0);
  },

  'closes the item and cancels the task, which goes on knowing its message': async (stage) => {
    const { store, pass, sameTime, nowMs } = stage;
    const { task, item: before } = await dead(store);
    await pass(5);
    equal(await store.erase(task.messageId, 'eva'), 'erased');
    const after = await itemBy(store, before.id);
    deepEqual([after.state, after.closedBy, after.payload.length], ['erased', 'eva', 0]);
    sameTime(after.closedAtMs, await nowMs());
    deepEqual(after.failure, { class: 'technical', code: 'ERASED' });
    deepEqual([after.reason, after.fingerprint], [before.reason, before.fingerprint]);
    const erased = await row(store, task.id);
    deepEqual([erased.status, erased.payload.length], ['cancelled', 0]);
    deepEqual(erased.failure, { class: 'technical', code: 'ERASED' });
    deepEqual(await store.attempts(task.id), []);
    const { messageId, destination } = task;
    deepEqual(await store.insert([newTask({ messageId, destination })]), [undefined]);
    equal(await comeBack(store, task), 'failed');
    equal((await openItem(store, task.id)).reason, 'CAME_BACK');
  },

  'erases what is over, and closed items': async ({ store }) => {
    const { task, item: before } = await dead(store, inLane('a', { payload: bytes(MARK) }));
    await actOne(store, before, { type: 'replay', by: 'tom' });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    const closed = await itemBy(store, before.id);
    equal(await store.erase(task.messageId), 'erased');
    const after = await itemBy(store, before.id);
    deepEqual(
      [after.state, after.closedAtMs, after.closedBy, after.payload.length],
      ['erased', closed.closedAtMs, undefined, 0],
    );
    const { status, payload } = await row(store, task.id);
    deepEqual([status, payload.length], ['done', 0]);
  },

  'erases a task that was never in the inbox': async ({ store }) => {
    const task = await putClaimed(store, inLane('a', { payload: bytes(MARK) }));
    await store.settle([settlements.done(task)]);
    equal(await store.erase(task.messageId), 'erased');
    equal((await row(store, task.id)).payload.length, 0);
    deepEqual((await store.items({ limit: 10 })).items, []);
  },

  'erases a message without a task': async ({ store }) => {
    const failure: Failure = { class: 'technical', message: `What is ${MARK}?` };
    const raw = rawItem(MARK, { failure, context: { headers: { 'x-name': MARK } } });
    await store.append([{ ...raw, outbox: outboxMessage(MARK) }]);
    equal(await store.erase(raw.messageId), 'erased');
    deepEqual(await store.takeOutbox(10, 0), []);
    const { items } = await store.items({ limit: 10 });
    deepEqual(
      items.map(({ state, payload, context }) => [state, payload.length, context]),
      [['erased', 0, undefined]],
    );
    ok(!textOf([items, await store.groups({ all: true, limit: 10 })]).includes(MARK));
    await store.append([raw]);
    equal(await store.count({ messageId: raw.messageId, state: 'open' }), 1);
  },

  'erases it at every destination': async ({ store }) => {
    const { task, item: before } = await dead(store, inLane('a', { payload: bytes(MARK) }));
    await actOne(store, before, { type: 'replay', edit: { destination: elsewhere } });
    await failIn(store, laneOf(elsewhere));
    equal(await store.erase(task.messageId), 'erased');
    const moved = await store.get({ messageId: task.messageId, destination: elsewhere });
    deepEqual([moved?.status, moved?.payload.length], ['cancelled', 0]);
    equal((await row(store, task.id)).payload.length, 0);
    equal(await store.count({ state: 'erased' }), 2);
  },

  'takes the query string out of a URL, and then knows that task by its id only': async (stage) => {
    const { store } = stage;
    const to = (query: string) => ({ kind: 'http', address: `https://a.example/hook?${query}` });
    const lane = 'https://a.example';
    const destinations = [to(`name=${MARK}`), to(`mail=${MARK.repeat(30)}#${MARK}`)];
    const messageId = uuid();
    for (const destination of destinations) {
      await dead(store, newTask({ messageId, destination, lane }));
    }
    const tasks = await store.list({ messageId, limit: 10 });
    equal(await store.erase(messageId), 'erased');
    const { items } = await store.items({ limit: 10 });
    ok(!textOf([await store.list({ limit: 10 }), items]).includes(MARK), 'no query is left');
    for (const { destination } of [...(await store.list({ limit: 10 })), ...items]) {
      deepEqual(destination, { kind: 'http', address: 'https://a.example/hook' });
    }
    for (const { id } of tasks) equal((await store.get({ id }))?.lane, lane);
    // To find it again by its URL, the URL would have to be kept.
    const destination = destinations[0]!;
    deepEqual(await store.get({ messageId, destination }), undefined);
    const again = await put(store, newTask({ messageId, destination, lane }));
    equal((await store.get({ messageId, destination }))?.id, again.id);
    equal((await store.list({ messageId, limit: 10 })).length, 3);
    // Nor is it taken for a task to the URL that is left, also when it is deleted.
    const bare = { kind: 'http', address: 'https://a.example/hook' };
    const other = await put(store, newTask({ messageId, destination: bare, lane }));
    await stage.pass(5);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    equal(await store.prune({ olderThanMs, limit: 10 }), 2);
    equal((await store.get({ messageId, destination: bare }))?.id, other.id);
    deepEqual(await store.insert([newTask({ messageId, destination: bare, lane })]), [undefined]);
  },

  'does nothing while one of its tasks is pending': async ({ store }) => {
    const { task, item: before } = await dead(store, inLane('a', { payload: bytes(MARK) }));
    const { messageId } = task;
    const waiting = await put(store, newTask({ messageId, destination: elsewhere }));
    equal(await store.erase(messageId), 'busy');
    await expectRow(store, task);
    await expectRow(store, waiting);
    equal((await itemBy(store, before.id)).state, 'open');
    equal((await store.attempts(task.id)).length, 1);
  },

  'does nothing while it is in delivery': async ({ store }) => {
    const task = await putClaimed(store);
    equal(await store.erase(task.messageId), 'busy');
    await expectRow(store, task);
  },

  'says so of a message that nobody knows, and erases twice without harm': async ({ store }) => {
    equal(await store.erase(uuid()), 'unknown');
    const { task, item: before } = await dead(store);
    equal(await store.erase(task.messageId), 'erased');
    const after = await itemBy(store, before.id);
    equal(await store.erase(task.messageId), 'erased');
    deepEqual((await itemBy(store, before.id)).closedAtMs, after.closedAtMs);
  },

  'leaves every other message alone': async ({ store }) => {
    const [one, two] = await deadMany(store, 2);
    const other = await row(store, two!.taskId!);
    await store.erase(one!.messageId);
    await expectRow(store, other);
    equal((await itemBy(store, two!.id)).state, 'open');
    equal((await store.attempts(other.id)).length, 1);
    equal((await store.takeOutbox(10, HOUR_MS)).length, 1);
    const [group] = await store.groups({ limit: 10 });
    deepEqual([group?.open, group?.failure.message], [1, undefined]);
  },

  'can be undone by nothing': async ({ store }) => {
    const { item: before } = await dead(store);
    await store.erase(before.messageId);
    for (const type of ['replay', 'restore', 'resolve', 'discard'] as const) {
      equal(await actOne(store, before, { type }), 'closed');
    }
    equal(await actOne(store, before, { type: 'edit', edit: { payload: bytes('x') } }), 'closed');
  },

  'is left out by a job that froze it': async ({ store }) => {
    const { item: before } = await dead(store);
    await newJob(store, 1);
    const under = { job: 1, version: 1, next: () => ({}) };
    await store.freeze({}, { before: Number.MAX_SAFE_INTEGER, limit: 10 }, under);
    await store.erase(before.messageId);
    const answer = await store.act(
      [before.id],
      { type: 'replay', job: 1 },
      { job: 1, version: 2, next: () => ({}) },
    );
    deepEqual(answer, ['closed']);
  },
};

export const pruneItemsCases: StoreCases = {
  'deletes what was closed so long ago, and nothing open': async ({ store, pass }) => {
    const [replayed, resolved, discarded, erased, open] = await deadMany(store, 5);
    await actOne(store, replayed!, { type: 'replay' });
    await actOne(store, resolved!, { type: 'resolve' });
    await actOne(store, discarded!, { type: 'discard' });
    await store.erase(erased!.messageId);
    await pass(5);
    equal(await store.pruneItems({ closedForMs: HOUR_MS, limit: 100 }), 0);
    equal(await store.pruneItems({ closedForMs: 0, limit: 100 }), 4);
    deepEqual(ids((await store.items({ limit: 10 })).items), [open!.id]);
    deepEqual(await store.item(resolved!.id), undefined);
  },

  'leaves the tasks and their executions': async ({ store, pass }) => {
    const { task, item: before } = await dead(store);
    await actOne(store, before, { type: 'replay' });
    await pass(5);
    const waiting = await row(store, task.id);
    equal(await store.pruneItems({ closedForMs: 0, limit: 100 }), 1);
    await expectRow(store, waiting);
    equal((await store.attempts(task.id)).length, 1);
  },

  'deletes no more than the limit at a time, the oldest first': async ({ store, pass }) => {
    const all = ids(await deadMany(store, 5));
    for (const id of all) {
      await store.act([id], { type: 'resolve' });
      await pass(2);
    }
    equal(await store.pruneItems({ closedForMs: 0, limit: 2 }), 2);
    deepEqual(ids((await store.items({ limit: 10 })).items).toReversed(), all.slice(2));
    equal(await store.pruneItems({ closedForMs: 0, limit: 2 }), 2);
    equal(await store.pruneItems({ closedForMs: 0, limit: 2 }), 1);
    equal(await store.pruneItems({ closedForMs: 0, limit: 2 }), 0);
  },

  'forgets groups without items, unless somebody has written on them': async ({ store, pass }) => {
    const items = [];
    for (const lane of ['a', 'b', 'c', 'd']) items.push((await dead(store, inLane(lane))).item);
    const [, noted, owned, open] = items;
    await store.annotate(noted!.fingerprint, { note: 'a' });
    await store.annotate(owned!.fingerprint, { owner: 'b' });
    await store.act(ids(items.slice(0, 3)), { type: 'resolve' });
    await pass(5);
    equal(await store.pruneItems({ closedForMs: 0, limit: 100 }), 3);
    const groups = await store.groups({ all: true, limit: 10 });
    deepEqual(groups.map(({ lane, open: count }) => `${lane} ${count}`).toSorted(), [
      'b 0',
      'c 0',
      'd 1',
    ]);
    equal(open?.lane, 'd');
  },

  'keeps a group while a closed item of it is there': async ({ store }) => {
    const { item: before } = await dead(store);
    await actOne(store, before, { type: 'resolve' });
    equal(await store.pruneItems({ closedForMs: HOUR_MS, limit: 100 }), 0);
    equal((await store.groups({ all: true, limit: 10 })).length, 1);
  },

  'comes after the task is deleted: until then the item is whole': async ({ store, pass }) => {
    const context = { headers: { 'x-a': '1' } };
    const { task, item: before } = await dead(
      store,
      inLane('a', { payload: bytes('kept'), context }),
    );
    await actOne(store, before, { type: 'replay' });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    const closed = await itemBy(store, before.id);
    const attempts = await store.attempts(task.id);
    await pass(5);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    equal(await store.prune({ olderThanMs, limit: 10 }), 1);
    equal(await store.get({ id: task.id }), undefined);
    const after = await itemBy(store, before.id);
    deepEqual({ ...after, payload: 0 }, { ...closed, payload: 0 });
    deepEqual([Uint8Array.from(after.payload), after.context], [bytes('kept'), context]);
    deepEqual(await store.attempts(task.id), attempts);
    equal(await store.pruneItems({ closedForMs: 0, limit: 10 }), 1);
    equal(await store.item(before.id), undefined);
    deepEqual(await store.attempts(task.id), []);
  },

  'leaves the executions of a deleted task until its last item goes': async ({ store, pass }) => {
    const { task, item: first } = await dead(store);
    await actOne(store, first, { type: 'replay' });
    await pass(5);
    await failIn(store, 'a');
    const last = await openItem(store, task.id);
    await actOne(store, last, { type: 'resolve' });
    const attempts = await store.attempts(task.id);
    equal(attempts.length, 2);
    await pass(5);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    equal(await store.prune({ olderThanMs, limit: 10 }), 1);
    equal(await store.pruneItems({ closedForMs: 0, limit: 1 }), 1);
    deepEqual(ids((await store.items({ limit: 10 })).items), [last.id]);
    deepEqual(await store.attempts(task.id), attempts);
    equal(await store.pruneItems({ closedForMs: 0, limit: 1 }), 1);
    deepEqual(await store.attempts(task.id), []);
  },

  'keeps the original of one that was changed, when its task is deleted': async ({
    store,
    pass,
  }) => {
    const { item: before } = await dead(store, inLane('a', { payload: bytes('old') }));
    await actOne(store, before, { type: 'replay', edit: { payload: bytes('new') } });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    await pass(5);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    await store.prune({ olderThanMs, limit: 10 });
    const { payload, context } = await itemBy(store, before.id);
    deepEqual([Uint8Array.from(payload), context], [bytes('old'), undefined]);
  },

  'has nothing to do in an empty inbox': async ({ store }) => {
    equal(await store.pruneItems({ closedForMs: 0, limit: 10 }), 0);
    await deadRaw(store);
    equal(await store.pruneItems({ closedForMs: 0, limit: 10 }), 0);
  },
};

/** A task that has the mark wherever there can be one: it failed, was changed, replayed, and failed again. */
async function personal(store: Store) {
  const failure: Failure = { class: 'business', code: 'E_NAME', message: `No ${MARK} here` };
  const draft: NewTask = inLane('a', {
    payload: bytes(MARK),
    context: { headers: { 'x-name': MARK }, extra: { name: MARK } },
    ...(store.capabilities.ordering ? { orderingKey: MARK, blocked: true } : {}),
  });
  const { id } = await put(store, draft);
  const fail = async () => {
    const [task] = (await claimDue(store, 'a')).tasks;
    const record = { attempt: 1, failure, durationMs: 1, answer: `I do not know ${MARK}.` };
    const end = { ...settlements.failed(task!), item: itemOf('EXHAUSTED', failure, 'a'), record };
    await store.settle([{ ...end, outbox: outboxMessage(MARK) } as never]);
  };
  await fail();
  const edit = { payload: bytes(`${MARK}!`), headers: { 'x-name': `${MARK}!` } };
  await actOne(store, await openItem(store, id), { type: 'replay', edit });
  await fail();
  await actOne(store, await openItem(store, id), { type: 'edit', edit });
  return row(store, id);
}

/** All that can be read of a store, as texts. The outbox messages are given back at once. */
async function everything(store: Store, { id, messageId, destination }: Task) {
  const { items } = await store.items({ limit: 100 });
  const tasks = [await store.get({ id }), await store.get({ messageId, destination })];
  return {
    task: textOf([tasks, await store.list({ limit: 100 })]),
    attempts: textOf(await store.attempts(id)),
    items: textOf([items, await Promise.all(items.map((one) => store.item(one.id)))]),
    groups: textOf(await store.groups({ all: true, limit: 100 })),
    outbox: textOf(await store.takeOutbox(100, 0)),
    state: textOf(await store.readState('')),
    lanes: textOf(await store.lanes({ limit: 100 })),
  };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof Uint8Array) return new TextDecoder().decode(part);
    return isBufferJson(part) ? new TextDecoder().decode(Uint8Array.from(part.data)) : part;
  });
}

/** A Buffer has turned itself into this before anybody is asked. */
function isBufferJson(part: unknown): part is { data: number[] } {
  return typeof part === 'object' && part !== null && 'type' in part && part.type === 'Buffer';
}
