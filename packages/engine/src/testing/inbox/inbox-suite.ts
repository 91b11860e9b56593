import { deepEqual, equal, ok } from 'node:assert/strict';
import { itemOf } from '../../model/item.ts';
import type { InboxItem, ItemQuery } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  broken,
  bytes,
  claimDue,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxMessage,
  outboxTexts,
  plain,
  putClaimed,
  rawItem,
  settlements,
  unreachable,
  uuid,
} from '../fixtures.ts';
import { actCases, restoreCases } from './inbox-act.ts';
import { eraseCases, pruneItemsCases } from './inbox-erase.ts';
import { annotateCases, groupsCases } from './inbox-groups.ts';
import { filterCases } from './inbox-items.ts';
import { freezeCases, jobActCases } from './inbox-jobs.ts';
import { replayCases } from './inbox-replay.ts';
import { forgetJobCases, membersCases, tallyCases } from './inbox-tally.ts';
import { onStage, type StoreCases, type StoreSetup } from '../stage.ts';
import { censusCases } from '../store-census.ts';
import { casesOf, type ConformanceCase } from '../suite.ts';

/** Every promise of the port `Inbox`, and of the census that a store takes of it and of its schedule, one by one. */
export function inboxSuite(setup: StoreSetup): ConformanceCase[] {
  return casesOf(tables(), setup.capabilities, (body) => onStage(setup, body));
}

function tables(): Readonly<Record<string, StoreCases>> {
  return {
    append: appendCases,
    items: itemsCases,
    filter: filterCases,
    attempts: attemptsCases,
    groups: groupsCases,
    annotate: annotateCases,
    act: actCases,
    replay: replayCases,
    restore: restoreCases,
    'act under a job': jobActCases,
    freeze: freezeCases,
    members: membersCases,
    tally: tallyCases,
    'forget a job': forgetJobCases,
    erase: eraseCases,
    'prune items': pruneItemsCases,
    census: censusCases,
  };
}

const appendCases: StoreCases = {
  'keeps a message without a task, byte for byte': async ({ store, sameTime, nowMs }) => {
    const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
    const context = { contentType: 'application/x-protobuf', headers: { 'x-a': 'ü' } };
    const raw = rawItem('what', { payload, context });
    await store.append([raw]);
    const [found, ...more] = (await store.items({ limit: 10 })).items;
    equal(more.length, 0);
    const { id, firstSeenMs, lastSeenMs, ...rest } = found!;
    const { source, ...given } = raw;
    ok(Number.isSafeInteger(id));
    deepEqual(plain(rest), {
      ...given,
      destination: { kind: 'source', address: source },
      lane: `source:${source}`,
      attempt: 0,
      maxAttempts: 0,
      generation: 0,
      state: 'open',
      occurrences: 1,
    });
    sameTime(firstSeenMs, await nowMs());
    equal(lastSeenMs, firstSeenMs);
  },

  'counts one more occurrence of one that is known': async ({ store, pass }) => {
    const raw = rawItem('what');
    await store.append([raw]);
    const [before] = (await store.items({ limit: 10 })).items;
    await pass(5);
    await store.append([{ ...raw, failure: broken }]);
    const [after, ...more] = (await store.items({ limit: 10 })).items;
    equal(more.length, 0);
    const { lastSeenMs, ...rest } = after!;
    const { lastSeenMs: _, ...wanted } = before!;
    deepEqual(plain(rest), plain({ ...wanted, occurrences: 2 }));
    ok(lastSeenMs > before!.lastSeenMs);
  },

  'counts those that stand twice in one batch': async ({ store }) => {
    const raw = rawItem('what');
    await store.append([raw, rawItem('other'), raw, raw]);
    const items = (await store.items({ limit: 10 })).items;
    deepEqual(
      items.map(({ occurrences }) => occurrences),
      [1, 3],
    );
  },

  'counts those that come at once': async ({ store }) => {
    const raw = rawItem('what');
    await Promise.all(Array.from({ length: 10 }, () => store.append([raw])));
    deepEqual(
      (await store.items({ limit: 10 })).items.map(({ occurrences }) => occurrences),
      [10],
    );
  },

  'writes the outbox message with the item': async ({ store }) => {
    await store.append([{ ...rawItem('a'), outbox: outboxMessage('a') }, rawItem('b')]);
    deepEqual(await outboxTexts(store), ['a']);
  },

  'takes nothing at all': async ({ store }) => {
    await store.append([]);
    deepEqual((await store.items({ limit: 10 })).items, []);
  },

  'takes a message of 2 MiB, an empty one, and a hundred': async ({ store }) => {
    const large = Uint8Array.from({ length: 2 * 1024 * 1024 }, (_, i) => (i * 7) % 253);
    const many = Array.from({ length: 98 }, (_, i) => rawItem(String(i)));
    const empty = rawItem('', { payload: new Uint8Array() });
    await store.append([rawItem('large', { payload: large }), empty, ...many]);
    const items = (await store.items({ limit: 200 })).items;
    equal(items.length, 100);
    const largest = items.find(({ payload }) => payload.length === large.length);
    ok(Buffer.from(largest!.payload).equals(large));
    ok(items.some(({ payload }) => payload.length === 0));
  },

  'makes no task of it': async ({ store }) => {
    const raw = rawItem('what');
    await store.append([raw]);
    const key = { messageId: raw.messageId, destination: { kind: 'source', address: raw.source } };
    equal(await store.get(key), undefined);
    deepEqual(await store.lanes({ limit: 10 }), []);
  },

  'takes a message whose id is that of a task': async ({ store }) => {
    const task = await failed(store);
    await store.append([rawItem('what', { messageId: task.messageId })]);
    const items = (await store.items({ messageId: task.messageId, limit: 10 })).items;
    deepEqual(
      items.map(({ taskId, occurrences }) => [taskId, occurrences]),
      [
        [undefined, 1],
        [task.id, 1],
      ],
    );
  },
};

const itemsCases: StoreCases = {
  'gives the newest first': async ({ store }) => {
    const tasks = [await failed(store), await failed(store), await failed(store)];
    const items = (await store.items({ limit: 10 })).items;
    deepEqual(
      items.map(({ taskId }) => taskId),
      ids(tasks).toReversed(),
    );
    deepEqual(
      ids(items),
      ids(items).toSorted((a, b) => b - a),
    );
  },

  'gives one by its id, as in the list': async ({ store }) => {
    await failed(store);
    await store.append([rawItem('what')]);
    for (const item of (await store.items({ limit: 10 })).items) {
      deepEqual(plain(await store.item(item.id)), plain(item));
    }
  },

  'answers undefined for an id that nobody knows': async ({ store }) => {
    await failed(store);
    const [item] = (await store.items({ limit: 1 })).items;
    equal(await store.item(item!.id + 1000), undefined);
  },

  'gives page after page, each item once': async ({ store }) => {
    await store.append(Array.from({ length: 25 }, (_, i) => rawItem(String(i))));
    const seen: number[] = [];
    for (let before: number | undefined; ; before = seen.at(-1)) {
      const page = (await store.items({ limit: 10, ...(before === undefined ? {} : { before }) }))
        .items;
      seen.push(...ids(page));
      if (page.length < 10) break;
    }
    equal(seen.length, 25);
    deepEqual(
      seen,
      [...new Set(seen)].toSorted((a, b) => b - a),
    );
  },

  'keeps to its limit': async ({ store }) => {
    await store.append([rawItem('a'), rawItem('b'), rawItem('c')]);
    equal((await store.items({ limit: 2 })).items.length, 2);
  },

  'looks at what it is asked for': async ({ store }) => {
    const one = await failed(store, 'a', 'EXHAUSTED');
    const two = await failed(store, 'b', 'EXHAUSTED');
    const three = await failed(store, 'b', 'PERMANENT');
    const { items } = await store.items({ limit: 1 });
    const fingerprint = items[0]?.fingerprint;
    const tasksBy = async (query: Partial<ItemQuery>) =>
      (await store.items({ limit: 10, ...query })).items.map(({ taskId }) => taskId);
    deepEqual(await tasksBy({ reason: 'EXHAUSTED' }), [two.id, one.id]);
    deepEqual(await tasksBy({ lane: 'a' }), [one.id]);
    deepEqual(await tasksBy({ fingerprint: fingerprint! }), [three.id, two.id]);
    deepEqual(await tasksBy({ messageId: two.messageId }), [two.id]);
    deepEqual(await tasksBy({ messageId: uuid() }), []);
    deepEqual(await tasksBy({ state: 'open' }), [three.id, two.id, one.id]);
    deepEqual(await tasksBy({ state: 'resolved' }), []);
    deepEqual(await tasksBy({ lane: 'b', reason: 'EXHAUSTED' }), [two.id]);
  },

  'shows the payload and the context of the task': async ({ store }) => {
    const context = { headers: { 'x-a': '1' }, extra: { deep: [1] } };
    const task = await putClaimed(store, newTask({ payload: bytes('the payload'), context }));
    await store.settle([settlements.failed(task)]);
    const [item] = (await store.items({ limit: 1 })).items;
    deepEqual([plain(item!.payload), item!.context], [bytes('the payload'), context]);
  },

  'has one item for all occurrences of a task': async ({ store }) => {
    const task = await failed(store);
    for (let i = 0; i < 3; i++) {
      const occurrence = { taskId: task.id };
      await store.change([task], () => ({ result: 1, occurrence }));
    }
    const items: InboxItem[] = (await store.items({ limit: 10 })).items;
    deepEqual(
      items.map(({ occurrences }) => occurrences),
      [4],
    );
  },

  'loses no occurrence that comes at once with others': async ({ store }) => {
    const task = await failed(store);
    const occurrence = { taskId: task.id };
    await Promise.all(
      Array.from({ length: 10 }, () => store.change([task], () => ({ result: 1, occurrence }))),
    );
    deepEqual(
      (await store.items({ limit: 10 })).items.map(({ occurrences }) => occurrences),
      [11],
    );
  },
};

const attemptsCases: StoreCases = {
  'gives every failed execution, the oldest first': async ({ store, sameTime, nowMs }) => {
    const record = { attempt: 1, failure: unreachable, durationMs: 1 };
    await store.insert([inLane('a', { attempt: 1, failure: unreachable, record })]);
    for (let attempt = 2; attempt <= 4; attempt++) {
      const [task] = (await claimDue(store, 'a')).tasks;
      await store.settle([{ ...settlements.pending(task!), delayMs: 0 } as never]);
    }
    const [task] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.failed(task!)]);
    const attempts = await store.attempts(task!.id);
    deepEqual(
      attempts.map(({ attempt }) => attempt),
      [1, 2, 3, 4, 5],
    );
    deepEqual(
      attempts.map(({ failure }) => failure),
      [unreachable, unreachable, unreachable, unreachable, broken],
    );
    for (const { atMs } of attempts) sameTime(atMs, await nowMs());
    const times = attempts.map(({ atMs }) => atMs);
    deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
  },

  'knows of which generation each is': async ({ store }) => {
    const task = await putClaimed(store, newTask({ generation: 2 }));
    await store.settle([settlements.pending(task)]);
    deepEqual(
      (await store.attempts(task.id)).map(({ generation }) => generation),
      [2],
    );
  },

  'leaves out an answer that there was not': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.pending(task)]);
    const [{ atMs: _, ...attempt } = { atMs: 0 }] = await store.attempts(task.id);
    deepEqual(attempt, { attempt: 1, failure: unreachable, durationMs: 40, generation: 0 });
  },

  'has none for a task that nobody knows': async ({ store }) => {
    const task = await putClaimed(store);
    deepEqual(await store.attempts(task.id + 1000), []);
  },

  'keeps those of one task from those of another': async ({ store }) => {
    const [one, two] = [await putClaimed(store, inLane('a')), await putClaimed(store, inLane('b'))];
    await store.settle([settlements.pending(one), settlements.failed(two)]);
    deepEqual(
      (await store.attempts(one.id)).map(({ failure }) => failure),
      [unreachable],
    );
    deepEqual(
      (await store.attempts(two.id)).map(({ failure }) => failure),
      [broken],
    );
  },
};

async function failed(
  store: Store,
  lane = 'a',
  reason: 'EXHAUSTED' | 'PERMANENT' = 'EXHAUSTED',
): Promise<Task> {
  const task = await putClaimed(store, inLane(lane), { leaseMs: HOUR_MS });
  const item = itemOf(reason, broken, lane);
  await store.settle([{ ...settlements.failed(task), item } as never]);
  return task;
}
