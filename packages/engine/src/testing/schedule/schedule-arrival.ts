import { deepEqual, equal, ok } from 'node:assert/strict';
import { accept, type Accepted, type Arrival, cancel } from '../../model/moves.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  arrivalOf,
  at,
  broken,
  bytes,
  claimDue,
  claimLost,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  outboxMessage,
  outboxTexts,
  plain,
  put,
  putClaimed,
  row,
  settlements,
  SHORT_MS,
  unreachable,
} from '../fixtures.ts';
import type { Stage, StoreCases } from '../stage.ts';
import { each } from '../suite.ts';

const kinds = ['done', 'retried', 'pending', 'released', 'failed'] as const;

/** A fast consumer fails before the delivery that brought it the message is settled. No order may lose that. */
export const arrivalCases: StoreCases = {
  'is written on a task in delivery at once, and the lease stays': async ({
    store,
    sameTime,
    nowMs,
  }) => {
    const task = await putClaimed(store, inLane('a', { attempt: 1 }));
    equal(await arrive(store, arrivalOf(task)), 'accepted');
    const { dueAtMs, firstAtMs: _first, ...after } = await row(store, task.id);
    const { dueAtMs: _, ...wanted } = task;
    const came = { arrived: true, attempt: 2, claims: 0, failure: unreachable, maxAttempts: 4 };
    deepEqual(plain(after), plain({ ...wanted, ...came, delayMs: HOUR_MS }));
    sameTime(dueAtMs, (await nowMs()) + HOUR_MS);
    deepEqual(
      (await store.attempts(task.id)).map(({ attempt }) => attempt),
      [2],
    );
  },

  'brings its payload, its context and its failure': async ({ store }) => {
    const task = await putClaimed(store, inLane('a', { context: { headers: { 'x-a': '1' } } }));
    const came = {
      ...arrivalOf(task).task,
      payload: bytes('as it failed'),
      context: { headers: { 'x-b': '2' } },
      failure: { ...unreachable, message: 'again' },
    };
    await arrive(store, arrivalOf(task, { task: came }));
    const after = await row(store, task.id);
    deepEqual(plain(after.payload), came.payload);
    deepEqual([after.context, after.failure], [came.context, came.failure]);
  },

  ...each(
    kinds,
    (kind) => `then ${kind}: the task waits with what arrived`,
    async (kind, { store, sameTime, nowMs }: Stage) => {
      const task = await putClaimed(store, inLane('a'));
      await arrive(store, arrivalOf(task));
      const arrived = await row(store, task.id);
      deepEqual(await store.settle([settlements[kind](task)]), ['rearmed']);
      const after = await row(store, task.id);
      const { lease: _, ...wanted } = arrived;
      deepEqual(plain(after), plain({ ...wanted, arrived: false, visibleAtMs: arrived.dueAtMs }));
      sameTime(after.dueAtMs, (await nowMs()) + HOUR_MS);
      equal(after.attempt, 1);
      deepEqual((await store.items({ limit: 10 })).items, []);
      deepEqual(await outboxTexts(store), []);
      const executions = kind === 'pending' || kind === 'failed' ? 2 : 1;
      equal((await store.attempts(task.id)).length, executions);
    },
  ),

  'then cancelled: the task is cancelled': async ({ store }) => {
    const task = await putClaimed(store);
    await arrive(store, arrivalOf(task));
    deepEqual(await store.settle([settlements.cancelled(task)]), ['settled']);
    equal((await row(store, task.id)).status, 'cancelled');
  },

  'then a settle of a task that was cancelled meanwhile: it is cancelled': async ({ store }) => {
    const task = await putClaimed(store);
    await arrive(store, arrivalOf(task));
    deepEqual(await store.change([task], cancel), ['cancelling']);
    deepEqual(await store.settle([settlements.retried(task)]), ['cancelled']);
    equal((await row(store, task.id)).status, 'cancelled');
  },

  'then abandon: the task waits with what arrived': async ({ store }) => {
    const task = await putClaimed(store);
    await arrive(store, arrivalOf(task));
    const arrived = await row(store, task.id);
    await store.abandon(task.lease!);
    const after = await row(store, task.id);
    const { lease: _, ...wanted } = arrived;
    deepEqual(plain(after), plain({ ...wanted, arrived: false, visibleAtMs: arrived.dueAtMs }));
  },

  ...each(
    ['retried', 'done'] as const,
    (kind) => `after ${kind}: the same as before it`,
    async (kind, { store, clock }: Stage) => {
      const [first, second] = [
        await putClaimed(store, inLane('a')),
        await putClaimed(store, inLane('b')),
      ];
      await arrive(store, arrivalOf(first));
      await store.settle([settlements[kind](first)]);
      await store.settle([settlements[kind](second)]);
      equal(await arrive(store, arrivalOf(second)), 'accepted');
      const [before, after] = [await row(store, first.id), await row(store, second.id)];
      for (const name of [
        'status',
        'attempt',
        'claims',
        'arrived',
        'lease',
        'finishedAtMs',
        'failure',
      ] as const) {
        deepEqual(after[name], before[name], name);
      }
      if (clock)
        deepEqual([after.dueAtMs, after.visibleAtMs], [before.dueAtMs, before.visibleAtMs]);
      ok(!('finishedAtMs' in after));
    },
  ),

  'and a worker that never comes back: due at the end of the lease, with the new count': async ({
    store,
    pass,
  }) => {
    const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await arrive(store, arrivalOf(task));
    const { dueAtMs } = await row(store, task.id);
    deepEqual((await claimLost(store, ['a'])).tasks, []);
    await pass(SHORT_MS + 1);
    deepEqual((await claimLost(store, ['a'])).tasks, []);
    const [again] = (await claimDue(store, 'a')).tasks;
    deepEqual([again?.id, again?.attempt, again?.claims, again?.arrived], [task.id, 1, 1, false]);
    // It is claimed, but not due: the engine gives it back until then.
    equal(again!.dueAtMs, dueAtMs);
    await store.settle([settlements.released(again!)]);
    deepEqual((await claimDue(store, 'a')).tasks, []);
    equal((await row(store, task.id)).visibleAtMs, dueAtMs);
  },

  'hides the task until the end of the lease': async ({ store, sameTime }) => {
    const task = await putClaimed(store, inLane('a'));
    await arrive(store, arrivalOf(task));
    const { tasks, nextInMs } = await claimDue(store, 'a');
    deepEqual(tasks, []);
    sameTime(nextInMs[0], HOUR_MS);
  },

  'is told to who renews, and the lease goes on': async ({ store, sameTime, nowMs }) => {
    const task = await putClaimed(store, inLane('a'));
    await arrive(store, arrivalOf(task));
    const before = await row(store, task.id);
    deepEqual(await store.renew([at(task)], 3 * HOUR_MS), ['arrived']);
    const { visibleAtMs, ...after } = await row(store, task.id);
    const { visibleAtMs: _, ...wanted } = before;
    deepEqual(plain(after), plain(wanted));
    sameTime(visibleAtMs, (await nowMs()) + 3 * HOUR_MS);
    deepEqual(await store.settle([settlements.retried(task)]), ['rearmed']);
  },

  'twice in one delivery is once, with the newer failure': async ({ store }) => {
    const task = await putClaimed(store, inLane('a'));
    await arrive(store, arrivalOf(task));
    const again = arrivalOf(task, { task: { ...arrivalOf(task).task, failure: broken } });
    equal(await arrive(store, again), 'duplicate');
    const after = await row(store, task.id);
    deepEqual([after.attempt, after.failure, after.arrived], [1, broken, true]);
    equal((await store.attempts(task.id)).length, 1);
  },

  'by the same token is written once, before and after the settle': async ({ store }) => {
    const task = await putClaimed(store, inLane('a'));
    const arrival = arrivalOf(task, { task: { ...arrivalOf(task).task, arrival: 2 ** 52 - 5 } });
    equal(await arrive(store, arrival), 'accepted');
    const before = await row(store, task.id);
    equal(before.arrival, 2 ** 52 - 5);
    equal(await arrive(store, arrival), 'accepted');
    deepEqual(plain(await row(store, task.id)), plain(before));
    await store.settle([settlements.retried(task)]);
    const after = await row(store, task.id);
    equal(await arrive(store, arrival), 'accepted');
    deepEqual(plain(await row(store, task.id)), plain(after));
    equal((await store.attempts(task.id)).length, 1);
  },

  'that must not be retried is claimed once more, for the inbox': async ({ store }) => {
    const task = await putClaimed(store, inLane('a'));
    equal(await arrive(store, arrivalOf(task, { verdict: 'PERMANENT' })), 'accepted');
    deepEqual(await store.settle([settlements.retried(task)]), ['rearmed']);
    const [again] = (await claimDue(store, 'a')).tasks;
    deepEqual([again?.id, again?.verdict, again?.arrived], [task.id, 'PERMANENT', false]);
    await store.settle([settlements.failed(again!)]);
    const after = await row(store, task.id);
    deepEqual([after.status, after.verdict], ['failed', undefined]);
  },

  'is forgotten by the next claim, which is a delivery of its own': async ({ store, pass }) => {
    const task = await putClaimed(store, inLane('a'), { leaseMs: SHORT_MS });
    await arrive(store, arrivalOf(task, { verdict: 'PERMANENT' }));
    await pass(SHORT_MS + 1);
    const [again] = (await claimDue(store, 'a')).tasks;
    equal(again?.arrived, false);
    deepEqual(await store.settle([settlements.failed(again)]), ['settled']);
  },

  'of a task that waits keeps its due time and its place': async ({ store, pass }) => {
    const first = await put(store, inLane('a'));
    await pass(5);
    const second = await put(store, inLane('a'));
    const arrival = arrivalOf(first, { task: { ...arrivalOf(first).task, failure: broken } });
    equal(await arrive(store, arrival), 'duplicate');
    deepEqual(plain(await row(store, first.id)), plain({ ...first, failure: broken }));
    deepEqual(ids((await claimDue(store, 'a')).tasks), [first.id, second.id]);
  },

  'of a task that failed is one more occurrence': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.failed(task)]);
    const before = await row(store, task.id);
    const [item] = (await store.items({ limit: 10 })).items;
    const attempts = await store.attempts(task.id);
    const again = { ...arrivalOf(task).task, attempt: 7, failure: broken };
    equal(await arrive(store, arrivalOf(task, { task: again })), 'duplicate');
    deepEqual(plain(await row(store, task.id)), plain(before));
    const items = (await store.items({ limit: 10 })).items;
    deepEqual(
      items.map(({ occurrences, failure, fingerprint }) => [occurrences, failure, fingerprint]),
      [[2, item!.failure, item!.fingerprint]],
    );
    const [last, ...rest] = (await store.attempts(task.id)).toReversed();
    deepEqual(rest.toReversed(), attempts);
    deepEqual([last?.attempt, last?.failure, last?.generation], [7, broken, task.generation]);
  },

  'of a task that was cancelled is a new item': async ({ store }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.cancelled(task)]);
    const review = () => outboxMessage('came back');
    equal(await arrive(store, arrivalOf(task, { review })), 'failed');
    const after = await row(store, task.id);
    deepEqual([after.status, after.attempt, after.lease], ['failed', 1, undefined]);
    const [item] = (await store.items({ limit: 10 })).items;
    deepEqual([item?.reason, item?.taskId, item?.attempt], ['CAME_BACK', task.id, 1]);
    deepEqual(await outboxTexts(store), ['came back']);
  },

  'of a new message that is exhausted goes straight to the inbox': async ({ store }) => {
    const task = newTask({ attempt: 4, maxAttempts: 4, failure: unreachable });
    const arrival = arrivalOf(task, { task, verdict: 'EXHAUSTED' });
    equal(await arrive(store, arrival), 'failed');
    const stored = await store.get(task);
    equal(stored?.status, 'failed');
    equal((await store.items({ limit: 10 })).items[0]?.taskId, stored?.id);
    deepEqual(
      (await store.attempts(stored.id)).map(({ attempt }) => attempt),
      [4],
    );
  },

  'at the same moment as the settle is never lost': async ({ store }) => {
    await store.insert(Array.from({ length: 30 }, () => inLane('a')));
    const { tasks } = await claimDue(store, 'a');
    await Promise.all(
      tasks.flatMap((task, i) => {
        const settle = () => settled(store, settlements.retried(task));
        const come = () => arrive(store, arrivalOf(task));
        return i % 2 ? [settle(), come()] : [come(), settle()];
      }),
    );
    for (const { id } of tasks) await expectRearmed(store, id);
  },

  'at the same moment as the settle of another instance is never lost': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const other = await second();
      await store.insert(Array.from({ length: 30 }, () => inLane('a')));
      const { tasks } = await claimDue(store, 'a');
      await Promise.all(
        tasks.flatMap((task) => [
          settled(store, settlements.retried(task)),
          arrive(other, arrivalOf(task)),
        ]),
      );
      for (const { id } of tasks) await expectRearmed(store, id);
    },
  },
};

async function arrive(store: Store, arrival: Arrival): Promise<Accepted> {
  const [accepted] = await store.change([arrival.task], (task, nowMs) =>
    accept(arrival, task, nowMs, 0),
  );
  return accepted!;
}

/** Settles as the engine does: again while the row is busy. */
async function settled(
  store: Store,
  settlement: Parameters<Store['settle']>[0][number],
): Promise<void> {
  for (let answer = 'busy'; answer === 'busy';)
    [answer = 'lost'] = await store.settle([settlement]);
}

async function expectRearmed(store: Store, id: number): Promise<void> {
  const { status, attempt, arrived, lease, claims }: Task = await row(store, id);
  deepEqual(
    { status, attempt, arrived, lease, claims },
    {
      status: 'pending',
      attempt: 1,
      arrived: false,
      lease: undefined,
      claims: 0,
    },
  );
}
