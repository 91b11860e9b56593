/** What follows from the outcome of a delivery. Pure: the settlement, the decision behind it, and what it says of the lane. */
import {
  decide,
  type Decided,
  delayFor,
  type DefinedPolicy,
  type Facts,
  type Failure,
} from 'redrive';
import { unitRandom } from 'redrive/internal';
import { itemOf } from './item.ts';
import { leaseOf } from './line.ts';
import { reasonOf } from './moves.ts';
import type { Outcome } from '../ports/delivery.ts';
import type { NewItem } from '../ports/inbox.ts';
import type { NewOutboxMessage, Settlement } from '../ports/schedule.ts';
import type { AttemptRecord, Reason, Task } from './task.ts';

export interface Circumstances {
  policy: DefinedPolicy;
  seed: number;
  /** The store's time. */
  nowMs: number;
  durationMs: number;
  /** The lane's breaker opened while this delivery was under way. */
  laneOpen: boolean;
  /** This delivery was to find out whether the lane works again, and if not, the lane is closed for so long. */
  probing?: { closedForMs: number };
  review?: (task: Task, item: NewItem) => NewOutboxMessage | undefined;
}

export interface Judgement {
  settlement: Settlement;
  /** `worked`: the destination is there. `failed`: it is in trouble. `neutral`: nothing is known. */
  lane: 'worked' | 'failed' | 'neutral';
  /** With its facts, where something was decided. */
  decided?: Decided;
  /** Why it is in the inbox now. */
  reason?: Reason;
}

export function judge(task: Task, outcome: Outcome, by: Circumstances): Judgement {
  const at = leaseOf(task);
  switch (outcome.type) {
    case 'done':
      return { settlement: { ...at, to: 'done' }, lane: 'worked' };
    case 'taken':
      return { settlement: { ...at, to: 'retried' }, lane: 'worked' };
    case 'unroutable':
      return toInbox(task, 'UNROUTABLE', outcome.failure, by, 'neutral');
    case 'invalid':
      return toInbox(task, 'INVALID_PAYLOAD', outcome.failure, by, 'worked');
    case 'oversized':
      return toInbox(task, 'HEADERS_TOO_LARGE', outcome.failure, by, 'neutral');
    case 'giveUp':
      return toInbox(task, outcome.reason ?? 'GAVE_UP', outcome.failure, by, 'worked');
    case 'refused':
      // Nothing ran, so nothing is counted: the breaker paces the lane. The count only lengthens the pause.
      return { settlement: refused(task, outcome.neverStarted, by), lane: 'failed' };
    case 'lost':
      return lost(task, outcome.failure, by);
    case 'away':
      return { settlement: again(task, task.uncounted), lane: 'neutral' };
    case 'impossible':
      return toInbox(task, 'PERMANENT', outcome.failure, by, 'neutral');
    case 'snooze': {
      if (task.uncounted >= by.policy.maxUncounted) {
        const failure: Failure = {
          class: 'business',
          code: 'SNOOZED',
          message: `Snoozed ${task.uncounted} times.`,
        };
        return toInbox(task, 'TOO_MANY_UNCOUNTED', failure, by, 'worked');
      }
      return { settlement: uncounted(task, outcome.delayMs, task.uncounted + 1), lane: 'worked' };
    }
    case 'held':
      return held(task, outcome.delayMs, by);
    case 'retryIn':
      return failed(task, outcome.failure, by, outcome.delayMs, undefined, 'worked');
    case 'failed':
      return failed(
        task,
        outcome.failure,
        by,
        undefined,
        outcome.answer,
        laneSays(outcome.failure),
      );
  }
}

/** Settles a claimed task that must not be delivered. */
export function refuse(
  task: Task,
  reason: Reason | 'CANCELLED',
  by: Pick<Circumstances, 'review'>,
): Settlement {
  const at = leaseOf(task);
  if (reason === 'CANCELLED') return { ...at, to: 'cancelled' };
  const failure =
    reason === 'WORKER_LOST' ? workerLost(task) : (task.failure ?? neverTried(reason));
  return inboxed(task, reason, failure, by, task.attempt);
}

/** Gives back what was claimed and never started: as if it had not been claimed. */
export function release(task: Task): Settlement {
  const { attempt, uncounted: before } = task;
  return {
    ...leaseOf(task),
    to: 'pending',
    delayMs: 0,
    attempt,
    uncounted: before,
    claims: task.claims - 1,
    reschedule: false,
  };
}

function failed(
  task: Task,
  failure: Failure,
  by: Circumstances,
  wishMs: number | undefined,
  answer: string | undefined,
  lane: Judgement['lane'],
): Judgement {
  const attempt = task.attempt + 1;
  const record: AttemptRecord = {
    attempt,
    failure,
    durationMs: by.durationMs,
    ...(answer === undefined ? {} : { answer }),
  };
  const facts: Facts = {
    attempt,
    // An outage that is known already burns no attempts.
    failure: lane === 'failed' && by.laneOpen ? { ...failure, counted: false } : failure,
    seed: by.seed,
    key: task.messageId,
    previousMs: task.delayMs,
    uncounted: task.uncounted,
    elapsedMs: task.firstAtMs === undefined ? by.durationMs : by.nowMs - task.firstAtMs,
    ...(task.expiresAtMs === undefined ? {} : { remainingMs: task.expiresAtMs - by.nowMs }),
    ...(wishMs === undefined ? {} : { retryable: true }),
  };
  if (lane === 'failed' && by.probing) {
    // It only found out that the lane is still down.
    return { settlement: { ...uncounted(task, backoff(task, by), task.uncounted), record }, lane };
  }
  const decision = decide(by.policy, facts);
  const decided = { policy: by.policy, facts, decision };
  if (decision.action === 'giveUp') {
    return { ...toInbox(task, reasonOf(decision), failure, by, lane, record), decided };
  }
  const counted = decision.nextAttempt > attempt;
  const settlement: Settlement = {
    ...leaseOf(task),
    to: 'pending',
    delayMs: wishMs ?? decision.delayMs,
    attempt: decision.nextAttempt - 1,
    uncounted: counted ? 0 : task.uncounted + 1,
    claims: 0,
    reschedule: true,
    record,
  };
  // Where the handler chose the delay, the decision only says that an attempt was left.
  return wishMs === undefined ? { settlement, lane, decided } : { settlement, lane };
}

/** After a probe: behind all that comes until the next one, which is then another task. */
function backoff(task: Task, by: Circumstances): number {
  const attempt = task.attempt + 1 + task.uncounted;
  const closedForMs = by.probing?.closedForMs ?? 0;
  const delayMs = delayFor(by.policy, {
    attempt,
    random: unitRandom(by.seed, task.messageId, attempt),
  });
  return closedForMs + delayMs;
}

/** It goes alone next time, as soon as there is a way again; where that breaks under it too, it may be what breaks it. */
function lost(task: Task, failure: Failure, by: Circumstances): Judgement {
  const count = task.uncounted + 1;
  if (count === 1) return { settlement: again(task, count), lane: 'neutral' };
  if (count > by.policy.maxUncounted) {
    return toInbox(task, 'TOO_MANY_UNCOUNTED', failure, by, 'neutral');
  }
  return { settlement: uncounted(task, backoff(task, by), count), lane: 'neutral' };
}

function refused(task: Task, neverStarted: true | undefined, by: Circumstances): Settlement {
  const later = uncounted(task, backoff(task, by), task.uncounted + 1);
  return neverStarted ? unstarted(task, later) : later;
}

/** Its lost leases stay counted: what kills its workers must not do so for ever. */
function unstarted(task: Task, later: Extract<Settlement, { to: 'pending' }>): Settlement {
  return { ...later, claims: task.claims - 1 };
}

/** Somebody else runs it, or did until a moment ago. */
function held(task: Task, delayMs: number, by: Circumstances): Judgement {
  if (task.uncounted >= by.policy.maxUncounted) {
    const failure: Failure = {
      class: 'technical',
      code: 'KEY_HELD',
      message: `Its idempotency key was held by somebody else ${task.uncounted + 1} times.`,
    };
    return toInbox(task, 'TOO_MANY_UNCOUNTED', failure, by, 'neutral');
  }
  const later = uncounted(task, delayMs, task.uncounted + 1);
  return { settlement: unstarted(task, later), lane: 'neutral' };
}

/** Due as it was. */
function again(task: Task, count: number): Settlement {
  const { attempt } = task;
  const same = { delayMs: 0, attempt, uncounted: count, claims: 0, reschedule: false };
  return { ...leaseOf(task), to: 'pending', ...same };
}

function uncounted(
  task: Task,
  delayMs: number,
  count: number,
): Extract<Settlement, { to: 'pending' }> {
  return {
    ...leaseOf(task),
    to: 'pending',
    delayMs,
    attempt: task.attempt,
    uncounted: count,
    claims: 0,
    reschedule: true,
  };
}

function toInbox(
  task: Task,
  reason: Reason,
  failure: Failure,
  by: Circumstances,
  lane: Judgement['lane'],
  record: AttemptRecord = { attempt: task.attempt + 1, failure, durationMs: by.durationMs },
): Judgement {
  return {
    settlement: { ...inboxed(task, reason, failure, by, task.attempt + 1), record },
    lane,
    reason,
  };
}

function inboxed(
  task: Task,
  reason: Reason,
  failure: Failure,
  by: Pick<Circumstances, 'review'>,
  attempt: number,
): Extract<Settlement, { to: 'failed' }> {
  const item = itemOf(reason, failure, task.lane);
  const outbox = by.review?.({ ...task, attempt }, item);
  return { ...leaseOf(task), to: 'failed', attempt, item, ...(outbox ? { outbox } : {}) };
}

/** Only what passes by itself says that the other side is in trouble; 429 says that it is well and busy. */
function laneSays(failure: Failure): Judgement['lane'] {
  // It never got there, or is said not to count: nothing is known of the other side.
  if (failure.counted === false || failure.class === 'unknown') return 'neutral';
  if (failure.class !== 'transient') return failure.notExecuted ? 'neutral' : 'worked';
  return failure.status === 429 ? 'neutral' : 'failed';
}

/** Something to tell it from others by, where nothing has failed. */
function neverTried(reason: Reason): Failure {
  return { class: 'unknown', code: reason, message: 'It was never delivered.' };
}

function workerLost(task: Task): Failure {
  return {
    class: 'technical',
    code: 'WORKER_LOST',
    message: `${task.claims - 1} workers in a row took it and never came back.`,
  };
}
