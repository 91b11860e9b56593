import { atLeast, clampRandom, delayOf } from './policy/backoff.ts';
import { type Failure, namesIn, statusText } from './failure/failure.ts';
import { type CompletePolicy, defined, type DefinedPolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import { unitRandom } from './policy/random.ts';

/** All that a decision depends on besides the policy. Plain data: written down, it can be replayed. */
export interface Facts {
  /** The 1-based number of the execution that just failed. */
  attempt: number;
  failure: Failure;
  /** The random number is derived from (seed, key, attempt): the same question, the same answer. */
  seed?: number;
  key?: string;
  /** A random number in [0, 1) instead of the derived one. */
  random?: number;
  /** The delay before this attempt, for the decorrelated jitter. */
  previousMs?: number;
  /** Failures before this one that consumed no attempt. */
  uncounted?: number;
  /** Time since the first attempt began, compared with the policy's deadline. */
  elapsedMs?: number;
  /** Time left by some other limit, a caller's or a task's. */
  remainingMs?: number;
  /** The caller's own verdict, which outranks `retryOn` and `neverOn`, but never `idempotent: false`. */
  retryable?: boolean;
  aborted?: boolean;
  /** What was to prepare the next attempt failed. */
  beforeRetryFailed?: boolean;
  budgetExhausted?: boolean;
  /** The bulkhead had no place for the attempt, and none in its queue. */
  bulkheadFull?: boolean;
  /** The breaker let nothing through. `waitMs`: until it will; `waited`: this opening was waited for already. */
  circuit?: { waitMs: number; waited: boolean };
}

export interface Retry {
  action: 'retry';
  /** What set the delay: the policy's backoff, the server's wish, or the breaker's own time. */
  reason: 'BACKOFF' | 'RETRY_AFTER' | 'CIRCUIT_OPEN';
  delayMs: number;
  /** The attempt that failed, and the number of the one that follows. */
  attempt: number;
  nextAttempt: number;
  maxAttempts: number;
  failure: Failure;
}

export interface GiveUp {
  action: 'giveUp';
  reason:
    | 'EXHAUSTED'
    | 'PERMANENT'
    | 'DEADLINE'
    | 'BUDGET'
    | 'CIRCUIT_OPEN'
    | 'BULKHEAD_FULL'
    | 'ABORTED'
    | 'RETRY_AFTER_TOO_LONG'
    | 'TOO_MANY_UNCOUNTED'
    | 'BEFORE_RETRY_FAILED';
  attempt: number;
  maxAttempts: number;
  failure: Failure;
  /** The wait that was asked for, where there was one: a durable queue can take over with it. */
  retryAfterMs?: number;
}

export type Decision = Retry | GiveUp;

/**
 * What to do about a failure. Pure and total: odd numbers are clamped, nothing is thrown, and the same
 * policy and facts always give the same decision.
 */
export function decide(policy: Policy, facts: Facts): Decision {
  const given = Object(facts) as Facts;
  const known = Object(given.failure) === given.failure;
  return decideOn(defined(policy), known ? given : { ...given, failure: unknownFailure }, chance);
}

/** The random number of a decision, in [0, 1): the one that was given, or derived from (seed, key, n). */
export type Chance = (facts: Facts, n: number) => number;

/** `decide` for a complete policy. A bundle that needs only this goes without checks, and brings its own `chance`. */
export function decideOn(given: CompletePolicy, facts: Facts, draw: Chance): Decision {
  const { circuit, failure } = facts;
  // Only a policy that was checked has overrides.
  const p = given.overrides ? (given as DefinedPolicy).forFailure(failure) : given;
  const attempt = Math.floor(atLeast(facts.attempt, 1));
  const uncounted = Math.floor(atLeast(facts.uncounted, 0));
  const counted = failure.counted !== false && !circuit;
  const askedMs = Math.ceil(atLeast(failure.retryAfterMs, 0));
  const circuitMs = Math.ceil(atLeast(circuit?.waitMs, 0));
  const leftMs = timeLeft(given, facts);
  const { maxAttempts } = p;
  const no = (reason: GiveUp['reason'], waitMs = askedMs) =>
    giveUp(reason, attempt, maxAttempts, failure, waitMs);

  if (facts.aborted) return no('ABORTED');
  if (facts.beforeRetryFailed) return no('BEFORE_RETRY_FAILED');
  if (leftMs <= 0) return no('DEADLINE');
  if (facts.bulkheadFull) return no('BULKHEAD_FULL');
  if (circuit?.waited) return no('CIRCUIT_OPEN', circuitMs);
  if (!circuit && !isRetryable(given, failure, facts.retryable)) return no('PERMANENT');
  // Also an attempt that was not counted: its policy may have been lowered while it waited.
  if (attempt >= maxAttempts + (counted ? 0 : 1)) return no('EXHAUSTED');
  if (!counted && uncounted >= p.maxUncounted) {
    return circuit ? no('CIRCUIT_OPEN', circuitMs) : no('TOO_MANY_UNCOUNTED');
  }
  if (askedMs > p.maxRetryAfter) return no('RETRY_AFTER_TOO_LONG');

  // An attempt that consumed nothing keeps its number; the count of those keeps its backoff growing.
  const n = attempt + uncounted;
  let delayMs =
    circuitMs || delayOf(p, counted ? attempt : n, () => draw(facts, n), facts.previousMs);
  let reason: Retry['reason'] = circuitMs ? 'CIRCUIT_OPEN' : 'BACKOFF';
  if (askedMs > delayMs) {
    // Never earlier than asked, and spread, so that a crowd told "60" does not come back as one.
    // A number of its own: the backoff's is small here, or the backoff would be the longer.
    delayMs = Math.floor(askedMs + draw(facts, -n) * 0.1 * askedMs);
    reason = 'RETRY_AFTER';
  }
  if (delayMs >= leftMs) return circuit ? no('CIRCUIT_OPEN', delayMs) : no('DEADLINE');
  if (facts.budgetExhausted && !circuit) return no('BUDGET');
  const nextAttempt = counted ? attempt + 1 : attempt;
  return { action: 'retry', reason, delayMs, attempt, nextAttempt, maxAttempts, failure };
}

/** The decision to give up, with the wait that was asked for, if one was. */
export function giveUp(
  reason: GiveUp['reason'],
  attempt: number,
  maxAttempts: number,
  failure: Failure,
  waitMs = 0,
): GiveUp {
  const decision: GiveUp = { action: 'giveUp', reason, attempt, maxAttempts, failure };
  if (waitMs > 0) decision.retryAfterMs = Math.ceil(waitMs);
  return decision;
}

const unknownFailure: Failure = Object.freeze({ class: 'unknown' });

function timeLeft(p: CompletePolicy, { elapsedMs, remainingMs }: Facts): number {
  const own = p.deadline === undefined ? Infinity : p.deadline - atLeast(elapsedMs, 0);
  // No limit, Infinity, is null once it was JSON.
  return typeof remainingMs === 'number' && remainingMs < own ? remainingMs : own;
}

export function chance({ random, seed, key }: Facts, n: number): number {
  // A key that is a number by mistake still tells one call from another.
  const text = typeof key === 'object' ? '' : String(key ?? '');
  return clampRandom(random) ?? unitRandom(Number.isFinite(seed) ? (seed as number) : 0, text, n);
}

/** Whether such a failure is retried at all. The more specific word wins; on a tie, `retryOn`. */
function isRetryable(p: CompletePolicy, failure: Failure, verdict: boolean | undefined): boolean {
  if (!p.idempotent && !failure.notExecuted) return false;
  if (typeof verdict === 'boolean') return verdict;
  // The usual case first: nothing is excluded, and the class is named.
  if (p.neverOn.length === 0 && p.retryOn.includes(failure.class)) return true;
  const yes = specificity(p.retryOn, failure);
  return yes > 0 && yes >= specificity(p.neverOn, failure);
}

/** 3: named by code, status or error name; 2: by class; 1: by a word for everything; 0: not named. */
export function specificity(words: readonly string[], failure: Failure): number {
  let best = 0;
  for (const word of words) {
    if (word === 'any' || word === 'Error') best ||= 1;
    else if (word === failure.class) best = Math.max(best, 2);
    else if (isNamed(failure, word)) return 3;
  }
  return best;
}

function isNamed(failure: Failure, word: string): boolean {
  const status = statusText(failure);
  return (
    word === failure.code ||
    word === status ||
    (word.endsWith('xx') && word === `${status?.[0]}xx`) ||
    namesIn(failure).includes(word)
  );
}
