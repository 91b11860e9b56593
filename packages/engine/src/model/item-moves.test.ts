import { describe, expect, it } from 'vitest';
import { actOn, revived } from './item-moves.ts';
import type { InboxItem, ItemAction, ItemState } from '../ports/inbox.ts';
import type { Task } from './task.ts';
import { broken, bytes, newTask } from '../testing/fixtures.ts';
import { uuidOf } from './uuid.ts';

const NOW = 5000;
const elsewhere = { kind: 'queue', address: 'elsewhere' };

function failedTask(changes: Partial<Task> = {}): Task {
  const { due: _, record: __, ...task } = newTask();
  return {
    ...task,
    id: 1,
    messageId: '00000000-0000-4000-8000-000000000001',
    status: 'failed',
    attempt: 4,
    failure: broken,
    dueAtMs: 10,
    visibleAtMs: 20,
    createdAtMs: 5,
    finishedAtMs: 30,
    ...changes,
  };
}

function itemOfTask(task: Task, changes: Partial<InboxItem> = {}): InboxItem {
  const { id: taskId, messageId, destination, lane, payload, attempt, maxAttempts } = task;
  return {
    id: 9,
    taskId,
    messageId,
    destination,
    lane,
    payload,
    attempt,
    maxAttempts,
    generation: task.generation,
    reason: 'EXHAUSTED',
    failure: broken,
    fingerprint: 'f',
    state: 'open',
    occurrences: 1,
    firstSeenMs: 30,
    lastSeenMs: 30,
    ...changes,
  };
}

function rawItem(changes: Partial<InboxItem> = {}): InboxItem {
  const destination = { kind: 'source', address: 'q' };
  const { taskId: _, ...rest } = itemOfTask(failedTask({ payload: bytes('garbled') }));
  return { ...rest, destination, lane: 'source:q', attempt: 0, maxAttempts: 0, ...changes };
}

const closedStates: readonly ItemState[] = ['replayed', 'resolved', 'discarded', 'erased'];
const actions: readonly ItemAction[] = [
  { type: 'replay' },
  { type: 'edit', edit: {} },
  { type: 'resolve' },
  { type: 'discard' },
];

describe('any action', () => {
  it.each([...actions, { type: 'restore' } as const])(
    '$type finds nothing of an unknown item',
    (action) => {
      expect(actOn(action, undefined, undefined, NOW)).toEqual({ result: 'unknown' });
    },
  );

  it.each(actions)('$type leaves alone what is closed', (action) => {
    const task = failedTask({ status: 'done' });
    for (const state of closedStates) {
      expect(actOn(action, itemOfTask(task, { state }), task, NOW)).toEqual({ result: 'closed' });
    }
  });

  it('pass does nothing to anything', () => {
    const task = failedTask();
    expect(actOn({ type: 'pass' }, itemOfTask(task), task, NOW)).toEqual({ result: 'fault' });
    expect(actOn({ type: 'pass' }, undefined, undefined, NOW)).toEqual({ result: 'fault' });
  });
});

describe('replay', () => {
  it('starts a new generation from nothing', () => {
    const task = failedTask({
      generation: 2,
      uncounted: 3,
      delayMs: 40,
      claims: 1,
      arrived: true,
      cancelling: true,
      verdict: 'PERMANENT',
      firstAtMs: 7,
      lease: 8,
      job: 1,
      trial: true,
      policy: 'p',
      arrival: 6,
    });
    const { task: after, item, result } = actOn({ type: 'replay' }, itemOfTask(task), task, NOW);
    const gone = { verdict: 0, firstAtMs: 0, lease: 0, job: 0, trial: 0, finishedAtMs: 0 };
    const kept = Object.fromEntries(Object.entries(task).filter(([name]) => !(name in gone)));
    expect(result).toBe('done');
    expect(after).toEqual({
      ...kept,
      status: 'pending',
      generation: 3,
      attempt: 0,
      uncounted: 0,
      delayMs: 0,
      claims: 0,
      arrived: false,
      cancelling: false,
      dueAtMs: NOW,
      visibleAtMs: NOW,
    });
    expect(item).toMatchObject({ state: 'replayed', closedAtMs: NOW });
  });

  it.each([
    { expiresAtMs: NOW + 1, after: NOW + 1 },
    { expiresAtMs: NOW, after: undefined },
    { expiresAtMs: NOW - 1, after: undefined },
  ])('keeps an expiry of $expiresAtMs as $after', ({ expiresAtMs, after }) => {
    const task = failedTask({ expiresAtMs });
    expect(actOn({ type: 'replay' }, itemOfTask(task), task, NOW).task?.expiresAtMs).toBe(after);
  });

  it('waits for its turn in a line', () => {
    const task = failedTask({ orderingKey: 'k' });
    expect(actOn({ type: 'replay' }, itemOfTask(task), task, NOW).task?.blocked).toBe(true);
  });

  it('marks the job and the trial', () => {
    const task = failedTask();
    const action = { type: 'replay', job: 5, trial: true } as const;
    expect(actOn(action, itemOfTask(task), task, NOW).task).toMatchObject({ job: 5, trial: true });
  });

  it.each(['pending', 'done', 'retried', 'cancelled'] as const)(
    'says gone of a %s task',
    (status) => {
      const task = failedTask({ status });
      const item = itemOfTask(failedTask());
      expect(actOn({ type: 'replay' }, item, task, NOW)).toEqual({ result: 'gone' });
    },
  );

  it('says gone where there is no task any more', () => {
    expect(actOn({ type: 'replay' }, itemOfTask(failedTask()), undefined, NOW)).toEqual({
      result: 'gone',
    });
  });

  it('writes an edit on the task, and leaves the rest of its context', () => {
    const task = failedTask({ context: { headers: { a: '1' }, method: 'PUT' } });
    const edit = { payload: bytes('new'), headers: { b: '2' }, by: 'eva' };
    const change = actOn({ type: 'replay' }, itemOfTask(task, { edit }), task, NOW);
    expect(change.task).toMatchObject({
      payload: bytes('new'),
      context: { headers: { b: '2' }, method: 'PUT' },
      edited: 1,
    });
    expect(change.item).toMatchObject({ payload: task.payload, edit });
  });

  it('takes the edit of the action over that of the item', () => {
    const task = failedTask();
    const item = itemOfTask(task, { edit: { payload: bytes('new'), by: 'eva' } });
    const action = { type: 'replay', edit: { destination: elsewhere }, by: 'tom' } as const;
    const { item: after } = actOn(action, item, task, NOW);
    expect(after?.edit).toEqual({ payload: bytes('new'), destination: elsewhere, by: 'tom' });
    expect(after?.closedBy).toBe('tom');
  });

  it('goes elsewhere as a new row, and cancels the old one', () => {
    const task = failedTask({ orderingKey: 'k', job: 4, trial: true, firstAtMs: 3 });
    const action = { type: 'replay', job: 7, edit: { destination: elsewhere } } as const;
    const { task: old, added, result, isMoved } = actOn(action, itemOfTask(task), task, NOW);
    expect([result, isMoved]).toEqual(['done', undefined]);
    const { job: _, trial: __, ...rest } = task;
    expect(old).toEqual({ ...rest, status: 'cancelled', finishedAtMs: NOW, generation: 1 });
    expect(added).toMatchObject({
      messageId: task.messageId,
      destination: elsewhere,
      lane: 'queue:elsewhere',
      status: 'pending',
      generation: 1,
      attempt: 0,
      orderingKey: 'k',
      blocked: true,
      job: 7,
      edited: 1,
      due: { inMs: 0 },
    });
    for (const name of ['id', 'lease', 'firstAtMs', 'finishedAtMs', 'trial', 'dueAtMs']) {
      expect(added).not.toHaveProperty(name);
    }
  });

  it('stays in its row where the destination is the same', () => {
    const task = failedTask();
    const action = { type: 'replay', edit: { destination: { ...task.destination } } } as const;
    const { task: after, added } = actOn(action, itemOfTask(task), task, NOW);
    expect([after?.status, added]).toEqual(['pending', undefined]);
  });

  it('has no address for a message that could not be read', () => {
    const edit = { payload: bytes('better') };
    for (const action of [{ type: 'replay' }, { type: 'replay', edit }] as const) {
      expect(actOn(action, rawItem(), undefined, NOW)).toEqual({ result: 'unaddressed' });
    }
  });

  it('makes a task of a message that could not be read', () => {
    const item = rawItem({ context: { contentType: 'x', headers: { a: '1' } } });
    const edit = { destination: elsewhere, headers: { b: '2' } };
    const change = actOn({ type: 'replay', job: 3, edit }, item, undefined, NOW);
    expect(change).toMatchObject({ result: 'done', item: { state: 'replayed', edit } });
    expect(change.task).toBeUndefined();
    expect(change.added).toMatchObject({
      messageId: uuidOf(item.messageId, '9'),
      destination: elsewhere,
      lane: 'queue:elsewhere',
      payload: bytes('garbled'),
      context: { contentType: 'x', headers: { b: '2' } },
      status: 'pending',
      attempt: 0,
      generation: 0,
      job: 3,
    });
    expect(change.added?.maxAttempts).toBeGreaterThan(0);
  });
});

describe('edit', () => {
  it('writes what the operator changes beside what is there', () => {
    const task = failedTask();
    const edit = { payload: bytes('new') };
    const item = itemOfTask(task, { edit: { headers: { a: '1' } } });
    expect(actOn({ type: 'edit', edit }, item, task, NOW)).toEqual({
      result: 'done',
      item: { ...item, edit },
    });
  });

  it('is taken back by nothing', () => {
    const task = failedTask();
    const item = itemOfTask(task, { edit: { payload: bytes('new') } });
    const change = actOn({ type: 'edit', edit: undefined }, item, task, NOW);
    expect(change.item).not.toHaveProperty('edit');
  });
});

describe.each([
  { type: 'resolve', state: 'resolved' },
  { type: 'discard', state: 'discarded' },
] as const)('$type', ({ type, state }) => {
  it('closes the item and cancels the task', () => {
    const task = failedTask();
    const item = itemOfTask(task);
    expect(actOn({ type, by: 'eva' }, item, task, NOW)).toEqual({
      result: 'done',
      item: { ...item, state, closedAtMs: NOW, closedBy: 'eva' },
      task: { ...task, status: 'cancelled', finishedAtMs: NOW },
    });
  });

  it('takes the task from its job: it was not cancelled on its way', () => {
    const task = failedTask({ job: 3, trial: true });
    const { task: after, item } = actOn({ type }, itemOfTask(task, { job: 3 }), task, NOW);
    expect(after).not.toHaveProperty('job');
    expect(item?.job).toBe(3);
  });

  it('closes one without a task', () => {
    const change = actOn({ type }, rawItem(), undefined, NOW);
    expect(change).toEqual({ result: 'done', item: { ...rawItem(), state, closedAtMs: NOW } });
  });
});

describe('restore', () => {
  it.each(['resolved', 'discarded'] as const)('opens what was %s', (state) => {
    const task = failedTask({ status: 'cancelled' });
    const item = itemOfTask(task, { state, closedAtMs: 40, closedBy: 'eva' });
    expect(actOn({ type: 'restore' }, item, task, NOW)).toEqual({
      result: 'done',
      item: itemOfTask(task),
      task: { ...task, status: 'failed' },
    });
  });

  it('has nothing to do for what is open', () => {
    const task = failedTask();
    expect(actOn({ type: 'restore' }, itemOfTask(task), task, NOW)).toEqual({ result: 'open' });
  });

  it.each(['replayed', 'erased'] as const)('leaves alone what was %s', (state) => {
    const task = failedTask({ status: 'cancelled' });
    expect(actOn({ type: 'restore' }, itemOfTask(task, { state }), task, NOW)).toEqual({
      result: 'closed',
    });
  });

  it.each(['pending', 'failed', 'done', 'retried'] as const)('says gone of a %s task', (status) => {
    const task = failedTask({ status });
    const item = itemOfTask(task, { state: 'resolved' });
    expect(actOn({ type: 'restore' }, item, task, NOW)).toEqual({ result: 'gone' });
  });

  it('says gone of a later generation', () => {
    const task = failedTask({ status: 'cancelled', generation: 1 });
    const item = itemOfTask(failedTask(), { state: 'resolved' });
    expect(actOn({ type: 'restore' }, item, task, NOW)).toEqual({ result: 'gone' });
  });

  it('makes the row anew where it was deleted, and the item belongs to it', () => {
    const task = failedTask({ generation: 2, attempt: 3 });
    const item = itemOfTask(task, {
      state: 'discarded',
      orderingKey: 'k',
      context: { method: 'PUT' },
    });
    const change = actOn({ type: 'restore' }, item, undefined, NOW);
    expect(change).toMatchObject({ result: 'done', isMoved: true, item: { state: 'open' } });
    expect(change.added).toMatchObject({
      messageId: task.messageId,
      destination: task.destination,
      lane: task.lane,
      status: 'failed',
      generation: 2,
      attempt: 3,
      orderingKey: 'k',
      context: { method: 'PUT' },
      failure: broken,
    });
  });

  it('opens one without a task', () => {
    const item = rawItem({ state: 'resolved', closedAtMs: 40 });
    const change = actOn({ type: 'restore' }, item, undefined, NOW);
    expect(change).toEqual({ result: 'done', item: rawItem() });
  });
});

describe('a message that comes again to a place where it was cancelled', () => {
  it.each([
    { there: 2, added: 5, next: 6 },
    { there: 5, added: 2, next: 6 },
    { there: 3, added: 3, next: 4 },
  ])('is later than both: $there there and $added added make $next', ({ there, added, next }) => {
    const row = failedTask({ id: 7, status: 'cancelled', generation: there });
    const task = revived(row, newTask({ generation: added }), NOW);
    expect(task).toMatchObject({ id: 7, generation: next, edited: next });
    expect(task).toMatchObject({ createdAtMs: row.createdAtMs, dueAtMs: NOW, visibleAtMs: NOW });
  });
});
