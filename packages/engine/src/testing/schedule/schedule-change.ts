import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { itemOf } from '../../model/item.ts';
import { cancel, expedite } from '../../model/moves.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  broken,
  claimDue,
  expectRow,
  HOUR_MS,
  inLane,
  newTask,
  outboxMessage,
  outboxTexts,
  plain,
  put,
  putClaimed,
  row,
  settlements,
  unreachable,
} from '../fixtures.ts';
import type { StoreCases } from '../stage.ts';

export const changeCases: StoreCases = {
  'gives undefined for an absent task and inserts what the move returns': async ({ store }) => {
    const task = newTask();
    const [result] = await store.change([task], (found) => ({ result: found === undefined, task }));
    equal(result, true);
    const stored = await store.get(task);
    deepEqual(plain(stored?.payload), task.payload);
    equal((await claimDue(store, task.lane)).tasks.length, 1);
  },

  'inserts nothing where the move only answers': async ({ store }) => {
    const task = newTask();
    deepEqual(await store.change([task], () => ({ result: 'looked' })), ['looked']);
    equal(await store.get(task), undefined);
  },

  'gives undefined for an unknown id': async ({ store }) => {
    const { id } = await put(store);
    const [found] = await store.change([{ id: id + 1000 }], (task) => ({ result: task }));
    equal(found, undefined);
  },

  'gives the move the task as it stands, by id and by identity': async ({ store }) => {
    const task = newTask({
      due: { inMs: HOUR_MS },
      failure: unreachable,
      context: { method: 'PUT' },
    });
    const stored = await put(store, task);
    const found = await store.change([{ id: stored.id }, task], (one) => ({ result: one }));
    deepEqual(plain(found), plain([stored, stored]));
  },

  'gives the move the time of the store': async ({ store, sameTime, nowMs }) => {
    const [told] = await store.change([newTask()], (_, atMs) => ({ result: atMs }));
    sameTime(told, await nowMs());
  },

  'writes what the move returns': {
    needs: 'changing',
    run: async ({ store }) => {
      const before = await put(store, newTask({ due: { inMs: HOUR_MS } }));
      const after: Task = {
        ...before,
        lane: 'elsewhere',
        payload: Uint8Array.of(1, 2, 3),
        context: { headers: { 'x-new': 'yes' } },
        attempt: 2,
        maxAttempts: 7,
        uncounted: 1,
        delayMs: 5000,
        policy: 'abc',
        generation: 2,
        dueAtMs: before.dueAtMs + 1000,
        visibleAtMs: before.dueAtMs + 1000,
        expiresAtMs: before.dueAtMs + HOUR_MS,
        firstAtMs: before.createdAtMs,
        arrival: 77,
        cancelling: true,
        orderingKey: 'k',
        failure: broken,
      };
      deepEqual(await store.change([before], () => ({ result: 1, task: after })), [1]);
      await expectRow(store, after);
    },
  },

  'drops what the move leaves out': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = newTask({
        due: { inMs: HOUR_MS },
        context: { method: 'PUT' },
        policy: 'abc',
        orderingKey: 'k',
        failure: unreachable,
        arrival: 5,
        verdict: 'PERMANENT',
      });
      const {
        context: _,
        policy: _1,
        orderingKey: _2,
        failure: _3,
        arrival: _4,
        verdict: _5,
        ...bare
      } = await put(store, task);
      await store.change([bare], () => ({ result: 1, task: bare }));
      await expectRow(store, bare);
    },
  },

  'writes nothing where the move only answers': async ({ store }) => {
    const before = await put(store);
    await store.change([before], (task) => {
      if (task) task.attempt = 99;
      return { result: 0 };
    });
    await expectRow(store, before);
  },

  'answers several keys in their order and tells the move their places': async ({ store }) => {
    const one = await put(store);
    const two = await put(store);
    const answers = await store.change([two, newTask(), one], (task, _, index) => ({
      result: [index, task?.id],
    }));
    deepEqual(answers, [
      [0, two.id],
      [1, undefined],
      [2, one.id],
    ]);
  },

  'works on equal keys one after the other': async ({ store }) => {
    const task = newTask({ due: { inMs: HOUR_MS } });
    const seen = await store.change([task, task, task], (found) => ({
      result: found?.attempt,
      task: found ? { ...found, attempt: found.attempt + 1 } : { ...task, attempt: 5 },
    }));
    deepEqual(seen, [undefined, 5, 6]);
    equal((await store.get(task))?.attempt, 7);
  },

  'works on one task by its id and by its identity one after the other': async ({ store }) => {
    const task = newTask({ due: { inMs: HOUR_MS } });
    const { id } = await put(store, task);
    const seen = await store.change([{ id }, task, { id }], (found) => ({
      result: found?.attempt,
      task: { ...found!, attempt: found!.attempt + 1 },
    }));
    deepEqual(seen, [0, 1, 2]);
    equal((await row(store, id)).attempt, 3);
  },

  'takes no keys at all': async ({ store }) => {
    deepEqual(await store.change([], () => ({ result: 1 })), []);
  },

  'takes hundreds of keys at once': async ({ store }) => {
    const tasks = Array.from({ length: 300 }, () => newTask());
    await store.insert(tasks.filter((_, i) => i % 2));
    const answers = await store.change(tasks, (found, _, index) => ({
      result: found !== undefined,
      task: found ? { ...found, attempt: 3 } : tasks[index]!,
    }));
    deepEqual(
      answers,
      tasks.map((_, i) => i % 2 === 1),
    );
    equal((await store.get(tasks[0]!))?.attempt, 0);
    equal((await store.get(tasks[299]!))?.attempt, 3);
  },

  'writes task, item, outbox message and execution together': async ({
    store,
    sameTime,
    nowMs,
  }) => {
    const task = await put(
      store,
      newTask({ generation: 3, context: { contentType: 'text/plain' } }),
    );
    const item = itemOf('PERMANENT', broken, task.lane);
    const record = { attempt: 1, failure: broken, durationMs: 12, answer: 'no' };
    const failed: Task = { ...task, status: 'failed', attempt: 1, finishedAtMs: await nowMs() };
    const outbox = outboxMessage('m');
    await store.change([task], () => ({ result: 1, task: failed, item, record, outbox }));
    await expectRow(store, failed);
    const [found, ...more] = (await store.items({ limit: 10 })).items;
    equal(more.length, 0);
    const { id: _, firstSeenMs, lastSeenMs, ...rest } = found!;
    deepEqual(plain(rest), {
      ...item,
      taskId: task.id,
      messageId: task.messageId,
      destination: task.destination,
      lane: task.lane,
      payload: plain(task.payload),
      context: task.context,
      attempt: 1,
      maxAttempts: task.maxAttempts,
      generation: 3,
      state: 'open',
      occurrences: 1,
    });
    sameTime(firstSeenMs, await nowMs());
    equal(lastSeenMs, firstSeenMs);
    const [attempt] = await store.attempts(task.id);
    const { atMs, ...recorded } = attempt!;
    deepEqual(recorded, { ...record, generation: 3 });
    sameTime(atMs, await nowMs());
    deepEqual(await outboxTexts(store), ['m']);
  },

  'writes a new task that has failed, with its item and its execution': async ({
    store,
    sameTime,
  }) => {
    const record = { attempt: 4, failure: broken, durationMs: 5 };
    const task = newTask({ status: 'failed', attempt: 4, failure: broken, record });
    const item = itemOf('EXHAUSTED', broken, task.lane);
    const outbox = outboxMessage('new');
    await store.change([task], () => ({ result: 1, task, item, outbox }));
    const stored = (await store.get(task))!;
    equal(stored.status, 'failed');
    sameTime(stored.finishedAtMs, stored.createdAtMs);
    equal((await store.attempts(stored.id)).length, 1);
    const [found] = (await store.items({ limit: 10 })).items;
    equal(found?.taskId, stored.id);
    equal(found?.attempt, 4);
    deepEqual(await outboxTexts(store), ['new']);
    equal((await claimDue(store, task.lane)).tasks.length, 0);
  },

  'counts one more occurrence of the open item': async ({ store, pass, sameTime, nowMs }) => {
    const task = await putClaimed(store);
    await store.settle([settlements.failed(task)]);
    const [before] = (await store.items({ limit: 10 })).items;
    await pass(5);
    await store.change([task], () => ({
      result: 1,
      occurrence: { taskId: task.id },
    }));
    const [after, ...more] = (await store.items({ limit: 10 })).items;
    equal(more.length, 0);
    const { lastSeenMs, ...rest } = after!;
    const { lastSeenMs: firstMs, ...wanted } = before!;
    deepEqual(plain(rest), plain({ ...wanted, occurrences: 2 }));
    ok(lastSeenMs > firstMs);
    sameTime(lastSeenMs, await nowMs());
  },

  'writes an outbox message on its own': async ({ store }) => {
    await store.change([newTask()], () => ({ result: 1, outbox: outboxMessage('alone') }));
    deepEqual(await outboxTexts(store), ['alone']);
  },

  'writes nothing at all where a move throws': async ({ store }) => {
    const before = await put(store);
    const fresh = newTask();
    await rejects(
      store.change([before, fresh, before, before], (task, _, index) => {
        if (index === 3) throw new Error('a fault of the move');
        const changed = task ? { ...task, attempt: task.attempt + 9 } : fresh;
        return { result: 1, task: changed, outbox: outboxMessage('never') };
      }),
      /a fault of the move/,
    );
    await expectRow(store, before);
    equal(await store.get(fresh), undefined);
    deepEqual(await outboxTexts(store), []);
    equal((await claimDue(store, before.lane)).tasks.length, 1);
  },

  'makes a waiting task due now': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await put(store, newTask({ due: { inMs: HOUR_MS } }));
      deepEqual(await store.change([task], expedite), ['expedited']);
      const { tasks } = await claimDue(store, task.lane);
      deepEqual(
        tasks.map(({ id }) => id),
        [task.id],
      );
    },
  },

  'cancels a waiting task for good': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await put(store);
      deepEqual(await store.change([task], cancel), ['cancelled']);
      equal((await row(store, task.id)).status, 'cancelled');
      equal((await claimDue(store, task.lane)).tasks.length, 0);
    },
  },

  'cancels a task in delivery when that is over': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await putClaimed(store);
      deepEqual(await store.change([task], cancel), ['cancelling']);
      await expectRow(store, { ...task, cancelling: true });
    },
  },

  'moves a waiting task to another lane': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await put(store, inLane('from'));
      await store.change([task], (found) => ({ result: 1, task: { ...found!, lane: 'to' } }));
      equal((await claimDue(store, 'from')).tasks.length, 0);
      equal((await claimDue(store, 'to')).tasks.length, 1);
    },
  },

  'makes a later due time hold': {
    needs: 'changing',
    run: async ({ store }) => {
      const task = await put(store);
      const laterMs = task.dueAtMs + HOUR_MS;
      await store.change([task], (found) => ({
        result: 1,
        task: { ...found!, dueAtMs: laterMs, visibleAtMs: laterMs },
      }));
      equal((await claimDue(store, task.lane)).tasks.length, 0);
    },
  },

  'loses no write where many change one task at once': async ({ store }) => {
    const task = await put(store, newTask({ due: { inMs: HOUR_MS } }));
    const seen = await Promise.all(Array.from({ length: 20 }, () => addOne(store, task)));
    equal((await row(store, task.id)).attempt, 20);
    equal(new Set(seen).size, 20);
  },

  'inserts once where many find a task absent at once': async ({ store }) => {
    const task = newTask({ due: { inMs: HOUR_MS } });
    const answers = await Promise.all(Array.from({ length: 10 }, () => arrive(store, task)));
    deepEqual(
      answers.toSorted((a, b) => a - b),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
  },

  'loses no write where instances change tasks in opposite orders': {
    needs: 'shared',
    run: async ({ store, second }) => {
      const stores = [store, await second()];
      const tasks = [await put(store, soon()), await put(store, soon()), await put(store, soon())];
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          stores[i % 2]!.change(i % 3 ? tasks : tasks.toReversed(), (task) => ({
            result: 1,
            task: { ...task!, attempt: task!.attempt + 1 },
          })),
        ),
      );
      for (const { id } of tasks) equal((await row(store, id)).attempt, 12);
    },
  },
};

function soon() {
  return newTask({ due: { inMs: HOUR_MS } });
}

async function addOne(store: Store, key: Task): Promise<number> {
  const [attempt] = await store.change([key], (task) => ({
    result: task!.attempt,
    task: { ...task!, attempt: task!.attempt + 1 },
  }));
  return attempt!;
}

/** Inserts, or counts one more: answers how many came before. */
async function arrive(store: Store, task: ReturnType<typeof newTask>): Promise<number> {
  const [before] = await store.change([task], (found) =>
    found
      ? { result: found.attempt + 1, task: { ...found, attempt: found.attempt + 1 } }
      : { result: 0, task },
  );
  return before!;
}
