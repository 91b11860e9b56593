/** A bulk job over items of the inbox, and its legal moves. Pure; written by compare-and-set. */
import type { Failure } from 'redrive';
import type { ActResult, Frozen, ItemFilter, JobTally } from '../ports/inbox.ts';
import type { Destination } from './task.ts';

/**
 * `running`: an instance is at it. `stopped`: it ended itself, and says why. `cancelled`: by an operator, or stopped for too long.
 * `finished`: all members are dealt with, and what was sent is no longer under way.
 */
type JobState = 'running' | 'paused' | 'stopped' | 'cancelled' | 'finished';

export interface Job {
  id: number;
  action: 'replay' | 'resolve' | 'discard';
  /** What was asked for, until its members are frozen; empty afterwards. */
  filter: ItemFilter;
  by?: string;
  /** Where replayed ones go instead. */
  to?: Destination;
  /** Sends so many a second; absent: as fast as they are worked off. */
  perSecond?: number;
  /** Sizes of the first steps, each of which must pass before the next begins. */
  canary: readonly number[];
  observeMs: number;
  /** Stops when more have come back; absent: never. */
  maxFailures?: number;
  state: JobState;
  /** Why it stopped. */
  why?: string;
  createdAtMs: number;
  finishedAtMs?: number;

  /** Freezing goes on below this item; absent: the members are fixed. */
  before?: number;
  /** Of the ids that were asked for, so many were not open. */
  ignored?: number;
  total: number;
  /** Members up to this item are dealt with. */
  cursor: number;
  /** Dealt with as asked for; somebody else was faster; not possible. */
  done: number;
  skipped: number;
  failed: number;
  /** The present step of the canary, and what was sent in it. */
  step: number;
  stepSent: number;
  /** The pace allows the next one then. */
  nextAtMs: number;
  /** What had come back when the present step began. */
  stepBack: number;
  /** Of what was under way when it was last let go on: that one of those is cancelled makes room for no other. */
  earlier: number;
  /** What operators cancelled on its way: it proves nothing. */
  cancelled: number;
  /** Under way for so long that something must hold it up, a lane that is paused perhaps: it takes no room from others. */
  parked: number;
  /** What was under way when that was looked at, and when. */
  looked?: { underway: number; atMs: number };
  /** What had come back when an operator let a stopped job go on. */
  forgiven: number;
  /** Who is at it, and until when nobody else may be. */
  owner?: { by: string; untilMs: number };
}

/** What its runner does next. */
type JobMove =
  | { do: 'freeze' }
  | { do: 'act'; limit: number; isTrial: boolean }
  /** `isLook`: for something that may happen at any time; the longer nothing does, the longer it may be. */
  | { do: 'wait'; ms: number; isLook?: true }
  | { do: 'write'; job: Job }
  | { do: 'leave' };

/** So many jobs at most that are not over, and so many of those that are. */
export const MAX_JOBS = 500;
/** So many may be under way at once: what is fresh does not queue up behind a whole inbox. */
export const WINDOW = 5000;
/** So many in one commit: more of them cost less each, and the window takes two and a half such. */
const CHUNK = 2000;
/** A chunk of a paced job: what is due in this time, so that it goes out evenly. */
const EVENLY_MS = 100;
/** What has not moved for so long stands still. */
const STILL_MS = 5000;
/** So far may the clocks of two runners differ. */
export const CLOCKS_APART_MS = 1000;
/** How often a runner looks whether something has changed. */
const LOOK_MS = 100;
/** The same, while a broker is watched. */
const OBSERVE_LOOK_MS = 1000;

type Asked = 'id' | 'action' | 'filter' | 'canary' | 'observeMs' | 'createdAtMs';

/** A job as it begins: nothing is frozen, nothing is sent. */
export function newJob(given: Pick<Job, Asked> & Partial<Job>): Job {
  return {
    state: 'running',
    total: 0,
    cursor: 0,
    done: 0,
    skipped: 0,
    failed: 0,
    step: 0,
    stepSent: 0,
    stepBack: 0,
    earlier: 0,
    nextAtMs: 0,
    cancelled: 0,
    parked: 0,
    forgiven: 0,
    ...given,
  };
}

/**
 * `tally` says how it was at `countedMs` or later, and nothing of what happened since. Whether something came about within
 * a time is therefore known only when that time was over at `countedMs`, however late the answer is.
 */
export function nextMove(job: Job, tally: JobTally, nowMs: number, countedMs: number): JobMove {
  if (job.state !== 'running') return { do: 'leave' };
  if (job.before !== undefined) return { do: 'freeze' };
  const isSent = left(job) === 0;
  if (job.action !== 'replay') {
    return isSent
      ? { do: 'write', job: finished(job, nowMs) }
      : { do: 'act', limit: CHUNK, isTrial: false };
  }
  // What came back may be deleted one day, and a cancelled task may come back.
  const { back, cancelled } = tally;
  if (back < Math.max(job.forgiven, job.stepBack) || cancelled < job.cancelled) {
    const forgiven = Math.min(job.forgiven, back);
    const known = { forgiven, stepBack: Math.min(job.stepBack, back) };
    return {
      do: 'write',
      job: { ...job, ...known, cancelled: Math.min(job.cancelled, cancelled) },
    };
  }
  if (job.maxFailures !== undefined && tally.back - job.forgiven > job.maxFailures) {
    return { do: 'write', job: stopped(job, whyOf(job, tally), nowMs) };
  }
  if (cancelled > job.cancelled) {
    const count = cancelled - job.cancelled;
    const earlier = Math.min(count, job.earlier);
    const stepSent = Math.max(0, job.stepSent - (count - earlier));
    return {
      do: 'write',
      job: { ...job, cancelled, earlier: job.earlier - earlier, stepSent },
    };
  }
  const size = job.canary[job.step];
  if (isSent || (size !== undefined && job.stepSent >= size)) {
    return afterStep(job, tally, nowMs, countedMs);
  }
  const room = WINDOW - Math.max(0, tally.underway - job.parked);
  if (room <= 0) return whileFull(job, tally, nowMs, countedMs);
  const waitMs = job.nextAtMs - nowMs;
  const paced = job.perSecond === undefined ? CHUNK : evenly(job.perSecond);
  // A longer wait than a chunk can cause is that of a clock that was set back: it must not stop the job for long.
  const isMeant = waitMs <= paceMs(job, paced) + CLOCKS_APART_MS;
  if (waitMs > 0 && isMeant) return { do: 'wait', ms: waitMs };
  const limit = Math.min(room, paced, CHUNK, size === undefined ? CHUNK : size - job.stepSent);
  return { do: 'act', limit, isTrial: size !== undefined };
}

/** Waits for room. What does not move at all is parked, so that one lane that stands still does not hold up the others. */
function whileFull(job: Job, { underway }: JobTally, nowMs: number, countedMs: number): JobMove {
  const { looked } = job;
  if (!looked || underway < looked.underway) {
    return { do: 'write', job: { ...job, looked: { underway, atMs: nowMs } } };
  }
  if (countedMs - looked.atMs < STILL_MS) return { do: 'wait', ms: LOOK_MS, isLook: true };
  const { looked: _, ...rest } = job;
  return { do: 'write', job: { ...rest, parked: underway } };
}

/** All of a step is sent: has it worked? */
function afterStep(job: Job, tally: JobTally, nowMs: number, countedMs: number): JobMove {
  const isStep = job.step < job.canary.length && job.stepSent > 0;
  if (isStep && tally.underway > 0 && tally.blocked === tally.underway) {
    return whileBlocked(job, tally, nowMs, countedMs);
  }
  if (tally.underway > 0) return { do: 'wait', ms: LOOK_MS, isLook: true };
  const isCanary = job.canary.length > 0;
  if (isCanary && tally.taken > 0) {
    // A broker only takes over. If it failed there, it comes back.
    const untilMs = (tally.takenAtMs ?? nowMs) + job.observeMs;
    const waitMs = untilMs - countedMs;
    if (waitMs > 0) return { do: 'wait', ms: Math.min(waitMs, OBSERVE_LOOK_MS) };
  }
  if (isStep && tally.back - job.stepBack >= job.stepSent) {
    return { do: 'write', job: stopped(job, whyOf(job, tally), nowMs) };
  }
  if (left(job) === 0) return { do: 'write', job: finished(job, nowMs) };
  const next = { step: job.step + 1, stepSent: 0, stepBack: tally.back };
  return { do: 'write', job: { ...job, ...next } };
}

/** Nothing of a step can move: who is ahead of it may be waiting in the inbox, for a later step of this very job. */
function whileBlocked(job: Job, { underway }: JobTally, nowMs: number, countedMs: number): JobMove {
  if (!job.looked) return { do: 'write', job: { ...job, looked: { underway, atMs: nowMs } } };
  if (countedMs - job.looked.atMs < STILL_MS) return { do: 'wait', ms: LOOK_MS, isLook: true };
  const why = 'What was sent waits behind others of its ordering key: replay those first.';
  return { do: 'write', job: stopped(job, why, nowMs) };
}

export function left({ total, done, skipped, failed }: Job): number {
  return total - done - skipped - failed;
}

export function afterFreeze(job: Job, { added, next }: Frozen): Job {
  const total = job.total + added;
  if (next !== undefined) return { ...job, total, before: next };
  const { before: _, ...rest } = job;
  // Nobody needs it any more, and an ordering key or a text in it may be personal: erase would not find it here.
  return { ...rest, total, filter: {} };
}

/** What became of these members, in the order of their items. */
export function afterAct(
  job: Job,
  ids: readonly number[],
  results: readonly ActResult[],
  nowMs: number,
): Job {
  const count = (those: readonly ActResult[]) =>
    results.filter((one) => those.includes(one)).length;
  const done = count(['done']);
  const failed = count(['unaddressed', 'conflict', 'fault']);
  // What is looked at next is another window.
  const { looked: _, ...rest } = job;
  return {
    ...rest,
    cursor: ids.at(-1) ?? job.cursor,
    done: job.done + done,
    failed: job.failed + failed,
    skipped: job.skipped + results.length - done - failed,
    stepSent: job.stepSent + done,
    nextAtMs: nowMs + paceMs(job, done),
  };
}

/** One that stopped by itself stays so: it says why. */
export function pausedJob(job: Job): Job {
  return job.state === 'running' ? { ...job, state: 'paused' } : job;
}

/** Goes on. What has come back up to now is forgiven, and whoever is first carries it out: its last runner may be gone. */
export function resumedJob(job: Job, tally: JobTally): Job {
  if (job.state === 'running') return job;
  const { why: _, finishedAtMs: __, owner: ___, ...rest } = job;
  if (job.state !== 'stopped') return { ...rest, state: 'running' };
  const { back, underway: earlier } = tally;
  // A step that was stopped has to prove itself anew.
  return { ...rest, state: 'running', forgiven: back, stepBack: back, stepSent: 0, earlier };
}

export function cancelledJob(job: Job, nowMs: number): Job {
  return { ...job, state: 'cancelled', finishedAtMs: Math.floor(nowMs) };
}

/** Whether it can still be paused, resumed or cancelled. */
export function isOver({ state }: Job): boolean {
  return state === 'finished' || state === 'cancelled';
}

function finished(job: Job, nowMs: number): Job {
  return { ...job, state: 'finished', finishedAtMs: Math.floor(nowMs) };
}

/** Members that it still had to deal with are not there. */
export function brokenJob(job: Job, nowMs: number): Job {
  return stopped(job, `${left(job)} of its members are not there any more.`, nowMs);
}

function stopped(job: Job, why: string, nowMs: number): Job {
  return { ...job, state: 'stopped', why, finishedAtMs: Math.floor(nowMs) };
}

/** Without the text of a failure: it would stay here, and in the audit trail, when the failed message is erased. */
function whyOf(job: Job, { back }: JobTally): string {
  const came = `${back - job.forgiven} of ${job.done} came back`;
  const where = job.step < job.canary.length ? ` in step ${job.step + 1}` : '';
  return `${came}${where}.`;
}

/** Why a job stopped, as it is told to an operator, with the failure of what came back last as it is known now. */
export function whyNow(why: string, failure: Failure | undefined): string {
  const text = failure?.message ?? failure?.code ?? failure?.class;
  if (text === undefined) return why;
  return `${why} The last failure: ${text.slice(0, 200).toWellFormed()}`;
}

function evenly(perSecond: number): number {
  return Math.max(1, Math.floor((perSecond * EVENLY_MS) / 1000));
}

/** For how long so many that were sent keep the next ones back. */
function paceMs({ perSecond }: Job, sent: number): number {
  return perSecond === undefined ? 0 : (sent * 1000) / perSecond;
}
