import type { DefinedPolicy } from '../policy/policy.ts';
import type { CategoryFold } from './category-fold.ts';
import { MAX_ATTEMPT } from './tallies.ts';
import { peakPerMinute } from './time-grid.ts';

/** What an audit trail says about one category. */
export interface CategoryStats {
  category: string;
  /** Executions that the trail tells of, or that follow from it. First attempts that succeeded are among them only where successes are written. */
  attempts: number;
  /** Executions that failed, and those of them that another attempt follows. */
  failures: number;
  retries: number;
  /** Null: the trail has no `retry_succeeded` of this category, so nobody knows. */
  succeeded: number | null;
  /** Of the work that ended, the share that succeeded; null: unknown, since successes are not written. */
  successRate: number | null;
  /** Of the retryable work that failed at least once and ended, the share that succeeded in the end; null: there is none. */
  recoveryRate: number | null;
  /** Attempts for a piece of work that ended; null: none ended. */
  meanAttempts: number | null;
  /** Which work that mean is about: all of it, or, where successes are not written, only what failed at least once. */
  meanAttemptsOf: 'all' | 'failed';
  exhausted: number;
  /** How work ended without success: `exhausted`, or the reason of a `retry_abandoned`. The most frequent first. */
  ends: { reason: string; count: number }[];
  /** Retries that wait at the end of the trail, and times that work was put off without an attempt. */
  waiting: number;
  postponed: number;
  /** Over the time of the whole trail, at least a minute; and the most in one minute. */
  retriesPerMinute: number;
  peakRetriesPerMinute: number;
  /** The errors behind failures by `exception_type`, the most frequent first. */
  errors: { type: string; count: number }[];
  /** For how long work had waited when it recovered; null: none did. The wait before a successful attempt is an upper limit. */
  recoveredWithinMs: { p50: number; p90: number; p99: number } | null;
  byAttempt: AttemptStats[];
  /** Retries in each step of time. */
  load: number[];
  /** The highest `max_attempts`; 0: no event has one. */
  maxAttempts: number;
  /** The policy of most decisions; null: the trail does not have it. */
  policy: DefinedPolicy | null;
}

/** What the trail says about the first, the second, ... attempt. */
export interface AttemptStats {
  /** The last one, 64, stands for all later ones too. */
  attempt: number;
  /** How often it was made; null: unknown, since successes are not written. */
  executed: number | null;
  failed: number;
  /** How often it succeeded after failures; 0 for the first attempt. */
  helped: number;
  /** The mean wait after it failed, and the mean of all waits before it. */
  meanDelayMs: number;
  waitedMs: number;
}

interface Around {
  category: string;
  load: number[];
  stepMs: number;
  spanMs: number;
  waiting: (attempt: number) => number;
  policyOf: (fingerprint: string) => DefinedPolicy | undefined;
}

const MINUTE_MS = 60_000;
const MAX_ERRORS = 20;

export function categoryStats(fold: CategoryFold, around: Around): CategoryStats {
  const { category, load, stepMs, spanMs, waiting, policyOf } = around;
  const { retried, ended, lapsed, hasSuccesses, exhausted, postponed, maxAttempts } = fold;
  const byAttempt = attemptsOf(fold, waiting);
  const helped = sum(byAttempt, (one) => one.helped);
  const succeededAt = (n: number) => (hasSuccesses || n > 1 ? successesOf(fold, waiting, n) : 0);
  const numbers = byAttempt.map(({ attempt }) => attempt);
  const successes = sum(numbers, succeededAt);
  const failedWork = ended.total + lapsed.total;
  const work = successes + failedWork;
  const attemptsOfWork =
    sum(numbers, (n) => n * (succeededAt(n) + ended.of(n))) + sum(numbers, (n) => n * lapsed.of(n));
  const ends = fold.reasons.sorted();
  const allEnds = sum(ends, ({ count }) => count);
  const retryable = Math.max(0, failedWork - fold.nonRetryable);
  const usual = fold.policies.sorted()[0];
  return {
    category,
    attempts: retried.total + ended.total + successes,
    failures: retried.total + ended.total,
    retries: retried.total,
    succeeded: hasSuccesses ? successes : null,
    successRate: hasSuccesses ? share(successes, successes + allEnds) : null,
    recoveryRate: share(helped, helped + retryable),
    meanAttempts: share(attemptsOfWork, work),
    meanAttemptsOf: hasSuccesses ? 'all' : 'failed',
    exhausted,
    ends: ends.map(({ name: reason, count }) => ({ reason, count })),
    waiting: sum(numbers, waiting),
    postponed,
    retriesPerMinute: retried.total / Math.max(1, spanMs / MINUTE_MS),
    peakRetriesPerMinute: peakPerMinute(load, stepMs),
    errors: fold.errors
      .sorted()
      .slice(0, MAX_ERRORS)
      .map(({ name: type, count }) => ({ type, count })),
    recoveredWithinMs: recovery(byAttempt, helped),
    byAttempt,
    load,
    maxAttempts,
    policy: (usual && policyOf(usual.name)) ?? null,
  };
}

function attemptsOf(fold: CategoryFold, waiting: (attempt: number) => number): AttemptStats[] {
  const { retried, ended, succeeded, taken, delayMs, hasSuccesses } = fold;
  const known = Math.max(retried.last + 1, ended.last, succeeded.last, taken.last);
  const last = Math.min(known, MAX_ATTEMPT);
  const rows: AttemptStats[] = [];
  let waitedMs = 0;
  for (let n = 1; n <= last && fold.events > 0; n++) {
    const failed = retried.of(n) + ended.of(n);
    const successes = successesOf(fold, waiting, n);
    const meanDelayMs = retried.of(n) === 0 ? 0 : delayMs.of(n) / retried.of(n);
    rows.push({
      attempt: n,
      executed: hasSuccesses || n > 1 ? failed + successes : null,
      failed,
      helped: n > 1 ? successes : 0,
      meanDelayMs,
      waitedMs,
    });
    waitedMs += meanDelayMs;
  }
  // What follows the last failure may not have happened yet.
  while ((rows.at(-1)?.executed ?? 1) === 0) rows.pop();
  return rows;
}

/**
 * How often attempt n succeeded. Where that is not written it follows from what is missing: an attempt that was to be
 * made, is not waiting and did not fail has succeeded. Of the first attempt nothing follows.
 */
function successesOf(fold: CategoryFold, waiting: (attempt: number) => number, n: number): number {
  const { retried, ended, lapsed, succeeded, taken, takenFailed, hasSuccesses } = fold;
  if (hasSuccesses) return succeeded.of(n) + Math.max(0, taken.of(n) - takenFailed.of(n));
  if (n === 1) return 0;
  const begun = retried.of(n - 1) - waiting(n - 1) - lapsed.of(n - 1);
  return Math.max(0, begun - retried.of(n) - ended.of(n));
}

function recovery(
  rows: readonly AttemptStats[],
  helped: number,
): { p50: number; p90: number; p99: number } | null {
  if (helped === 0) return null;
  const within = (part: number): number => {
    let left = part * helped;
    // A sum of counts: what is left of it by rounding is nothing.
    const row = rows.find((one) => (left -= one.helped) <= 1e-9);
    return Math.round((row as AttemptStats).waitedMs);
  };
  return { p50: within(0.5), p90: within(0.9), p99: within(0.99) };
}

function sum<T>(list: readonly T[], of: (one: T) => number): number {
  return list.reduce((total, one) => total + of(one), 0);
}

function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}
