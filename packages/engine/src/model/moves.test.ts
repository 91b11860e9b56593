import { definePolicy, type Failure, type GiveUp } from 'redrive';
import { describe, expect, it } from 'vitest';
import {
  accept,
  type Arrival,
  cancel,
  type Change,
  expedite,
  hindrance,
  reasonOf,
  settle,
} from './moves.ts';
import type { Settlement } from '../ports/schedule.ts';
import { arrivalOf, bytes, newTask, outboxMessage, unreachable } from '../testing/fixtures.ts';
import type { NewTask, Reason, Task } from './task.ts';

const NOW = 1_700_000_000_000;
const HOUR = 3_600_000;
const LEASE = 77;

/** A stored task that waits, due an hour ago. */
function taskOf(changes: Partial<Task> = {}): Task {
  const { due: _, ...fresh } = newTask({ messageId: '7b4c0000-0000-4000-8000-00000000c0de' });
  return {
    ...fresh,
    id: 5,
    dueAtMs: NOW - HOUR,
    visibleAtMs: NOW - HOUR,
    createdAtMs: NOW - 2 * HOUR,
    ...changes,
  };
}

/** The same in delivery, its lease running for a while. */
function leased(changes: Partial<Task> = {}): Task {
  return taskOf({ lease: LEASE, claims: 1, visibleAtMs: NOW + 30_000, ...changes });
}

function written(change: Change<unknown>): Task {
  const { task } = change;
  if (!task || !('id' in task)) throw new Error('nothing stored was written');
  return task;
}

const newer: Failure = { class: 'transient', code: 'NEWER', message: 'again' };

/** A failure that came back, to be retried in an hour. */
function failureOf(task: Task | NewTask, changes: Partial<NewTask> = {}, more = {}): Arrival {
  const arrival = arrivalOf(task, more);
  return { ...arrival, task: { ...arrival.task, failure: newer, ...changes } };
}

describe('accept: something new', () => {
  it('takes submitted work as it is', () => {
    const task = newTask();
    const arrival: Arrival = { type: 'submit', task, policy: definePolicy() };
    expect(accept(arrival, undefined, NOW, 0)).toEqual({ result: 'accepted', task });
  });

  it('takes a failure, due after the delay that follows its attempt, with its record', () => {
    const arrival = failureOf(newTask(), { attempt: 2 });
    const change = accept(arrival, undefined, NOW, 0);
    expect(change).toMatchObject({
      result: 'accepted',
      task: {
        status: 'pending',
        attempt: 2,
        due: { inMs: HOUR },
        delayMs: HOUR,
        record: { attempt: 2, failure: newer, durationMs: 0 },
      },
    });
    expect(change.item).toBeUndefined();
  });

  it('honours a due time of its producer in the future, and computes one for the past', () => {
    const due = (atMs: number) =>
      (accept(failureOf(newTask(), { due: { atMs } }), undefined, NOW, 0).task as NewTask).due;
    expect(due(NOW + 5)).toEqual({ atMs: NOW + 5 });
    expect(due(NOW)).toEqual({ inMs: HOUR });
    expect(due(NOW - 5)).toEqual({ inMs: HOUR });
  });

  it('asks the same question twice and gets the same delay; another seed, another one', () => {
    const policy = definePolicy({ base: '1h', jitter: 'full' });
    const arrival = failureOf(newTask(), {}, { policy });
    const delay = (seed: number) => accept(arrival, undefined, NOW, seed).task?.delayMs;
    expect(delay(1)).toBe(delay(1));
    expect(delay(1)).not.toBe(delay(2));
  });

  it.each<[string, Reason, Partial<NewTask>, Partial<Arrival>]>([
    ['one whose attempts are used up', 'EXHAUSTED', { attempt: 10 }, {}],
    ['one that is not retried', 'PERMANENT', { failure: { class: 'business' } }, {}],
    ['one past its expiry', 'EXPIRED', { expiresAtMs: NOW }, {}],
    ['one that would be due past its expiry', 'EXPIRED', { expiresAtMs: NOW + HOUR }, {}],
    [
      'one that was told to wait too long',
      'RETRY_AFTER_TOO_LONG',
      { failure: { class: 'transient', retryAfterMs: 90 * HOUR } },
      {},
    ],
    ['one that its reader refuses', 'TOO_FAR', {}, { verdict: 'TOO_FAR' }],
  ])('puts %s straight into the inbox', (_, reason, changes, more) => {
    const { result, task, item, record } = accept(
      failureOf(newTask(), changes, more),
      undefined,
      NOW,
      0,
    );
    expect(result).toBe('failed');
    expect(task).toMatchObject({ status: 'failed', record: { durationMs: 0 } });
    expect(item).toMatchObject({ reason, failure: changes.failure ?? newer });
    // The new task carries its own.
    expect(record).toBeUndefined();
  });

  it('commits a review message with the item, where one is wanted', () => {
    const review = (task: { messageId: string }) => outboxMessage(task.messageId);
    const arrival = failureOf(newTask(), { attempt: 10 }, { review });
    const { outbox } = accept(arrival, undefined, NOW, 0);
    expect(outbox).toEqual(outboxMessage(arrival.task.messageId));
  });

  it('calls a failure that nobody described unknown', () => {
    const { failure: _, ...task } = failureOf(newTask()).task;
    const arrival = arrivalOf(task, { task, policy: definePolicy({ retryOn: ['unknown'] }) });
    expect(accept(arrival, undefined, NOW, 0).task?.failure).toEqual({ class: 'unknown' });
  });
});

describe('accept: submitted work that is known', () => {
  it.each(['pending', 'retried', 'done', 'failed', 'cancelled'] as const)(
    'is a duplicate when it is %s, and nothing changes',
    (status) => {
      const task = taskOf({ status });
      const arrival: Arrival = { type: 'submit', task: newTask(), policy: definePolicy() };
      expect(accept(arrival, task, NOW, 0)).toEqual({ result: 'duplicate' });
    },
  );

  it('is accepted when it is this very one, whose answer was lost', () => {
    const arrival = (token: number): Arrival => ({
      type: 'submit',
      task: newTask({ arrival: token }),
      policy: definePolicy(),
    });
    expect(accept(arrival(9), taskOf({ arrival: 9 }), NOW, 0)).toEqual({ result: 'accepted' });
    expect(accept(arrival(9), taskOf({ arrival: 8 }), NOW, 0)).toEqual({ result: 'duplicate' });
  });
});

describe('accept: the same failure once more', () => {
  it('is not counted twice when only the answer was lost', () => {
    const pending = taskOf({ arrival: 9, attempt: 1 });
    const failed = taskOf({ arrival: 9, attempt: 4, status: 'failed' });
    expect(accept(failureOf(pending, { arrival: 9 }), pending, NOW, 0)).toEqual({
      result: 'accepted',
    });
    expect(accept(failureOf(failed, { arrival: 9 }), failed, NOW, 0)).toEqual({
      result: 'failed',
    });
  });

  it('is stale with a count of ours that is counted already', () => {
    const task = taskOf({ status: 'retried', attempt: 2 });
    const stale = failureOf(task, { attempt: 2 }, { generation: 0 });
    expect(accept(stale, task, NOW, 0)).toEqual({ result: 'duplicate' });
    const fresh = failureOf(task, { attempt: 3 }, { generation: 0 });
    expect(accept(fresh, task, NOW, 0)).toMatchObject({ result: 'accepted', task: { attempt: 3 } });
  });

  it('is stale when it is of an earlier generation, however high its count', () => {
    const task = taskOf({ status: 'retried', attempt: 1, generation: 2 });
    const stale = failureOf(task, { attempt: 9 }, { generation: 1 });
    expect(accept(stale, task, NOW, 0)).toEqual({ result: 'duplicate' });
    const fresh = failureOf(task, { attempt: 1 }, { generation: 3 });
    expect(accept(fresh, task, NOW, 0).result).toBe('accepted');
  });
});

describe('accept: a failure of a task that waits', () => {
  it('is a duplicate that leaves only its error, and never shortens the wait', () => {
    const task = taskOf({ dueAtMs: NOW + 9 * HOUR, visibleAtMs: NOW + 9 * HOUR, attempt: 1 });
    const change = accept(failureOf(task, { due: { atMs: NOW + 1 } }), task, NOW, 0);
    expect(change).toEqual({ result: 'duplicate', task: { ...task, failure: newer } });
  });

  it('carries on where our own count shows that an unconfirmed publish went out, never earlier', () => {
    const dueAtMs = NOW + 9 * HOUR;
    const task = taskOf({ dueAtMs, visibleAtMs: dueAtMs, attempt: 1, uncounted: 4 });
    const arrival = failureOf(task, { attempt: 2, payload: bytes('new') }, { generation: 0 });
    const change = accept(arrival, task, NOW, 0);
    expect(change).toMatchObject({
      result: 'accepted',
      task: { attempt: 2, uncounted: 0, dueAtMs, visibleAtMs: dueAtMs, failure: newer },
      record: { attempt: 2, failure: newer },
    });
    expect(written(change).payload).toEqual(bytes('new'));
  });
});

describe('accept: a failure of a task in delivery', () => {
  it('is written on the row at once, with the lease kept and its end', () => {
    const task = leased({ attempt: 1, uncounted: 2, claims: 2 });
    const arrival = failureOf(task, { payload: bytes('new'), context: { contentType: 'x' } });
    const change = accept(arrival, task, NOW, 0);
    expect(change.result).toBe('accepted');
    expect(written(change)).toEqual({
      ...task,
      payload: bytes('new'),
      context: { contentType: 'x' },
      failure: newer,
      attempt: 2,
      maxAttempts: 4,
      uncounted: 0,
      claims: 0,
      arrived: true,
      dueAtMs: NOW + HOUR,
      delayMs: HOUR,
      firstAtMs: NOW,
    });
    expect(change.record).toEqual({ attempt: 2, failure: newer, durationMs: 0 });
  });

  it('is taken also when the lease is over and nobody else has claimed it', () => {
    const task = leased({ visibleAtMs: NOW - 1 });
    expect(accept(failureOf(task), task, NOW, 0)).toMatchObject({
      result: 'accepted',
      task: { arrived: true, lease: LEASE },
    });
  });

  it('counts on from the larger of both counts', () => {
    const count = (attempt: number, came: number) =>
      written(accept(failureOf(leased(), { attempt: came }), leased({ attempt }), NOW, 0)).attempt;
    expect(count(2, 1)).toBe(3);
    expect(count(0, 1)).toBe(1);
    expect(count(0, 5)).toBe(5);
  });

  it('leaves a verdict where it must not be retried: the next claim takes it to the inbox', () => {
    const task = leased({ attempt: 9 });
    const change = accept(failureOf(task), task, NOW, 0);
    expect(change).toMatchObject({
      result: 'accepted',
      task: { status: 'pending', lease: LEASE, arrived: true, verdict: 'EXHAUSTED', dueAtMs: NOW },
    });
    expect(change.item).toBeUndefined();
  });

  it('is a duplicate the second time: only its error is kept', () => {
    const task = leased({ arrived: true, attempt: 2 });
    expect(accept(failureOf(task), task, NOW, 0)).toEqual({
      result: 'duplicate',
      task: { ...task, failure: newer },
    });
  });

  it('measures the deadline from the first execution', () => {
    const policy = definePolicy({ base: '1m', jitter: 'none', deadline: '2h', maxAttempts: 9 });
    const reason = (firstAtMs: number) =>
      written(accept(failureOf(leased(), {}, { policy }), leased({ firstAtMs }), NOW, 0)).verdict;
    expect(reason(NOW - HOUR)).toBeUndefined();
    expect(reason(NOW - 2 * HOUR)).toBe('EXPIRED');
  });
});

describe('accept: a failure of a task that a broker took over, or that worked', () => {
  it.each(['retried', 'done'] as const)('arms it again when it is %s', (status) => {
    const task = taskOf({ status, attempt: 1, finishedAtMs: NOW - 5, verdict: 'TOO_FAR' });
    const arrival = failureOf(task, { attempt: 1, payload: bytes('new'), maxAttempts: 7 });
    const { decided, ...change } = accept(arrival, task, NOW, 0);
    expect(decided).toMatchObject({ facts: { attempt: 2 }, decision: { action: 'retry' } });
    const { finishedAtMs: _f, verdict: _v, ...rest } = task;
    expect(change).toEqual({
      result: 'accepted',
      task: {
        ...rest,
        status: 'pending',
        payload: bytes('new'),
        failure: newer,
        attempt: 2,
        maxAttempts: 7,
        dueAtMs: NOW + HOUR,
        visibleAtMs: NOW + HOUR,
        delayMs: HOUR,
        firstAtMs: NOW,
      },
      record: { attempt: 2, failure: newer, durationMs: 0 },
    });
  });

  it('exhausts a producer that always sends the same count', () => {
    let task = taskOf({ status: 'retried', attempt: 1, maxAttempts: 3 });
    const policy = definePolicy({ maxAttempts: 3, jitter: 'none' });
    const again = () => accept(failureOf(task, { attempt: 1 }, { policy }), task, NOW, 0);
    const second = again();
    expect(second).toMatchObject({ result: 'accepted', task: { attempt: 2 } });
    task = { ...written(second), status: 'retried' };
    expect(again()).toMatchObject({
      result: 'failed',
      task: { status: 'failed', attempt: 3, finishedAtMs: NOW },
      item: { reason: 'EXHAUSTED' },
      record: { attempt: 3 },
    });
  });

  it('remembers its token, and keeps the old one where none came', () => {
    const task = taskOf({ status: 'retried', arrival: 4 });
    expect(written(accept(failureOf(task, { arrival: 5 }), task, NOW, 0)).arrival).toBe(5);
    expect(written(accept(failureOf(task), task, NOW, 0)).arrival).toBe(4);
  });
});

describe('accept: a failure of a task that is over', () => {
  it('is one more occurrence of the open item when it failed', () => {
    const task = taskOf({ status: 'failed' });
    expect(accept(failureOf(task), task, NOW, 0)).toEqual({
      result: 'duplicate',
      task,
      occurrence: { taskId: task.id },
      record: { attempt: 1, failure: newer, durationMs: 0 },
    });
  });

  it('is a new open item when it was cancelled', () => {
    const task = taskOf({ status: 'cancelled', attempt: 1, finishedAtMs: NOW - 5 });
    const review = () => outboxMessage('came back');
    expect(accept(failureOf(task, {}, { review }), task, NOW, 0)).toMatchObject({
      result: 'failed',
      task: { status: 'failed', attempt: 2, finishedAtMs: NOW },
      item: { reason: 'CAME_BACK', failure: newer },
      record: { attempt: 2 },
      outbox: outboxMessage('came back'),
    });
  });

  it('of an evaluation is counted without a record, keeps its reason, and need not be told', () => {
    const verdict = { verdict: 'EVALUATION_FAILED', review: () => undefined } as const;
    const failed = taskOf({ status: 'failed', attempt: 1, finishedAtMs: NOW - 5 });
    const again = accept(failureOf(failed, {}, verdict), failed, NOW, 0);
    expect(again).toMatchObject({ result: 'duplicate', occurrence: { taskId: failed.id } });
    expect(again).not.toHaveProperty('record');
    const discarded = taskOf({ status: 'cancelled', attempt: 1, finishedAtMs: NOW - 5 });
    const back = accept(failureOf(discarded, {}, verdict), discarded, NOW, 0);
    expect(back).toMatchObject({ result: 'failed', item: { reason: 'EVALUATION_FAILED' } });
    expect(back).not.toHaveProperty('outbox');
  });
});

const settlements: Record<Settlement['to'], Settlement> = {
  done: { id: 5, lease: LEASE, to: 'done' },
  retried: { id: 5, lease: LEASE, to: 'retried' },
  cancelled: { id: 5, lease: LEASE, to: 'cancelled' },
  pending: {
    id: 5,
    lease: LEASE,
    to: 'pending',
    delayMs: 500,
    attempt: 1,
    uncounted: 0,
    claims: 0,
    reschedule: true,
    record: { attempt: 1, failure: unreachable, durationMs: 40 },
  },
  failed: {
    id: 5,
    lease: LEASE,
    to: 'failed',
    attempt: 1,
    item: { reason: 'PERMANENT', failure: unreachable, fingerprint: 'f' },
    outbox: outboxMessage('review'),
    record: { attempt: 1, failure: unreachable, durationMs: 40 },
  },
};
const all = Object.values(settlements).map((one) => [one.to, one] as const);

describe('settle', () => {
  it.each(all)('to %s changes nothing without the lease', (_, by) => {
    const lost = { result: 'lost' };
    expect(settle(undefined, by, NOW)).toEqual(lost);
    expect(settle(taskOf(), by, NOW)).toEqual(lost);
    expect(settle(leased({ lease: LEASE + 1 }), by, NOW)).toEqual(lost);
    expect(settle(leased({ status: 'done' }), by, NOW)).toEqual(lost);
  });

  it.each(all)('to %s still counts when the lease is over and nobody has claimed it', (_, by) => {
    expect(settle(leased({ visibleAtMs: NOW - 1 }), by, NOW).result).toBe('settled');
  });

  it.each(['done', 'retried', 'cancelled'] as const)('to %s ends the task', (to) => {
    const task = leased({ attempt: 2, claims: 2 });
    const { lease: _, ...rest } = task;
    expect(settle(task, settlements[to], NOW)).toEqual({
      result: 'settled',
      task: { ...rest, claims: 0, status: to, finishedAtMs: NOW },
    });
  });

  it('to failed writes item, outbox message and record in the same commit', () => {
    const by = settlements.failed as Extract<Settlement, { to: 'failed' }>;
    expect(settle(leased({ verdict: 'TOO_FAR' }), by, NOW)).toEqual({
      result: 'settled',
      task: {
        ...taskOf(),
        visibleAtMs: NOW + 30_000,
        status: 'failed',
        attempt: 1,
        finishedAtMs: NOW,
        failure: unreachable,
      },
      item: by.item,
      outbox: by.outbox,
      record: by.record,
    });
    const { outbox: _o, record: _r, ...bare } = by;
    expect(settle(leased(), bare, NOW)).not.toHaveProperty('outbox');
    expect(settle(leased(), bare, NOW)).not.toHaveProperty('record');
  });

  it('to pending makes a new promise, and remembers when the first execution began', () => {
    const change = settle(leased({ uncounted: 3 }), settlements.pending, NOW);
    expect(change).toEqual({
      result: 'settled',
      task: {
        ...taskOf(),
        attempt: 1,
        dueAtMs: NOW + 500,
        visibleAtMs: NOW + 500,
        delayMs: 500,
        failure: unreachable,
        firstAtMs: NOW - 40,
      },
      record: { attempt: 1, failure: unreachable, durationMs: 40 },
    });
    const again = settle(leased({ firstAtMs: 3 }), settlements.pending, NOW);
    expect(written(again).firstAtMs).toBe(3);
  });

  it('to pending as a release keeps the promise, the delay and the failure', () => {
    const task = leased({ claims: 3, delayMs: 9, failure: newer });
    const by: Settlement = {
      id: 5,
      lease: LEASE,
      to: 'pending',
      delayMs: 0,
      attempt: 0,
      uncounted: 0,
      claims: 2,
      reschedule: false,
    };
    const { lease: _, ...rest } = task;
    expect(settle(task, by, NOW)).toEqual({
      result: 'settled',
      task: { ...rest, claims: 2, visibleAtMs: task.dueAtMs },
    });
  });

  it.each(all.filter(([to]) => to !== 'cancelled'))(
    'to %s gives way to a failure that arrived meanwhile',
    (_, by) => {
      const task = leased({
        arrived: true,
        attempt: 3,
        claims: 0,
        dueAtMs: NOW + HOUR,
        failure: newer,
      });
      const { lease: _l, ...rest } = task;
      const change = settle(task, by, NOW);
      expect(change.result).toBe('rearmed');
      expect(change.task).toEqual({ ...rest, arrived: false, visibleAtMs: NOW + HOUR });
      expect(change.item).toBeUndefined();
      expect(change.outbox).toBeUndefined();
      // The execution did happen: its record is kept.
      expect(change.record).toEqual('record' in by ? by.record : undefined);
    },
  );

  it('keeps the verdict of an arrival for the next claim', () => {
    const task = leased({ arrived: true, verdict: 'EXHAUSTED', dueAtMs: NOW });
    expect(settle(task, settlements.done, NOW)).toMatchObject({
      result: 'rearmed',
      task: { verdict: 'EXHAUSTED', visibleAtMs: NOW, status: 'pending' },
    });
  });

  it('cancels what was cancelled meanwhile, unless it worked', () => {
    const outcome = (by: Settlement, changes: Partial<Task> = {}) =>
      settle(leased({ cancelling: true, ...changes }), by, NOW);
    for (const to of ['pending', 'failed', 'cancelled'] as const) {
      const change = outcome(settlements[to]);
      expect(change).toMatchObject({
        result: to === 'cancelled' ? 'settled' : 'cancelled',
        task: { status: 'cancelled', cancelling: false, finishedAtMs: NOW },
      });
      expect(change.item).toBeUndefined();
    }
    for (const to of ['done', 'retried'] as const) {
      expect(outcome(settlements[to])).toMatchObject({ task: { status: to, cancelling: false } });
      // It did not work there after all: a failure came back.
      expect(outcome(settlements[to], { arrived: true, verdict: 'EXHAUSTED' })).toMatchObject({
        task: { status: 'cancelled', arrived: false },
      });
    }
  });

  it('forgets a verdict when the task is over', () => {
    expect(
      written(settle(leased({ verdict: 'TOO_FAR' }), settlements.done, NOW)),
    ).not.toHaveProperty('verdict');
  });
});

describe('cancel', () => {
  it('knows nothing of an unknown task', () => {
    expect(cancel(undefined, NOW)).toEqual({ result: 'unknown' });
  });

  it.each(['retried', 'done', 'failed'] as const)('comes too late when it is %s', (status) => {
    expect(cancel(taskOf({ status }), NOW)).toEqual({ result: 'over' });
  });

  it('may be asked for again', () => {
    expect(cancel(taskOf({ status: 'cancelled' }), NOW)).toEqual({ result: 'cancelled' });
  });

  it('takes effect at once where nothing is under way', () => {
    const task = taskOf({ verdict: 'TOO_FAR' });
    const { verdict: _, ...rest } = task;
    expect(cancel(task, NOW)).toEqual({
      result: 'cancelled',
      task: { ...rest, status: 'cancelled', finishedAtMs: NOW },
    });
  });

  it('takes effect at once where the lease is over: that worker changes nothing any more', () => {
    const change = cancel(leased({ visibleAtMs: NOW, arrived: true }), NOW);
    expect(change).toMatchObject({
      result: 'cancelled',
      task: { status: 'cancelled', arrived: false, claims: 0 },
    });
    expect(written(change)).not.toHaveProperty('lease');
    expect(settle(written(change), settlements.done, NOW)).toEqual({ result: 'lost' });
  });

  it('is a mark on a task in delivery', () => {
    const task = leased();
    expect(cancel(task, NOW)).toEqual({
      result: 'cancelling',
      task: { ...task, cancelling: true },
    });
  });
});

describe('expedite', () => {
  it('knows nothing of an unknown task', () => {
    expect(expedite(undefined, NOW)).toEqual({ result: 'unknown' });
  });

  it('comes too late for a task that is over, and too early for one in delivery', () => {
    expect(expedite(taskOf({ status: 'done' }), NOW)).toEqual({ result: 'over' });
    expect(expedite(leased(), NOW)).toEqual({ result: 'in_delivery' });
  });

  it('makes a waiting task due now', () => {
    const task = taskOf({ dueAtMs: NOW + HOUR, visibleAtMs: NOW + HOUR });
    expect(expedite(task, NOW)).toEqual({
      result: 'expedited',
      task: { ...task, dueAtMs: NOW, visibleAtMs: NOW },
    });
  });

  it('never makes a task later that is due already', () => {
    const task = taskOf();
    expect(expedite(task, NOW)).toEqual({ result: 'expedited', task });
  });

  it('makes an arrival due whose worker was lost', () => {
    const task = leased({ arrived: true, visibleAtMs: NOW - 1, dueAtMs: NOW + HOUR });
    expect(expedite(task, NOW)).toEqual({
      result: 'expedited',
      task: { ...task, dueAtMs: NOW },
    });
  });
});

describe('hindrance', () => {
  const limits = { maxLostLeases: 3, mostAttempts: 4 };

  it('is none for a task that is due, up to the last of everything', () => {
    expect(hindrance(leased(), NOW, limits)).toBeUndefined();
    const last = leased({ attempt: 3, claims: 3, expiresAtMs: NOW + 1, dueAtMs: NOW });
    expect(hindrance(last, NOW, limits)).toBeUndefined();
  });

  // In the order of their weight: each also has what follows.
  it.each([
    ['CANCELLED', { cancelling: true }],
    ['TOO_FAR', { verdict: 'TOO_FAR' }],
    ['EXHAUSTED', { attempt: 4 }],
    ['EXPIRED', { expiresAtMs: NOW }],
    ['WORKER_LOST', { claims: 4 }],
    ['NOT_DUE', { dueAtMs: NOW + 1 }],
  ] as const)('is %s before all that weighs less', (expected, changes) => {
    const order: Partial<Task>[] = [
      { cancelling: true },
      { verdict: 'TOO_FAR' },
      { attempt: 4 },
      { expiresAtMs: NOW },
      { claims: 4 },
      { dueAtMs: NOW + 1 },
    ];
    const key = Object.keys(changes)[0]!;
    const from = order.findIndex((one) => key in one);
    const these = Object.assign({}, ...order.slice(from)) as Partial<Task>;
    expect(hindrance(leased(changes), NOW, limits)).toBe(expected);
    expect(hindrance(leased(these), NOW, limits)).toBe(expected);
  });
});

describe('reasonOf', () => {
  it.each<[GiveUp['reason'], Reason]>([
    ['EXHAUSTED', 'EXHAUSTED'],
    ['PERMANENT', 'PERMANENT'],
    ['RETRY_AFTER_TOO_LONG', 'RETRY_AFTER_TOO_LONG'],
    ['TOO_MANY_UNCOUNTED', 'TOO_MANY_UNCOUNTED'],
    ['DEADLINE', 'EXPIRED'],
    ['BUDGET', 'GAVE_UP'],
    ['CIRCUIT_OPEN', 'GAVE_UP'],
    ['ABORTED', 'GAVE_UP'],
    ['BEFORE_RETRY_FAILED', 'GAVE_UP'],
  ])('of %s is %s', (reason, expected) => {
    const decision: GiveUp = {
      action: 'giveUp',
      attempt: 1,
      maxAttempts: 1,
      failure: unreachable,
      reason,
    };
    expect(reasonOf(decision)).toBe(expected);
  });
});
