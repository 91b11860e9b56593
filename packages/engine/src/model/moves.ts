/** The legal moves of a task. Pure: every store applies these, by calling them or by a statement that does the same. */
import {
  decide,
  type Decided,
  type DefinedPolicy,
  type Facts,
  type Failure,
  type GiveUp,
} from 'redrive';
import { itemOf } from './item.ts';
import type { NewItem } from '../ports/inbox.ts';
import type { NewOutboxMessage, Settled, Settlement } from '../ports/schedule.ts';
import type { AttemptRecord, Due, NewTask, Reason, Task } from './task.ts';

/** What a move writes, all in one commit, and what it answers. Nothing but the answer: nothing changes. */
export interface Change<T> {
  result: T;
  task?: Task | NewTask;
  /** A new open item for this task. */
  item?: NewItem;
  /** One more occurrence of the open item of this task. Its failure stays the one that its group is of. */
  occurrence?: { taskId: number };
  outbox?: NewOutboxMessage;
  /** An execution of the task that is written; a new task carries its own. */
  record?: AttemptRecord;
  /** What a policy decided on the way, for the audit trail. No store looks at it. */
  decided?: ArrivalDecision;
}

export interface ArrivalDecision extends Decided {
  /** The wait that its producer asked for instead. */
  waitMs?: number;
}

/** Something that came in: fresh work, or an execution that failed elsewhere. */
export interface Arrival {
  type: 'submit' | 'failure';
  /** As it would be stored if it were new; for a failure `attempt` counts the execution that failed. */
  task: NewTask;
  /** For a failure: the policy that decides, with the task's own number of attempts. */
  policy: DefinedPolicy;
  /** The count and this generation came back from us: an old count is an old failure. `present`: whatever generation it is. */
  generation?: number | 'present';
  /** The id that it has where a task of its own id has another payload: it is another message then. */
  otherId?: string;
  /** Refused where the task of its id has another payload: a key that was used twice must not lose a message. */
  onConflict?: 'reject';
  /** It must not be retried, whatever the policy says. */
  verdict?: Reason;
  /** Builds the outbox message of an item; undefined: nobody is told of this item. */
  review?: (task: Task | NewTask, item: NewItem) => NewOutboxMessage | undefined;
}

/** `accepted`: stored or re-armed. `duplicate`: known, nothing to do. `failed`: straight to the inbox. */
export type Accepted = 'accepted' | 'duplicate' | 'failed';

/** Whether an arrival is another message than the task that has its id. */
export function isOther({ otherId, task: came }: Arrival, task: Task): boolean {
  return otherId !== undefined && Buffer.compare(came.payload, task.payload) !== 0;
}

/** Whether an arrival uses the key of another message. What an operator has changed or erased cannot be compared. */
export function isConflict({ onConflict, task: came }: Arrival, task: Task): boolean {
  if (onConflict === undefined || task.edited !== undefined || task.payload.length === 0) {
    return false;
  }
  return Buffer.compare(came.payload, task.payload) !== 0;
}

/** What becomes of an arrival, given the task that is already there. */
export function accept(
  arrival: Arrival,
  task: Task | undefined,
  nowMs: number,
  seed: number,
): Change<Accepted> {
  if (!task) return placeNew(arrival, nowMs, seed);
  // This very arrival is written already: only the answer was lost.
  if (arrival.task.arrival !== undefined && arrival.task.arrival === task.arrival) {
    return { result: task.status === 'failed' ? 'failed' : 'accepted' };
  }
  // Work that was submitted is accepted once, whatever became of it.
  if (arrival.type === 'submit' || isStale(arrival, task)) return { result: 'duplicate' };
  const failure = arrival.task.failure ?? unknownFailure;
  switch (task.status) {
    case 'pending':
      // One failure is known already, or it is on its way to the inbox: another changes nothing.
      if (task.arrived || task.verdict) return { result: 'duplicate', task: { ...task, failure } };
      if (task.lease !== undefined) return arriveInDelivery(arrival, task, nowMs, seed);
      // A count of ours that is ahead: an earlier publish went out after all, though nobody confirmed it.
      if (arrival.generation !== undefined)
        return rearm(arrival, task, nowMs, seed, task.visibleAtMs);
      // Waiting: a wait is never shortened, only the newer error is kept.
      return { result: 'duplicate', task: { ...task, failure } };
    case 'retried':
    case 'done':
      return rearm(arrival, task, nowMs, seed, 0);
    case 'failed': {
      const { attempt, arrival: token } = arrival.task;
      // A criterion may be asked often about one entity: its failed evaluations are counted, not kept one by one.
      const kept = isEvaluation(arrival) ? {} : { record: { attempt, failure, durationMs: 0 } };
      // Known from now on: where only the answer is lost, it is not counted again.
      const met: Task = token === undefined ? task : { ...task, arrival: token };
      return { result: 'duplicate', task: met, occurrence: { taskId: task.id }, ...kept };
    }
    case 'cancelled': {
      const reason = isEvaluation(arrival) ? 'EVALUATION_FAILED' : 'CAME_BACK';
      const item = itemOf(reason, failure, task.lane);
      return fail(arrival, carriedOn(arrival, task, nowMs), item, nowMs);
    }
  }
}

/** What ends a lease. */
export function settle(task: Task | undefined, by: Settlement, nowMs: number): Change<Settled> {
  if (!task || task.lease !== by.lease || task.status !== 'pending') return { result: 'lost' };
  const { lease: _, ...rest } = task;
  const free: Task = { ...rest, claims: 0, arrived: false };
  const over: Task = { ...without(free, 'verdict'), finishedAtMs: nowMs, cancelling: false };
  const record = 'record' in by && by.record ? { record: by.record } : {};
  // The delivery did reach its destination where a failure arrived: it failed there.
  const hasFailed = task.arrived || by.to === 'pending' || by.to === 'failed';
  if (by.to === 'cancelled' || (task.cancelling && hasFailed)) {
    const result = by.to === 'cancelled' ? 'settled' : 'cancelled';
    return { result, task: { ...over, status: 'cancelled' }, ...record };
  }
  if (task.arrived) {
    return { result: 'rearmed', task: { ...free, visibleAtMs: task.dueAtMs }, ...record };
  }
  switch (by.to) {
    case 'done':
    case 'retried':
      return { result: 'settled', task: { ...over, status: by.to } };
    case 'failed': {
      const failed: Task = {
        ...over,
        status: 'failed',
        attempt: by.attempt,
        failure: by.item.failure,
      };
      const outbox = by.outbox ? { outbox: by.outbox } : {};
      return { result: 'settled', task: failed, item: by.item, ...outbox, ...record };
    }
    case 'pending':
      return { result: 'settled', task: waitingAgain(free, by, nowMs), ...record };
  }
}

/** Takes effect at once where nothing is under way, else when the delivery fails. */
export function cancel(
  task: Task | undefined,
  nowMs: number,
): Change<'cancelled' | 'cancelling' | 'over' | 'unknown'> {
  if (!task) return { result: 'unknown' };
  if (task.status !== 'pending')
    return { result: task.status === 'cancelled' ? 'cancelled' : 'over' };
  if (isInDelivery(task, nowMs))
    return { result: 'cancelling', task: { ...task, cancelling: true } };
  const over = {
    ...without(task, 'lease', 'verdict'),
    cancelling: false,
    arrived: false,
    claims: 0,
  };
  return { result: 'cancelled', task: { ...over, status: 'cancelled', finishedAtMs: nowMs } };
}

/** Somebody reports that what a broker took over has worked. */
export function succeed(
  task: Task | undefined,
  nowMs: number,
): Change<'done' | 'pending' | 'over' | 'unknown'> {
  if (!task) return { result: 'unknown' };
  if (task.status === 'done') return { result: 'done' };
  if (task.status !== 'retried') return { result: task.status === 'pending' ? 'pending' : 'over' };
  return { result: 'done', task: { ...task, status: 'done', finishedAtMs: nowMs } };
}

/** Makes a waiting task due now. */
export function expedite(
  task: Task | undefined,
  nowMs: number,
): Change<'expedited' | 'in_delivery' | 'over' | 'unknown'> {
  if (!task) return { result: 'unknown' };
  if (task.status !== 'pending') return { result: 'over' };
  if (isInDelivery(task, nowMs)) return { result: 'in_delivery' };
  // Not past what is there: an expired lease stays where it is, and is due already.
  const visibleAtMs = Math.min(task.visibleAtMs, nowMs);
  return {
    result: 'expedited',
    task: { ...task, dueAtMs: Math.min(task.dueAtMs, nowMs), visibleAtMs },
  };
}

/** Why a claimed task must be settled without a delivery; undefined: deliver it. */
export function hindrance(
  task: Task,
  nowMs: number,
  limits: { maxLostLeases: number; mostAttempts: number },
): Reason | 'CANCELLED' | 'NOT_DUE' | undefined {
  if (task.cancelling) return 'CANCELLED';
  if (task.verdict) return task.verdict;
  if (task.attempt >= limits.mostAttempts) return 'EXHAUSTED';
  if (task.expiresAtMs !== undefined && task.expiresAtMs <= nowMs) return 'EXPIRED';
  if (task.claims > limits.maxLostLeases) return 'WORKER_LOST';
  // An arrival gave it a new due time while its worker was lost.
  if (task.dueAtMs > nowMs) return 'NOT_DUE';
  return undefined;
}

/** Why a decision to give up puts a task into the inbox. */
export function reasonOf(decision: GiveUp): Reason {
  switch (decision.reason) {
    case 'EXHAUSTED':
    case 'PERMANENT':
    case 'RETRY_AFTER_TOO_LONG':
    case 'TOO_MANY_UNCOUNTED':
      return decision.reason;
    case 'DEADLINE':
      return 'EXPIRED';
    case 'BUDGET':
    case 'CIRCUIT_OPEN':
    case 'BULKHEAD_FULL':
    case 'ABORTED':
    case 'BEFORE_RETRY_FAILED':
      return 'GAVE_UP';
  }
}

function isEvaluation({ verdict }: Arrival): boolean {
  return verdict === 'EVALUATION_FAILED';
}

const unknownFailure: Failure = Object.freeze({ class: 'unknown' });

function isInDelivery(task: Task, nowMs: number): boolean {
  return task.lease !== undefined && task.visibleAtMs > nowMs;
}

/** A failure of an earlier generation, or one that our own count shows to be counted already. */
function isStale({ generation, task: came }: Arrival, task: Task): boolean {
  if (generation === undefined) return false;
  const of = generation === 'present' ? task.generation : generation;
  return of < task.generation || (of === task.generation && came.attempt <= task.attempt);
}

/** The task with what arrived: the larger count wins, so that a producer that always sends 0 still exhausts. */
function carriedOn({ task: came }: Arrival, task: Task, nowMs: number): Task {
  return {
    ...without(task, 'verdict', 'finishedAtMs'),
    payload: came.payload,
    ...(came.context ? { context: came.context } : {}),
    failure: came.failure ?? unknownFailure,
    attempt: Math.max(came.attempt, task.attempt + 1),
    maxAttempts: came.maxAttempts,
    uncounted: 0,
    claims: 0,
    firstAtMs: task.firstAtMs ?? nowMs,
    ...(came.arrival === undefined ? {} : { arrival: came.arrival }),
  };
}

function placeNew(arrival: Arrival, nowMs: number, seed: number): Change<Accepted> {
  const { task } = arrival;
  if (arrival.type === 'submit') return { result: 'accepted', task };
  const failure = task.failure ?? unknownFailure;
  const record = { attempt: task.attempt, failure, durationMs: 0 };
  const { verdict, ...decided } = judgeArrival(arrival, task, nowMs, nowMs, seed);
  if ('reason' in verdict) {
    const failed: NewTask = { ...task, failure, status: 'failed', record };
    const item = itemOf(verdict.reason, failure, task.lane);
    return { ...fail(arrival, failed, item, nowMs), ...decided };
  }
  return { result: 'accepted', task: { ...task, failure, record, ...verdict }, ...decided };
}

/** Pending once more, with what arrived. */
function rearm(
  arrival: Arrival,
  before: Task,
  nowMs: number,
  seed: number,
  notBeforeMs: number,
): Change<Accepted> {
  const task: Task = {
    ...without(carriedOn(arrival, before, nowMs), 'lease'),
    status: 'pending',
    // Its line says when it is its turn.
    blocked: before.orderingKey !== undefined,
  };
  const { verdict, ...decided } = judgeArrival(arrival, task, nowMs, task.firstAtMs ?? nowMs, seed);
  if ('reason' in verdict) {
    const item = itemOf(verdict.reason, task.failure ?? unknownFailure, task.lane);
    return { ...fail(arrival, task, item, nowMs), ...decided };
  }
  const dueAtMs = Math.max(dueAt(verdict.due, nowMs), notBeforeMs);
  return {
    result: 'accepted',
    task: { ...task, dueAtMs, visibleAtMs: dueAtMs, delayMs: verdict.delayMs },
    record: recordOf(task),
    ...decided,
  };
}

/** The lease stays: the delivery that it covers may still be under way, and its settle applies this. */
function arriveInDelivery(
  arrival: Arrival,
  before: Task,
  nowMs: number,
  seed: number,
): Change<Accepted> {
  const task: Task = { ...carriedOn(arrival, before, nowMs), arrived: true };
  const { verdict, ...decided } = judgeArrival(arrival, task, nowMs, task.firstAtMs ?? nowMs, seed);
  const placed: Task =
    'reason' in verdict
      ? { ...task, verdict: verdict.reason, dueAtMs: nowMs }
      : { ...task, dueAtMs: dueAt(verdict.due, nowMs), delayMs: verdict.delayMs };
  return { result: 'accepted', task: placed, record: recordOf(task), ...decided };
}

type Verdict = { reason: Reason } | { due: Due; delayMs: number };

function judgeArrival(
  arrival: Arrival,
  task: Task | NewTask,
  nowMs: number,
  firstAtMs: number,
  seed: number,
): { verdict: Verdict; decided?: ArrivalDecision } {
  if (arrival.verdict) return { verdict: { reason: arrival.verdict } };
  if (task.trial) return { verdict: { reason: 'EXHAUSTED' } };
  const { policy } = arrival;
  const facts: Facts = {
    attempt: task.attempt,
    failure: task.failure ?? unknownFailure,
    seed,
    key: task.messageId,
    previousMs: task.delayMs,
    elapsedMs: nowMs - firstAtMs,
    ...(task.expiresAtMs === undefined ? {} : { remainingMs: task.expiresAtMs - nowMs }),
  };
  const decision = decide(policy, facts);
  const decided = { policy, facts, decision };
  if (decision.action === 'giveUp') return { verdict: { reason: reasonOf(decision) }, decided };
  const { due } = arrival.task;
  const { delayMs } = decision;
  // A producer's own due time in the future is honoured; past or absent, it is computed.
  if ('atMs' in due && due.atMs > nowMs) {
    return { verdict: { due, delayMs }, decided: { ...decided, waitMs: due.atMs - nowMs } };
  }
  return { verdict: { due: { inMs: delayMs }, delayMs }, decided };
}

function waitingAgain(task: Task, by: Extract<Settlement, { to: 'pending' }>, nowMs: number): Task {
  const { attempt, uncounted, claims, record } = by;
  const dueAtMs = by.reschedule ? nowMs + by.delayMs : task.dueAtMs;
  return {
    ...task,
    attempt,
    uncounted,
    claims,
    dueAtMs,
    visibleAtMs: dueAtMs,
    ...(by.reschedule ? { delayMs: by.delayMs } : {}),
    ...(record
      ? { failure: record.failure, firstAtMs: task.firstAtMs ?? nowMs - record.durationMs }
      : {}),
  };
}

/** Into the inbox, straight from an arrival. */
function fail(
  arrival: Arrival,
  task: Task | NewTask,
  item: NewItem,
  nowMs: number,
): Change<Accepted> {
  const failed = 'id' in task ? { ...without(task, 'lease'), finishedAtMs: nowMs } : task;
  const record = 'id' in task ? { record: recordOf(task) } : {};
  const outbox = arrival.review?.(task, item);
  const told = outbox ? { outbox } : {};
  return { result: 'failed', task: { ...failed, status: 'failed' }, item, ...record, ...told };
}

function recordOf({ attempt, failure = unknownFailure }: Task): AttemptRecord {
  return { attempt, failure, durationMs: 0 };
}

function dueAt(due: Due, nowMs: number): number {
  return 'atMs' in due ? due.atMs : nowMs + due.inMs;
}

function without<K extends 'lease' | 'verdict' | 'finishedAtMs'>(task: Task, ...names: K[]): Task {
  const copy = { ...task };
  for (const name of names) delete copy[name];
  return copy;
}
