import { deepEqual, equal, ok } from 'node:assert/strict';
import { itemOf } from '../../model/item.ts';
import { cancel } from '../../model/moves.ts';
import type { Settlement } from '../../ports/schedule.ts';
import type { Task } from '../../model/task.ts';
import {
  at,
  broken,
  claimDue,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxTexts,
  plain,
  put,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  token,
  unreachable,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

const ends = ['done', 'retried', 'cancelled'] as const;
const kinds = ['done', 'retried', 'cancelled', 'pending', 'released', 'failed'] as const;

export const settleCases: StoreCases = {
  ...each(
    ends,
    (status) => `ends a task as ${status}`,
    async (status, { store, sameTime, nowMs }: Stage) => {
      const task = await putClaimed(
        store,
        newTask({ attempt: 2, uncounted: 1, failure: unreachable }),
      );
      deepEqual(await store.settle([settlements[status](task)]), ['settled']);
      const { finishedAtMs, ...rest } = await row(store, task.id);
      deepEqual(plain(rest), plain({ ...freed(task), status }));
      sameTime(finishedAtMs, await nowMs());
    },
  ),

  'makes a task wait again by a new promise': async ({ store, sameTime, nowMs }) => {
    const task = await putClaimed(store, newTask({ uncounted: 2 }));
    const record = { attempt: 1, failure: unreachable, durationMs: 250, answer: 'busy' };
    const settlement: Settlement = {
      ...at(task),
      to: 'pending',
      delayMs: HOUR_MS,
      attempt: 1,
      uncounted: 0,
      claims: 0,
      reschedule: true,
      record,
    };
    deepEqual(await store.settle([settlement]), ['settled']);
    const { dueAtMs, visibleAtMs, firstAtMs, ...rest } = await row(store, task.id);
    const { dueAtMs: _, visibleAtMs: _1, ...wanted } = freed(task);
    const changes = { attempt: 1, uncounted: 0, delayMs: HOUR_MS, failure: unreachable };
    deepEqual(plain(rest), plain({ ...wanted, ...changes }));
    sameTime(dueAtMs, (await nowMs()) + HOUR_MS);
    equal(visibleAtMs, dueAtMs);
    sameTime(firstAtMs, (await nowMs()) - 250);
    const [attempt, ...more] = await store.attempts(task.id);
    equal(more.length, 0);
    const { atMs, ...recorded } = attempt!;
    deepEqual(recorded, { ...record, generation: 0 });
    sameTime(atMs, await nowMs());
  },

  'makes a task wait again without a failure': async ({ store }) => {
    const task = await putClaimed(store, newTask({ failure: broken, attempt: 1 }));
    const settlement: Settlement = {
      ...at(task),
      to: 'pending',
      delayMs: HOUR_MS,
      attempt: 1,
      uncounted: 3,
      claims: 0,
      reschedule: true,
    };
    await store.settle([settlement]);
    const after = await row(store, task.id);
    deepEqual([after.failure, after.uncounted, after.attempt], [broken, 3, 1]);
    ok(!('firstAtMs' in after));
    deepEqual(await store.attempts(task.id), []);
  },

  'makes a task due at once for a delay of 0': async ({ store }) => {
    const task = await putClaimed(store, inLane('a'));
    await store.settle([{ ...settlements.pending(task), delayMs: 0 } as Settlement]);
    deepEqual(ids((await claimDue(store, 'a')).tasks), [task.id]);
  },

  'takes a delay that is no whole number': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([{ ...settlements.pending(task), delayMs: HOUR_MS + 0.5 } as Settlement]);
    const after = await row(store, task.id);
    ok(Math.abs(after.delayMs - HOUR_MS) <= 1);
    const waitMs = after.dueAtMs - task.createdAtMs;
    ok(waitMs >= HOUR_MS && waitMs < 2 * HOUR_MS);
  },

  'keeps the first time of all failures': async ({ store, pass }) => {
    const task = await putClaimed(store, inLane('a'));
    await store.settle([{ ...settlements.pending(task), delayMs: 0 } as Settlement]);
    const { firstAtMs } = await row(store, task.id);
    await pass(5);
    const [again] = (await claimDue(store, 'a')).tasks;
    await store.settle([settlements.pending(again!)]);
    equal((await row(store, task.id)).firstAtMs, firstAtMs);
    deepEqual(
      (await store.attempts(task.id)).map(({ attempt }) => attempt),
      [1, 2],
    );
  },

  'gives a task back as it was before the claim': async ({ store }) => {
    const before = await put(store, inLane('a', { attempt: 1, uncounted: 2, delayMs: 700 }));
    const [task] = (await claimDue(store, 'a')).tasks;
    deepEqual(await store.settle([settlements.released(task!)]), ['settled']);
    await expectRow(store, before);
  },

  'gives a task back to its place in the order': async ({ store, pass }) => {
    const first = await put(store, inLane('a'));
    await pass(5);
    const second = await put(store, inLane('a'));
    const [task] = (await claimDue(store, [{ lane: 'a', limit: 1 }])).tasks;
    equal(task?.id, first.id);
    await pass(5);
    await store.settle([settlements.released(task)]);
    deepEqual(ids((await claimDue(store, 'a')).tasks), [first.id, second.id]);
  },

  'makes a failed task, its item, its outbox message and its execution together': async ({
    store,
    sameTime,
    nowMs,
  }) => {
    const task = await putClaimed(store, newTask({ attempt: 2, context: { secret: 's' } }));
    const item = itemOf('EXHAUSTED', broken, task.lane);
    deepEqual(await store.settle([settlements.failed(task)]), ['settled']);
    const { finishedAtMs, ...rest } = await row(store, task.id);
    const changes = { status: 'failed', attempt: 3, failure: broken };
    deepEqual(plain(rest), plain({ ...freed(task), ...changes }));
    sameTime(finishedAtMs, await nowMs());
    const [found, ...more] = (await store.items({ limit: 10 })).items;
    equal(more.length, 0);
    const { id: _, firstSeenMs, lastSeenMs, ...opened } = found!;
    deepEqual(plain(opened), {
      ...item,
      taskId: task.id,
      messageId: task.messageId,
      destination: task.destination,
      lane: task.lane,
      payload: plain(task.payload),
      context: { secret: 's' },
      attempt: 3,
      maxAttempts: task.maxAttempts,
      generation: 0,
      state: 'open',
      occurrences: 1,
    });
    sameTime(firstSeenMs, await nowMs());
    equal(lastSeenMs, firstSeenMs);
    deepEqual(
      (await store.attempts(task.id)).map(({ attempt, failure }) => [attempt, failure]),
      [[3, broken]],
    );
    deepEqual(await outboxTexts(store), [task.messageId]);
  },

  'makes a failed task without a message and without an execution': async ({ store }) => {
    const task = await putClaimed(store);
    const item = itemOf('UNROUTABLE', broken, task.lane);
    await store.settle([{ ...at(task), to: 'failed', attempt: 0, item }]);
    equal((await row(store, task.id)).attempt, 0);
    equal((await store.items({ limit: 10 })).items[0]?.reason, 'UNROUTABLE');
    deepEqual(await store.attempts(task.id), []);
    deepEqual(await outboxTexts(store), []);
  },

  ...each(
    kinds,
    (kind) => `clears a verdict unless the task goes on: ${kind}`,
    async (kind, { store }: Stage) => {
      const task = await putClaimed(store, newTask({ verdict: 'PERMANENT' }));
      await store.settle([settlements[kind](task)]);
      const goesOn = kind === 'pending' || kind === 'released';
      equal((await row(store, task.id)).verdict, goesOn ? 'PERMANENT' : undefined);
    },
  ),

  ...each(
    kinds,
    (kind) => `knows what a cancellation makes of ${kind}`,
    async (kind, { store }: Stage) => {
      const task = await putClaimed(store);
      deepEqual(await store.change([task], cancel), ['cancelling']);
      const status = kind === 'done' || kind === 'retried' ? kind : 'cancelled';
      const isOwn = status === kind;
      deepEqual(await store.settle([settlements[kind](task)]), [isOwn ? 'settled' : 'cancelled']);
      const after = await row(store, task.id);
      deepEqual([after.status, after.cancelling, after.lease], [status, false, undefined]);
      ok(after.finishedAtMs !== undefined);
      deepEqual((await store.items({ limit: 10 })).items, []);
      deepEqual(await outboxTexts(store), []);
      const isExecution = kind === 'pending' || kind === 'failed';
      equal((await store.attempts(task.id)).length, isExecution ? 1 : 0);
    },
  ),

  ...each(
    kinds,
    (kind) => `says lost when it is told ${kind} a second time, and changes nothing`,
    async (kind, stage: Stage) => {
      const { store } = stage;
      const task = await putClaimed(store);
      const settlement = settlements[kind](task);
      deepEqual(await store.settle([settlement]), ['settled']);
      const before = await everything(stage, task.id);
      deepEqual(await store.settle([settlement]), ['lost']);
      deepEqual(await everything(stage, task.id), before);
    },
  ),

  'says lost for an id that nobody knows': async ({ store }) => {
    const task = await putClaimed(store);
    const unknown = { ...task, id: task.id + 1000 };
    deepEqual(
      await store.settle(kinds.map((kind) => settlements[kind](unknown))),
      kinds.map(() => 'lost'),
    );
    deepEqual(await outboxTexts(store), []);
  },

  'says lost for a task that is not leased': async (stage) => {
    const { store } = stage;
    const task = await put(store);
    const before = await everything(stage, task.id);
    for (const kind of kinds) {
      deepEqual(await store.settle([settlements[kind]({ ...task, lease: token() })]), ['lost']);
    }
    deepEqual(await everything(stage, task.id), before);
  },

  'settles under a lease that is over while nobody else took it': async ({ store, pass }) => {
    const task = await putClaimed(store, newTask(), { leaseMs: SHORT_MS });
    await pass(SHORT_MS + 1);
    deepEqual(await store.settle([settlements.done(task)]), ['settled']);
    equal((await row(store, task.id)).status, 'done');
  },

  'settles many of all kinds at once, each in its place': async ({ store }) => {
    await store.insert(Array.from({ length: 60 }, () => inLane('a')));
    const { tasks } = await claimDue(store, 'a');
    const answers = await store.settle(
      tasks.map((task, i) => {
        const settlement = settlements[kinds[i % kinds.length]!](task);
        // Every tenth is held by somebody else.
        return i % 10 === 9 ? { ...settlement, lease: token() } : settlement;
      }),
    );
    deepEqual(
      answers,
      tasks.map((_, i) => (i % 10 === 9 ? 'lost' : 'settled')),
    );
    const status = {
      done: 'done',
      retried: 'retried',
      cancelled: 'cancelled',
      pending: 'pending',
      released: 'pending',
      failed: 'failed',
    };
    for (const [i, task] of tasks.entries()) {
      const after = await row(store, task.id);
      const kind = kinds[i % kinds.length]!;
      if (i % 10 === 9) deepEqual(plain(after), plain(task));
      else deepEqual([after.status, after.lease], [status[kind], undefined]);
    }
    const failed = tasks.filter((_, i) => i % 10 !== 9 && kinds[i % kinds.length] === 'failed');
    equal((await store.items({ limit: 100 })).items.length, failed.length);
    deepEqual(
      (await outboxTexts(store)).toSorted(),
      failed.map(({ messageId }) => messageId).toSorted(),
    );
  },

  'applies a settlement once that stands twice in one batch': async ({ store }) => {
    const task = await putClaimed(store);
    const settlement = settlements.failed(task);
    const answers = await store.settle([settlement, settlement]);
    ok(answers.includes('settled'));
    equal((await store.items({ limit: 10 })).items.length, 1);
    equal((await store.attempts(task.id)).length, 1);
    deepEqual(await outboxTexts(store), [task.messageId]);
  },

  'takes no settlements at all': async ({ store }) => {
    deepEqual(await store.settle([]), []);
  },

  'takes a thousand at once': async ({ store }) => {
    await store.insert(Array.from({ length: 1000 }, () => inLane('a')));
    const { tasks } = await claimDue(store, [{ lane: 'a', limit: 1000 }]);
    const answers = await store.settle(tasks.map(settlements.done));
    equal(answers.filter((answer) => answer === 'settled').length, tasks.length);
  },

  'keeps what an execution left behind, in any script': async ({ store }) => {
    const task = await putClaimed(store);
    const record = {
      attempt: 1,
      failure: { class: 'unknown' as const, message: `'ünï' "测试" 🚀 \\ \n %_` },
      durationMs: 0,
      answer: `${'é'.repeat(2048)}\n"'\\`,
    };
    await store.settle([{ ...settlements.pending(task), record } as Settlement]);
    const [{ failure, answer } = {}] = await store.attempts(task.id);
    deepEqual([failure, answer], [record.failure, record.answer]);
    deepEqual((await row(store, task.id)).failure, record.failure);
  },

  'lets one of many settlements that come at once win': async ({ store }) => {
    const task = await putClaimed(store);
    const settlement = settlements.failed(task);
    const answers = await Promise.all(Array.from({ length: 10 }, () => store.settle([settlement])));
    equal(answers.flat().filter((answer) => answer === 'settled').length, 1);
    equal((await store.items({ limit: 10 })).items.length, 1);
    equal((await store.attempts(task.id)).length, 1);
  },
};

/** What every settle does to a task. */
function freed(task: Task): Task {
  const { lease: _, ...rest } = task;
  return { ...rest, claims: 0 };
}

/** All that a settle could have changed. Outbox messages are taken. */
async function everything({ store }: Stage, id: number) {
  return plain({
    ...(await row(store, id)),
    items: plain(await store.items({ limit: 100 })).items,
    attempts: await store.attempts(id),
    outbox: (await store.takeOutbox(100, 0)).map((message) => message.id),
  });
}
