import { deepEqual, equal, ok } from 'node:assert/strict';
import { accept } from '../../model/moves.ts';
import { laneOf, type Task } from '../../model/task.ts';
import { uuidOf } from '../../model/uuid.ts';
import {
  arrivalOf,
  bytes,
  claimDue,
  expectRow,
  HOUR_MS,
  ids,
  inLane,
  newTask,
  put,
  row,
  settlements,
  unreachable,
  uuid,
} from '../fixtures.ts';
import {
  actOne,
  dead,
  deadMany,
  deadRaw,
  failIn,
  itemBy,
  openItem,
  sameItem,
} from './inbox-fixtures.ts';
import { listen } from '../schedule/schedule-watch.ts';
import type { StoreCases } from '../stage.ts';

const elsewhere = { kind: 'queue', address: 'elsewhere' };

/** The same task and message again, in a new generation, at most once. */
export const replayCases: StoreCases = {
  'begins anew, and keeps everything else of the task': async (stage) => {
    const { store, pass, sameTime, nowMs } = stage;
    const { task, item: before } = await dead(
      store,
      inLane('a', {
        attempt: 2,
        uncounted: 3,
        delayMs: 500,
        generation: 4,
        policy: 'a policy',
        context: { headers: { 'x-a': '1' }, secret: 'bank' },
        arrival: 77,
        failure: unreachable,
        record: { attempt: 2, failure: unreachable, durationMs: 10 },
      }),
    );
    equal(task.attempt, 3);
    await pass(5);
    equal(await actOne(store, before, { type: 'replay' }), 'done');
    const after = await row(store, task.id);
    const { finishedAtMs: _, firstAtMs: __, ...kept } = task;
    const { dueAtMs } = after;
    sameTime(dueAtMs, await nowMs());
    await expectRow(store, {
      ...kept,
      status: 'pending',
      generation: 5,
      attempt: 0,
      uncounted: 0,
      delayMs: 0,
      claims: 0,
      dueAtMs,
      visibleAtMs: dueAtMs,
    });
    deepEqual(ids((await claimDue(store, 'a')).tasks), [task.id]);
  },

  'closes the item, with who did it and when': async ({ store, pass, sameTime, nowMs }) => {
    const { item: before } = await dead(store);
    await pass(5);
    equal(await actOne(store, before, { type: 'replay', by: 'eva' }), 'done');
    const after = await itemBy(store, before.id);
    const closedAtMs = after.closedAtMs!;
    sameItem(after, { ...before, state: 'replayed', closedBy: 'eva', closedAtMs });
    sameTime(closedAtMs, await nowMs());
  },

  'drops an expiry that has passed, and keeps one that has not': async ({ store, nowMs }) => {
    const atMs = Math.floor(await nowMs());
    const { task: over } = await dead(store, inLane('a', { expiresAtMs: atMs - 1 }));
    const { task: ahead } = await dead(store, inLane('b', { expiresAtMs: atMs + HOUR_MS }));
    const items = [await openItem(store, over.id), await openItem(store, ahead.id)];
    deepEqual(await store.act(ids(items), { type: 'replay' }), ['done', 'done']);
    equal((await row(store, over.id)).expiresAtMs, undefined);
    equal((await row(store, ahead.id)).expiresAtMs, atMs + HOUR_MS);
  },

  'marks what a job replays, and forgets the job before': async ({ store }) => {
    const { task, item: before } = await dead(store, inLane('a', { job: 7, trial: true }));
    equal(before.job, 7);
    equal(await actOne(store, before, { type: 'replay', job: 9, trial: true }), 'done');
    let after = await row(store, task.id);
    deepEqual([after.job, after.trial], [9, true]);
    await failIn(store, 'a');
    const again = await openItem(store, task.id);
    equal(again.job, 9);
    equal(await actOne(store, again, { type: 'replay' }), 'done');
    after = await row(store, task.id);
    deepEqual([after.job, after.trial], [undefined, undefined]);
  },

  'makes another item when it fails again, and keeps the old one': async ({ store }) => {
    const { task, item: first } = await dead(store);
    await actOne(store, first, { type: 'replay' });
    await failIn(store, 'a');
    const second = await openItem(store, task.id);
    deepEqual([second.generation, second.occurrences, second.attempt], [1, 1, 1]);
    const { items } = await store.items({ messageId: task.messageId, limit: 10 });
    deepEqual(
      items.map(({ id, state, generation }) => [id, state, generation]),
      [
        [second.id, 'open', 1],
        [first.id, 'replayed', 0],
      ],
    );
    equal(await actOne(store, first, { type: 'replay' }), 'closed');
  },

  'keeps the executions of every generation': async ({ store }) => {
    const { task, item: first } = await dead(store);
    await actOne(store, first, { type: 'replay' });
    await failIn(store, 'a');
    deepEqual(
      (await store.attempts(task.id)).map(({ generation, attempt }) => [generation, attempt]),
      [
        [0, 1],
        [1, 1],
      ],
    );
  },

  'tells the watchers': async (stage) => {
    const { store } = stage;
    const { item: before } = await dead(store);
    const heard = await listen(stage, store);
    await actOne(store, before, { type: 'replay' });
    await stage.until('a hint of the lane', () => heard.lane('a'));
  },

  'leaves alone what somebody changed by hand': async ({ store }) => {
    const { task, item: before } = await dead(store);
    await store.change([task], (found) => ({ result: 1, task: { ...found!, status: 'done' } }));
    equal(await actOne(store, before, { type: 'replay' }), 'gone');
    equal((await row(store, task.id)).status, 'done');
    sameItem(await itemBy(store, before.id), before);
  },

  'applies a change, and keeps the original with the item': async ({ store }) => {
    const context = { headers: { 'x-a': '1', 'x-b': '2' }, method: 'PUT' };
    const { task, item: before } = await dead(
      store,
      inLane('a', { payload: bytes('old'), context }),
    );
    const edit = { payload: bytes('new'), headers: { 'x-c': '3' }, by: 'eva' };
    await actOne(store, before, { type: 'edit', edit });
    equal(await actOne(store, before, { type: 'replay' }), 'done');
    const after = await row(store, task.id);
    deepEqual(Uint8Array.from(after.payload), edit.payload);
    deepEqual(after.context, { headers: { 'x-c': '3' }, method: 'PUT' });
    deepEqual([after.edited, after.generation, after.status], [1, 1, 'pending']);
    const closed = await itemBy(store, before.id);
    sameItem(closed, { ...before, edit, state: 'replayed', closedAtMs: closed.closedAtMs! });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.failed));
    const again = await openItem(store, task.id);
    deepEqual(Uint8Array.from(again.payload), edit.payload);
    sameItem(await itemBy(store, before.id), closed);
  },

  'takes its own change over that of the item, part by part': async ({ store }) => {
    const { task, item: before } = await dead(store, inLane('a', { payload: bytes('old') }));
    const edit = { payload: bytes('written'), headers: { 'x-a': '1' }, by: 'eva' };
    await actOne(store, before, { type: 'edit', edit });
    const over = { headers: { 'x-b': '2' } };
    equal(await actOne(store, before, { type: 'replay', by: 'tom', edit: over }), 'done');
    const after = await row(store, task.id);
    deepEqual(Uint8Array.from(after.payload), edit.payload);
    deepEqual(after.context?.headers, over.headers);
    deepEqual((await itemBy(store, before.id)).edit?.by, 'tom');
  },

  'knows a change of an earlier replay': async ({ store }) => {
    const { task, item: before } = await dead(store);
    await actOne(store, before, { type: 'replay', edit: { payload: bytes('new') } });
    await failIn(store, 'a');
    await actOne(store, await openItem(store, task.id), { type: 'replay' });
    const { edited, generation, payload } = await row(store, task.id);
    deepEqual([edited, generation, Uint8Array.from(payload)], [1, 2, bytes('new')]);
  },

  'goes to another destination as another task': async ({ store, sameTime, nowMs }) => {
    const { task, item: before } = await dead(store, inLane('a', { payload: bytes('it') }));
    const action = { type: 'replay', job: 3, edit: { destination: elsewhere } } as const;
    equal(await actOne(store, before, action), 'done');
    const old = await row(store, task.id);
    deepEqual([old.status, Uint8Array.from(old.payload)], ['cancelled', bytes('it')]);
    const moved = (await store.get({ messageId: task.messageId, destination: elsewhere }))!;
    deepEqual([moved.lane, moved.status, moved.attempt], [laneOf(elsewhere), 'pending', 0]);
    deepEqual([moved.generation, moved.edited, moved.job], [1, 1, 3]);
    deepEqual([Uint8Array.from(moved.payload), moved.claims], [bytes('it'), 0]);
    sameTime(moved.dueAtMs, await nowMs());
    const closed = await itemBy(store, before.id);
    deepEqual([closed.state, closed.taskId, closed.edit], ['replayed', task.id, action.edit]);
    deepEqual(closed.destination, task.destination);
    deepEqual(ids((await claimDue(store, laneOf(elsewhere))).tasks), [moved.id]);
  },

  'goes to a URL in the lane of its origin': async ({ store }) => {
    const { task, item: before } = await dead(store);
    const destination = { kind: 'http', address: 'https://api.example/orders?x=1' };
    equal(await actOne(store, before, { type: 'replay', edit: { destination } }), 'done');
    const moved = await store.get({ messageId: task.messageId, destination });
    equal(moved?.lane, 'https://api.example');
  },

  'stays the same task where the destination is the same': async ({ store }) => {
    const { task, item: before } = await dead(store);
    const { destination } = task;
    equal(await actOne(store, before, { type: 'replay', edit: { destination } }), 'done');
    const after = await row(store, task.id);
    // Nothing is changed, so it is the same to whoever gets it.
    deepEqual([after.status, after.edited, after.lane], ['pending', undefined, 'a']);
  },

  'elsewhere leaves nothing that an older item could bring back': async ({ store, pass }) => {
    const { task, item: first } = await dead(store);
    await actOne(store, first, { type: 'discard' });
    const came = arrivalOf(task);
    await store.change([task], (known, nowMs) => accept(came, known, nowMs, 0));
    const second = await openItem(store, task.id);
    await actOne(store, second, { type: 'replay', edit: { destination: elsewhere } });
    equal(await actOne(store, first, { type: 'restore' }), 'gone');
    equal((await row(store, task.id)).status, 'cancelled');
    await pass(5);
    await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 10 });
    equal(await store.get({ id: task.id }), undefined);
    equal(await actOne(store, first, { type: 'restore' }), 'gone');
    equal((await itemBy(store, first.id)).state, 'discarded');
  },

  'does nothing where the message is known at the new destination': async ({ store }) => {
    const { task, item: before } = await dead(store);
    const { messageId } = task;
    const there = await put(store, newTask({ messageId, destination: elsewhere }));
    const [other] = await deadMany(store, 1, 'b');
    const action = { type: 'replay', edit: { destination: elsewhere } } as const;
    deepEqual(await store.act([before.id, other!.id], action), ['conflict', 'done']);
    await expectRow(store, task);
    await expectRow(store, there);
    sameItem(await itemBy(store, before.id), before);
    equal(await actOne(store, before, { type: 'replay' }), 'done');
  },

  'goes back to where it was, as the same task again': async ({ store }) => {
    const { task, item: before } = await dead(store);
    const { messageId, destination } = task;
    await actOne(store, before, { type: 'replay', edit: { destination: elsewhere } });
    await failIn(store, laneOf(elsewhere));
    const away = (await store.get({ messageId, destination: elsewhere }))!;
    const second = await openItem(store, away.id);
    equal(await actOne(store, second, { type: 'replay', edit: { destination } }), 'done');
    const back = await row(store, task.id);
    deepEqual([back.status, back.messageId, back.attempt], ['pending', messageId, 0]);
    ok(back.generation > task.generation + 1);
    equal((await row(store, away.id)).status, 'cancelled');
    deepEqual(ids((await claimDue(store, laneOf(destination))).tasks), [task.id]);
  },

  'leaves the payload of an older item as it failed': async ({ store }) => {
    const payload = bytes('first');
    const { task, item: first } = await dead(store, inLane('a', { payload }));
    await actOne(store, first, { type: 'replay' });
    await failIn(store, 'a');
    const second = await openItem(store, task.id);
    const edit = { payload: bytes('other'), headers: { 'x-a': '1' } };
    await actOne(store, second, { type: 'replay', edit });
    for (const { id } of [first, second]) {
      const { payload: kept, context } = await itemBy(store, id);
      deepEqual([Uint8Array.from(kept), context], [payload, first.context]);
    }
  },

  'leaves the payload of an item as it failed when the message comes back with another': async ({
    store,
  }) => {
    const payload = bytes('first');
    const { task, item: first } = await dead(store, inLane('a', { payload }));
    await actOne(store, first, { type: 'replay' });
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.retried));
    const arrival = arrivalOf(await row(store, task.id), {});
    const came = { ...arrival, task: { ...arrival.task, payload: bytes('other') } };
    await store.change([task], (known, nowMs) => accept(came, known, nowMs, 0));
    deepEqual(Uint8Array.from((await row(store, task.id)).payload), bytes('other'));
    deepEqual(Uint8Array.from((await itemBy(store, first.id)).payload), payload);
  },

  'lets one of two go where both would be the same task': async ({ store }) => {
    const messageId = uuid();
    const two = [
      await dead(store, inLane('a', { messageId })),
      await dead(store, inLane('b', { messageId, destination: { kind: 'queue', address: 'b' } })),
    ];
    const action = { type: 'replay', edit: { destination: elsewhere } } as const;
    const results = await store.act(ids(two.map((one) => one.item)), action);
    deepEqual(results, ['done', 'conflict']);
    await expectRow(store, two[1]!.task);
  },

  'needs a destination for a message that could not be read': async ({ store }) => {
    const raw = await deadRaw(store);
    equal(await actOne(store, raw, { type: 'replay' }), 'unaddressed');
    equal(
      await actOne(store, raw, { type: 'replay', edit: { payload: bytes('better') } }),
      'unaddressed',
    );
    sameItem(await itemBy(store, raw.id), raw);
  },

  'makes a task of a message that could not be read': async ({ store }) => {
    const raw = await deadRaw(store, 'garbled');
    const edit = { destination: elsewhere, payload: bytes('{}'), headers: { 'x-a': '1' } };
    await actOne(store, raw, { type: 'edit', edit });
    equal(await actOne(store, raw, { type: 'replay', job: 5 }), 'done');
    const made = madeOf(raw);
    const task = await store.get(made);
    deepEqual(task && [task.lane, task.status, task.attempt, task.generation, task.job], [
      laneOf(elsewhere),
      'pending',
      0,
      0,
      5,
    ]);
    deepEqual(
      [Uint8Array.from(task!.payload), task!.context],
      [edit.payload, { headers: edit.headers }],
    );
    const closed = await itemBy(store, raw.id);
    deepEqual([closed.state, closed.taskId], ['replayed', undefined]);
    deepEqual(Uint8Array.from(closed.payload), bytes('garbled'));
  },

  'makes a task of each of the same bytes that came again': async ({ store }) => {
    const raw = await deadRaw(store, 'garbled');
    const { messageId, payload, reason, failure, fingerprint } = raw;
    const action = { type: 'replay', edit: { destination: elsewhere } } as const;
    equal(await actOne(store, raw, action), 'done');
    const source = 'retry.scheduled';
    await store.append([{ messageId, payload, reason, failure, fingerprint, source }]);
    const { items } = await store.items({ messageId, state: 'open', limit: 10 });
    equal(await actOne(store, items[0]!, action), 'done');
    const { tasks } = await claimDue(store, laneOf(elsewhere));
    equal(new Set(tasks.map((task: Task) => task.messageId)).size, 2);
  },
};

/** The identity of the task that a message without one becomes. */
function madeOf({ id, messageId }: { id: number; messageId: string }) {
  return { messageId: uuidOf(messageId, `${id}`), destination: elsewhere };
}
