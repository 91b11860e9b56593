import { deepEqual, equal } from 'node:assert/strict';
import type { TaskQuery } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import {
  claimDue,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  plain,
  put,
  putClaimed,
  settlements,
  SHORT_MS,
  uuid,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { needing } from '../suite.ts';

export const getCases: StoreCases = {
  'finds a task by its id and by its identity': async ({ store }) => {
    const task = newTask();
    const stored = await put(store, task);
    deepEqual(plain(await store.get({ id: stored.id })), plain(stored));
    deepEqual(plain(await store.get(task)), plain(stored));
  },

  'answers undefined for what nobody knows': async ({ store }) => {
    const task = newTask();
    const { id } = await put(store, task);
    equal(await store.get({ id: id + 1000 }), undefined);
    equal(await store.get({ ...task, messageId: uuid() }), undefined);
    equal(
      await store.get({ ...task, destination: { kind: 'queue', address: 'other' } }),
      undefined,
    );
    equal(
      await store.get({ ...task, destination: { kind: 'other', address: 'orders' } }),
      undefined,
    );
  },

  'finds a task in every state': async ({ store }) => {
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store);
      await store.settle([settlements[kind](task)]);
      equal((await store.get(task))?.status, kind);
    }
  },
};

export const listCases: StoreCases = needing('listing', {
  'gives the newest first': async ({ store }: Stage) => {
    const tasks = [await put(store), await put(store), await put(store)];
    deepEqual(await list(store, {}), ids(tasks).toReversed());
  },

  'gives whole tasks': async ({ store }: Stage) => {
    const task = await putClaimed(store, newTask({ context: { method: 'PUT' } }));
    deepEqual(plain(await store.list({ limit: 10 })), plain([task]));
  },

  'gives page after page, each task once': async ({ store }: Stage) => {
    await store.insert(Array.from({ length: 25 }, () => newTask()));
    const seen: number[] = [];
    for (let before: number | undefined; ; before = seen.at(-1)) {
      const page = await list(store, { limit: 10, ...(before === undefined ? {} : { before }) });
      seen.push(...page);
      if (page.length < 10) break;
    }
    equal(seen.length, 25);
    deepEqual(
      seen,
      [...new Set(seen)].toSorted((a, b) => b - a),
    );
  },

  'keeps to its limit': async ({ store }: Stage) => {
    await store.insert(Array.from({ length: 5 }, () => newTask()));
    equal((await list(store, { limit: 2 })).length, 2);
    equal((await list(store, { limit: 0 })).length, 0);
  },

  'looks at the status': async ({ store }: Stage) => {
    const waiting = await put(store, inLane('a', { due: { inMs: HOUR_MS } }));
    const byStatus = new Map([['pending', waiting.id]]);
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store, inLane('b'));
      await store.settle([settlements[kind](task)]);
      byStatus.set(kind, task.id);
    }
    for (const status of ['pending', 'done', 'retried', 'cancelled', 'failed'] as const) {
      deepEqual(await list(store, { status }), [byStatus.get(status)]);
    }
  },

  'looks at the lane': async ({ store }: Stage) => {
    const task = await put(store, inLane('a'));
    await store.insert([inLane('ab'), inLane('A')]);
    deepEqual(await list(store, { lane: 'a' }), [task.id]);
  },

  'leaves out a kind of destination': async ({ store }: Stage) => {
    const destination = { kind: 'other', address: 'orders' };
    const tasks = [await put(store), await put(store, newTask({ destination })), await put(store)];
    const others = ids([tasks[2]!, tasks[0]!]);
    deepEqual(await list(store, { exceptKind: 'other' }), others);
    deepEqual(await list(store, { exceptKind: 'other', limit: 1 }), others.slice(0, 1));
    const { messageId } = tasks[1]!;
    deepEqual(await list(store, { exceptKind: 'other', messageId }), []);
    deepEqual(await list(store, { exceptKind: 'queue', messageId }), [tasks[1]!.id]);
  },

  'looks at the message id': async ({ store }: Stage) => {
    const task = newTask();
    const one = await put(store, task);
    const two = await put(store, { ...task, destination: { kind: 'queue', address: 'other' } });
    await put(store);
    deepEqual(await list(store, { messageId: task.messageId }), [two.id, one.id]);
    deepEqual(await list(store, { messageId: uuid() }), []);
  },

  'looks at everything it is asked for together': async ({ store }: Stage) => {
    const task = newTask({ lane: 'a' });
    const one = await put(store, task);
    await put(store, inLane('a'));
    const { messageId } = task;
    const query = { messageId, lane: 'a', status: 'pending' as const };
    deepEqual(await list(store, query), [one.id]);
    deepEqual(await list(store, { ...query, status: 'done' }), []);
    deepEqual(await list(store, { ...query, lane: 'b' }), []);
    deepEqual(await list(store, { ...query, before: one.id }), []);
  },
});

export const lanesCases: StoreCases = {
  'tells every lane in which something waits, in order, and when its first is visible': async ({
    store,
    sameTime,
  }) => {
    await store.insert([
      inLane('c', { due: { inMs: HOUR_MS } }),
      inLane('a', { due: { inMs: 2 * HOUR_MS } }),
      inLane('a', { due: { inMs: 3 * HOUR_MS } }),
      inLane('b'),
      inLane('b', { due: { inMs: HOUR_MS } }),
    ]);
    const lanes = await store.lanes({ limit: 10 });
    deepEqual(
      lanes.map(({ lane }) => lane),
      ['a', 'b', 'c'],
    );
    sameTime(lanes[0]?.inMs, 2 * HOUR_MS);
    equal(lanes[1]?.inMs, 0);
    sameTime(lanes[2]?.inMs, HOUR_MS);
  },

  'is empty where nothing waits': async ({ store }) => {
    deepEqual(await store.lanes({ limit: 10 }), []);
  },

  'leaves out a lane in which everything is over': async ({ store }) => {
    for (const kind of ['done', 'retried', 'cancelled', 'failed'] as const) {
      const task = await putClaimed(store, inLane(kind));
      await store.settle([settlements[kind](task)]);
    }
    deepEqual(await store.lanes({ limit: 10 }), []);
  },

  'counts what is held until its lease is over': async ({ store, sameTime }) => {
    await putClaimed(store, inLane('a'));
    const [lane] = await store.lanes({ limit: 10 });
    equal(lane?.lane, 'a');
    sameTime(lane?.inMs, HOUR_MS);
  },

  'counts what is lost as visible': async ({ store, pass }) => {
    await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await put(store, inLane('a', { due: { inMs: HOUR_MS } }));
    await pass(SHORT_MS + 1);
    deepEqual(await store.lanes({ limit: 10 }), [{ lane: 'a', inMs: 0 }]);
  },

  'leaves out what is blocked': async ({ store }) => {
    await put(store, inLane('a', { blocked: true }));
    deepEqual(await store.lanes({ limit: 10 }), []);
  },

  'tells each lane once, however much waits in it': async ({ store }) => {
    await store.insert(Array.from({ length: 50 }, (_, i) => inLane(i % 2 ? 'a' : 'b')));
    await claimDue(store, [{ lane: 'a', limit: 5 }]);
    deepEqual(
      (await store.lanes({ limit: 10 })).map(({ lane }) => lane),
      ['a', 'b'],
    );
  },

  'gives page after page, each lane once': async ({ store }) => {
    // Names on which alphabets disagree, and those of lanes in which something is only held.
    const names = [
      'a',
      'A',
      'a b',
      'a-b',
      'a_b',
      'ab',
      'B',
      'b',
      'ä',
      'z',
      'Z',
      '中',
      '🚀',
      'queue:orders',
    ];
    await store.insert(names.map((name) => inLane(name)));
    await claimDue(store, ['A', 'ä', '🚀', 'queue:orders']);
    const seen: string[] = [];
    for (let after: string | undefined; ; after = seen.at(-1)) {
      const page = await store.lanes({ limit: 3, ...(after === undefined ? {} : { after }) });
      seen.push(...page.map(({ lane }) => lane));
      if (page.length < 3) break;
    }
    deepEqual(seen.toSorted(), names.toSorted());
  },

  'keeps to its limit': async ({ store }) => {
    await store.insert(['a', 'b', 'c'].map((name) => inLane(name)));
    deepEqual(
      (await store.lanes({ limit: 2 })).map(({ lane }) => lane),
      ['a', 'b'],
    );
    deepEqual(
      (await store.lanes({ after: 'b', limit: 2 })).map(({ lane }) => lane),
      ['c'],
    );
    deepEqual(await store.lanes({ after: 'c', limit: 2 }), []);
  },

  'begins after a name that is no lane': async ({ store }) => {
    await store.insert(['a', 'c'].map((name) => inLane(name)));
    deepEqual(
      (await store.lanes({ after: 'b', limit: 2 })).map(({ lane }) => lane),
      ['c'],
    );
  },
};

async function list(store: Store, query: Partial<TaskQuery>): Promise<number[]> {
  return ids(await store.list({ limit: 100, ...query }));
}
