import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import type { PruneRequest } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  claimDue,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxMessage,
  outboxTexts,
  plain,
  put,
  putClaimed,
  rawItem,
  settlements,
  SHORT_MS,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

const finished = ['done', 'retried', 'cancelled'] as const;

export const pruneCases: StoreCases = {
  ...each(
    finished,
    (status) => `deletes what is ${status} and old, and nothing else`,
    async (status, { store, pass }: Stage) => {
      const tasks = await finishAll(store);
      await pass(5);
      equal(await store.prune(older({ [status]: 0 })), 1);
      deepEqual(
        (await left(store, tasks)).map((task) => task.status),
        finished.filter((kind) => kind !== status),
      );
    },
  ),

  'leaves what is not old enough': async ({ store, pass }) => {
    const tasks = await finishAll(store);
    await pass(5);
    equal(await store.prune(older({})), 0);
    equal((await left(store, tasks)).length, 3);
  },

  'looks at the end of a task, whenever it began': async ({ store }) => {
    const tasks = [await put(store), await put(store)];
    await store.change(tasks, (task, nowMs, index) => ({
      result: 1,
      task: { ...task!, status: 'done', finishedAtMs: Math.floor(nowMs) - (index + 0.5) * HOUR_MS },
    }));
    equal(await store.prune(older({})), 1);
    deepEqual(ids(await left(store, tasks)), [tasks[0]!.id]);
  },

  'leaves what waits and what is held, however old': async ({ store, pass }) => {
    const tasks = [
      await put(store, inLane('a', { due: { inMs: HOUR_MS } })),
      await putClaimed(store, inLane('b')),
    ];
    await pass(5);
    equal(await store.prune(older(now)), 0);
    equal((await left(store, tasks)).length, 2);
  },

  'leaves what failed while its item is open': async ({ store, pass }) => {
    const task = await finish(store, 'failed');
    await pass(5);
    equal(await store.prune(older(now)), 0);
    ok(await store.get(task));
    equal((await store.attempts(task.id)).length, 1);
  },

  'deletes no more than the limit at a time': async ({ store, pass }) => {
    await store.insert(Array.from({ length: 5 }, () => inLane('a')));
    const { tasks } = await claimDue(store, 'a');
    await store.settle(tasks.map(settlements.done));
    await pass(5);
    const counts = [];
    for (let i = 0; i < 4; i++) counts.push(await store.prune({ ...older(now), limit: 2 }));
    deepEqual(counts, [2, 2, 1, 0]);
  },

  'keeps to the limit over all states together': async ({ store, pass }) => {
    const tasks = [...(await finishAll(store)), ...(await finishAll(store))];
    await pass(5);
    equal(await store.prune({ ...older(now), limit: 4 }), 4);
    equal((await left(store, tasks)).length, 2);
  },

  'deletes the executions with the task': async ({ store, pass }) => {
    const task = await putClaimed(store, inLane('a'));
    await store.settle([{ ...settlements.pending(task), delayMs: 0 } as never]);
    const [again] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.done(again!)]);
    equal((await store.attempts(task.id)).length, 1);
    await pass(5);
    equal(await store.prune(older(now)), 1);
    deepEqual(await store.attempts(task.id), []);
  },

  'makes room for the same message as a new task': async ({ store, pass }) => {
    const task = newTask();
    const { id, lane } = await put(store, task);
    await store.settle((await claimDue(store, lane)).tasks.map(settlements.done));
    await pass(5);
    await store.prune(older(now));
    equal(await store.get(task), undefined);
    const [again] = await store.insert([task]);
    ok(again !== undefined);
    notEqual(again, id);
    deepEqual(await store.attempts(again), []);
  },

  'has nothing to do in an empty store': async ({ store }) => {
    equal(await store.prune(older(now)), 0);
  },
};

export const outboxCases: StoreCases = {
  'gives messages as they were written': async ({ store }) => {
    const message = {
      destination: { kind: 'queue', address: 'manual-review.pending' },
      payload: Uint8Array.from({ length: 256 }, (_, i) => i),
      headers: { 'x-reason': `ünï 🚀 "'`, 'x-empty': '' },
    };
    await store.change([newTask()], () => ({ result: 1, outbox: message }));
    const [taken, ...more] = await store.takeOutbox(10, HOUR_MS);
    equal(more.length, 0);
    const { id, ...rest } = taken!;
    ok(Number.isSafeInteger(id));
    deepEqual(plain(rest), message);
  },

  'gives the oldest first, wherever they come from': async ({ store }) => {
    await store.change([newTask()], () => ({ result: 1, outbox: outboxMessage('1') }));
    const task = await putClaimed(store, inLane('a'));
    await store.settle([{ ...settlements.failed(task), outbox: outboxMessage('2') } as never]);
    await store.append([{ ...rawItem('3'), outbox: outboxMessage('3') }]);
    await store.change([newTask()], () => ({ result: 1, outbox: outboxMessage('4') }));
    deepEqual(await outboxTexts(store), ['1', '2', '3', '4']);
  },

  'keeps to its limit': async ({ store }) => {
    await send(store, ['1', '2', '3']);
    equal((await store.takeOutbox(2, HOUR_MS)).length, 2);
    equal((await store.takeOutbox(2, HOUR_MS)).length, 1);
    equal((await store.takeOutbox(2, HOUR_MS)).length, 0);
  },

  'leaves what goes elsewhere than asked for': async ({ store }) => {
    const elsewhere = { ...outboxMessage('2'), destination: { kind: 'topic', address: 'b' } };
    await send(store, ['1']);
    await store.change([newTask()], () => ({ result: 1, outbox: elsewhere }));
    await send(store, ['3']);
    deepEqual(await store.takeOutbox(10, HOUR_MS, { kinds: ['none'] }), []);
    deepEqual(await store.takeOutbox(10, HOUR_MS, { kinds: [] }), []);
    const [first, ...more] = await store.takeOutbox(10, HOUR_MS, { kinds: ['topic', 'other'] });
    deepEqual([plain(first!.destination), more], [elsewhere.destination, []]);
    equal((await store.takeOutbox(10, HOUR_MS)).length, 2);
  },

  'gives no more bytes than asked for, but always one': async ({ store }) => {
    await send(store, ['12345', '12345', '12345', '1', '12345678901']);
    const take = async () => (await store.takeOutbox(10, HOUR_MS, { maxBytes: 10 })).length;
    deepEqual([await take(), await take(), await take(), await take()], [2, 2, 1, 0]);
  },

  'gives a message again when its lease is over': async ({ store, pass }) => {
    await send(store, ['1', '2']);
    const first = await store.takeOutbox(10, SHORT_MS);
    await pass(SHORT_MS + 1);
    deepEqual(plain(await store.takeOutbox(10, HOUR_MS)), plain(first));
  },

  'forgets what is dropped, and only that': async ({ store, pass }) => {
    await send(store, ['1', '2', '3']);
    const taken = await store.takeOutbox(10, SHORT_MS);
    await store.dropOutbox([taken[2]!.id, taken[0]!.id]);
    await pass(SHORT_MS + 1);
    deepEqual(await outboxTexts(store), ['2']);
  },

  'drops what is gone already without a word': async ({ store }) => {
    await send(store, ['1']);
    const [{ id } = { id: 0 }] = await store.takeOutbox(10, HOUR_MS);
    await store.dropOutbox([id, id, id + 1000]);
    await store.dropOutbox([id]);
    await store.dropOutbox([]);
    deepEqual(await outboxTexts(store), []);
  },

  'is empty where nothing was sent': async ({ store }) => {
    deepEqual(await store.takeOutbox(10, HOUR_MS), []);
  },

  'never gives one message to two at once': async ({ store }) => {
    await send(
      store,
      Array.from({ length: 40 }, (_, i) => String(i)),
    );
    const taken = await Promise.all(Array.from({ length: 10 }, () => store.takeOutbox(5, HOUR_MS)));
    const rest = await store.takeOutbox(100, HOUR_MS);
    const found = [...taken.flat(), ...rest].map(({ id }) => id);
    deepEqual([found.length, new Set(found).size], [40, 40]);
  },

  'never gives one message to two instances at once': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const stores = [store, await second()];
      await send(
        store,
        Array.from({ length: 40 }, (_, i) => String(i)),
      );
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, i) => stores[i % 2]!.takeOutbox(5, HOUR_MS)),
      );
      const rest = await store.takeOutbox(100, HOUR_MS);
      const found = [...taken.flat(), ...rest].map(({ id }) => id);
      deepEqual([found.length, new Set(found).size], [40, 40]);
    },
  },
};

const now = { done: 0, retried: 0, cancelled: 0 };

/** An hour, but for those that are named. */
function older(olderThanMs: Partial<PruneRequest['olderThanMs']>): PruneRequest {
  const hour = { done: HOUR_MS, retried: HOUR_MS, cancelled: HOUR_MS, failed: HOUR_MS };
  return { olderThanMs: { ...hour, ...olderThanMs }, limit: 100 };
}

/** Stores a task and ends it so. */
async function finish(store: Store, kind: (typeof finished)[number] | 'failed'): Promise<Task> {
  const task = await putClaimed(store);
  await store.settle([settlements[kind](task)]);
  return task;
}

async function finishAll(store: Store): Promise<Task[]> {
  const tasks = [];
  for (const kind of finished) tasks.push(await finish(store, kind));
  return tasks;
}

/** Those that are still there. */
async function left(store: Store, tasks: readonly Task[]): Promise<Task[]> {
  const found = await Promise.all(tasks.map(({ id }) => store.get({ id })));
  return found.filter((task) => task !== undefined);
}

async function send(store: Store, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await store.change([newTask()], () => ({ result: 1, outbox: outboxMessage(text) }));
  }
}
