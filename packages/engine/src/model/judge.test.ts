import { definePolicy, type Failure } from 'redrive';
import { describe, expect, it } from 'vitest';
import { type Circumstances, judge, refuse, release } from './judge.ts';
import type { Outcome } from '../ports/delivery.ts';
import type { Settlement } from '../ports/schedule.ts';
import { newTask, outboxMessage } from '../testing/fixtures.ts';
import type { Reason, Task } from './task.ts';

const NOW = 1_700_000_000_000;
const policy = definePolicy({ maxAttempts: 3, base: 1000, cap: '1h', jitter: 'none' });
const at = { id: 5, lease: 77 };

function taskOf(changes: Partial<Task> = {}): Task {
  const { due: _, ...fresh } = newTask({ maxAttempts: 3 });
  return {
    ...fresh,
    ...at,
    claims: 1,
    dueAtMs: NOW,
    visibleAtMs: NOW,
    createdAtMs: NOW,
    ...changes,
  };
}

function by(changes: Partial<Circumstances> = {}): Circumstances {
  return {
    policy,
    seed: 0,
    nowMs: NOW,
    durationMs: 12,
    laneOpen: false,
    ...changes,
  };
}

function failed(failure: Failure, answer?: string): Outcome {
  return { type: 'failed', failure, ...(answer === undefined ? {} : { answer }) };
}

const down: Failure = { class: 'transient', code: 'ECONNRESET' };
const wrong: Failure = { class: 'business', code: 'HTTP_422', status: 422 };

describe('an outcome that is one', () => {
  it('done settles as done, and the lane works', () => {
    expect(judge(taskOf(), { type: 'done' }, by())).toEqual({
      settlement: { ...at, to: 'done' },
      lane: 'worked',
    });
  });

  it('taken settles as retried, and the lane works', () => {
    expect(judge(taskOf(), { type: 'taken' }, by())).toEqual({
      settlement: { ...at, to: 'retried' },
      lane: 'worked',
    });
  });

  it.each<['unroutable' | 'invalid' | 'giveUp', Reason, string]>([
    ['unroutable', 'UNROUTABLE', 'neutral'],
    ['invalid', 'INVALID_PAYLOAD', 'worked'],
    ['giveUp', 'GAVE_UP', 'worked'],
  ])('%s goes to the inbox as %s', (type, reason, lane) => {
    expect(judge(taskOf({ attempt: 1 }), { type, failure: wrong }, by())).toMatchObject({
      settlement: {
        ...at,
        to: 'failed',
        attempt: 2,
        item: { reason, failure: wrong },
        record: { attempt: 2, failure: wrong, durationMs: 12 },
      },
      lane,
      reason,
    });
  });

  it('brings a review message into the same commit, with the task as it fails', () => {
    const review: Circumstances['review'] = (task, item) =>
      outboxMessage(`${task.messageId} ${task.attempt} ${item.reason}`);
    const task = taskOf({ attempt: 1 });
    const { settlement } = judge(task, { type: 'giveUp', failure: wrong }, by({ review }));
    expect(settlement).toMatchObject({ outbox: outboxMessage(`${task.messageId} 2 GAVE_UP`) });
  });
});

describe('a failure', () => {
  it('is decided by the policy, and its facts are handed on', () => {
    const task = taskOf({ attempt: 1, uncounted: 2, delayMs: 1000, firstAtMs: NOW - 50 });
    const judgement = judge(task, failed(down, 'gone'), by({ seed: 4 }));
    expect(judgement).toEqual({
      settlement: {
        ...at,
        to: 'pending',
        delayMs: 2000,
        attempt: 2,
        uncounted: 0,
        claims: 0,
        reschedule: true,
        record: { attempt: 2, failure: down, durationMs: 12, answer: 'gone' },
      },
      lane: 'failed',
      decided: {
        policy,
        facts: {
          attempt: 2,
          failure: down,
          seed: 4,
          key: task.messageId,
          previousMs: 1000,
          uncounted: 2,
          elapsedMs: 50,
        },
        decision: expect.objectContaining({ action: 'retry', delayMs: 2000 }),
      },
    });
  });

  it.each<[Reason, Partial<Task>, Failure]>([
    ['EXHAUSTED', { attempt: 2 }, down],
    ['PERMANENT', {}, wrong],
    ['EXPIRED', { expiresAtMs: NOW + 1000 }, down],
    ['RETRY_AFTER_TOO_LONG', {}, { ...down, retryAfterMs: 200_000_000 }],
    ['TOO_MANY_UNCOUNTED', { uncounted: 10 }, { ...down, counted: false }],
  ])('goes to the inbox as %s when the policy says so', (reason, changes, failure) => {
    const { settlement, reason: said, decided } = judge(taskOf(changes), failed(failure), by());
    expect(settlement).toMatchObject({ to: 'failed', item: { reason }, record: { failure } });
    expect(said).toBe(reason);
    expect(decided?.decision.action).toBe('giveUp');
  });

  it('measures the deadline from the first execution, this one if it is the first', () => {
    const limited = definePolicy({ maxAttempts: 9, base: 1, jitter: 'none', deadline: 1000 });
    const outcome = (firstAtMs: number | undefined, durationMs: number) =>
      judge(
        taskOf(firstAtMs === undefined ? {} : { firstAtMs }),
        failed(down),
        by({ policy: limited, durationMs }),
      ).settlement.to;
    expect(outcome(undefined, 900)).toBe('pending');
    expect(outcome(undefined, 1000)).toBe('failed');
    expect(outcome(NOW - 900, 1)).toBe('pending');
    expect(outcome(NOW - 1000, 1)).toBe('failed');
  });

  it('that does not count keeps its number, and its own count grows', () => {
    const { settlement } = judge(
      taskOf({ attempt: 1, uncounted: 2 }),
      failed({ ...down, counted: false }),
      by(),
    );
    expect(settlement).toMatchObject({ to: 'pending', attempt: 1, uncounted: 3 });
  });

  it.each<[string, Failure, string]>([
    ['transient', down, 'failed'],
    ['HTTP 503', { class: 'transient', status: 503 }, 'failed'],
    ['HTTP 429: well, and busy', { class: 'transient', status: 429 }, 'neutral'],
    ['business', wrong, 'worked'],
    ['technical', { class: 'technical' }, 'worked'],
    ['technical, and never got there', { class: 'technical', notExecuted: true }, 'neutral'],
    ['unknown', { class: 'unknown' }, 'neutral'],
    ['transient, and said not to count', { ...down, counted: false }, 'neutral'],
  ])('that is %s says of the lane: %s', (_, failure, lane) => {
    expect(judge(taskOf(), failed(failure), by()).lane).toBe(lane);
  });

  it('of a lane that is known to be down burns no attempt, up to maxUncounted', () => {
    const open = by({ laneOpen: true });
    const { settlement } = judge(taskOf({ attempt: 2 }), failed(down), open);
    expect(settlement).toMatchObject({ to: 'pending', attempt: 2, uncounted: 1 });
    const last = judge(taskOf({ attempt: 2, uncounted: 10 }), failed(down), open);
    expect(last.reason).toBe('TOO_MANY_UNCOUNTED');
    // A failure of its own is one, lane or no lane.
    expect(judge(taskOf(), failed(wrong), open).reason).toBe('PERMANENT');
  });

  it('of a probe consumes nothing and goes to the back by its backoff', () => {
    const probe = by({ probing: { closedForMs: 0 } });
    const { settlement, lane } = judge(taskOf({ attempt: 2, uncounted: 10 }), failed(down), probe);
    expect(lane).toBe('failed');
    expect(settlement).toMatchObject({
      to: 'pending',
      attempt: 2,
      uncounted: 10,
      reschedule: true,
      delayMs: 3_600_000,
      record: { attempt: 3, failure: down },
    });
    // A probe that shows that the lane works counts as any other.
    expect(judge(taskOf(), failed(wrong), probe).reason).toBe('PERMANENT');
  });
});

describe('a refusal by the lane', () => {
  it('burns nothing, waits longer each time, and is never given up', () => {
    const outcome: Outcome = { type: 'refused', failure: down };
    const first = judge(taskOf(), outcome, by());
    expect(first).toEqual({
      settlement: {
        ...at,
        to: 'pending',
        delayMs: 1000,
        attempt: 0,
        uncounted: 1,
        claims: 0,
        reschedule: true,
      },
      lane: 'failed',
    });
    const later = judge(taskOf({ uncounted: 2 }), outcome, by());
    expect(later.settlement).toMatchObject({ delayMs: 4000, uncounted: 3 });
    const much = judge(taskOf({ uncounted: 1000 }), outcome, by());
    expect(much.settlement).toMatchObject({ to: 'pending', delayMs: 3_600_000 });
  });

  it('waits as long as its jitter says, the same for the same task', () => {
    const jittered = by({ policy: definePolicy({ base: '1h', jitter: 'full' }) });
    const delay = (task: Task) => {
      const { settlement } = judge(task, { type: 'refused', failure: down }, jittered);
      return (settlement as Extract<Settlement, { to: 'pending' }>).delayMs;
    };
    const task = taskOf();
    expect(delay(task)).toBe(delay(task));
    expect(delay(task)).not.toBe(delay(taskOf()));
  });
});

describe('work that never began', () => {
  it('keeps the count of its lost leases where its key is held by somebody else', () => {
    const held: Outcome = { type: 'held', delayMs: 700 };
    expect(judge(taskOf({ attempt: 2, uncounted: 9, claims: 3 }), held, by())).toEqual({
      settlement: {
        ...at,
        to: 'pending',
        delayMs: 700,
        attempt: 2,
        uncounted: 10,
        claims: 2,
        reschedule: true,
      },
      lane: 'neutral',
    });
    expect(judge(taskOf({ uncounted: 10 }), held, by())).toMatchObject({
      settlement: { to: 'failed', item: { reason: 'TOO_MANY_UNCOUNTED' } },
      lane: 'neutral',
    });
  });

  it('keeps the count of its lost leases where the store of keys is away', () => {
    const outcome: Outcome = { type: 'refused', failure: down, neverStarted: true };
    expect(judge(taskOf({ claims: 3 }), outcome, by())).toMatchObject({
      settlement: { to: 'pending', attempt: 0, uncounted: 1, claims: 2 },
      lane: 'failed',
    });
  });
});

describe("a handler's own wish", () => {
  it('retryIn counts an attempt and is due after exactly that time', () => {
    const wish: Outcome = { type: 'retryIn', delayMs: 123, failure: wrong };
    expect(judge(taskOf(), wish, by())).toMatchObject({
      settlement: { to: 'pending', delayMs: 123, attempt: 1, record: { failure: wrong } },
      lane: 'worked',
    });
    expect(judge(taskOf({ attempt: 2 }), wish, by()).reason).toBe('EXHAUSTED');
  });

  it('snooze counts no attempt, and not for ever', () => {
    const wish: Outcome = { type: 'snooze', delayMs: 123 };
    expect(judge(taskOf({ attempt: 2, uncounted: 9 }), wish, by())).toEqual({
      settlement: {
        ...at,
        to: 'pending',
        delayMs: 123,
        attempt: 2,
        uncounted: 10,
        claims: 0,
        reschedule: true,
      },
      lane: 'worked',
    });
    expect(judge(taskOf({ uncounted: 10 }), wish, by())).toMatchObject({
      settlement: {
        to: 'failed',
        item: { reason: 'TOO_MANY_UNCOUNTED', failure: { message: 'Snoozed 10 times.' } },
      },
      lane: 'worked',
    });
  });
});

describe('refuse', () => {
  it('cancels what was cancelled', () => {
    expect(refuse(taskOf(), 'CANCELLED', {})).toEqual({ ...at, to: 'cancelled' });
  });

  it('takes the last failure into the inbox, and counts nothing', () => {
    const settlement = refuse(taskOf({ attempt: 2, failure: wrong }), 'EXPIRED', {});
    expect(settlement).toMatchObject({
      ...at,
      to: 'failed',
      attempt: 2,
      item: { reason: 'EXPIRED', failure: wrong },
    });
    expect(settlement).not.toHaveProperty('record');
    expect(refuse(taskOf(), 'EXPIRED', {})).toMatchObject({
      item: { failure: { class: 'unknown' } },
    });
  });

  it('says how many workers were lost', () => {
    const review = () => outboxMessage('lost');
    expect(refuse(taskOf({ claims: 4, failure: wrong }), 'WORKER_LOST', { review })).toMatchObject({
      item: {
        reason: 'WORKER_LOST',
        failure: {
          class: 'technical',
          code: 'WORKER_LOST',
          message: '3 workers in a row took it and never came back.',
        },
      },
      outbox: outboxMessage('lost'),
    });
  });
});

it('release gives a task back as if it had never been claimed', () => {
  expect(release(taskOf({ attempt: 1, uncounted: 2, claims: 3 }))).toEqual({
    ...at,
    to: 'pending',
    delayMs: 0,
    attempt: 1,
    uncounted: 2,
    claims: 2,
    reschedule: false,
  });
});

it('a delivery that gives up may say for which reason, and its review may tell nobody', () => {
  const outcome: Outcome = { type: 'giveUp', failure: wrong, reason: 'EVALUATION_FAILED' };
  const { settlement, lane } = judge(taskOf(), outcome, by({ review: () => undefined }));
  expect(settlement).toMatchObject({ to: 'failed', item: { reason: 'EVALUATION_FAILED' } });
  expect(settlement).not.toHaveProperty('outbox');
  expect(lane).toBe('worked');
});
