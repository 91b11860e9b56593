/** The answer of a criterion as it stands on a wire: HTTP, `redrive criteria evaluate --json`. */
import type { CriterionError, CriterionResult, CriterionWarning } from 'redrive';
import { LAST_DATE_MS } from 'redrive/internal';

interface WireNotes {
  errors: readonly CriterionError[];
  warnings: readonly CriterionWarning[];
}

interface WireDelayAnswer extends WireNotes {
  matches: boolean;
  reason: string;
  delay_ms: number | null;
  elapsed_ms: number | null;
  /** ISO-8601 in UTC. Null also for a time that no date can hold. */
  due_at: string | null;
}

interface WireLimitAnswer extends WireNotes {
  matches: boolean;
  reason: string;
  attempt_count: number | null;
  limit: number | null;
}

type WireAnswer = WireDelayAnswer | WireLimitAnswer;

export function wireAnswer(result: CriterionResult): WireAnswer {
  const { matches, reason, errors, warnings } = result;
  if ('delayMs' in result) {
    const { delayMs: delay_ms, elapsedMs: elapsed_ms, dueAtMs } = result;
    return { matches, reason, delay_ms, elapsed_ms, due_at: isoTime(dueAtMs), errors, warnings };
  }
  const { attemptCount: attempt_count, limit } = result;
  return { matches, reason, attempt_count, limit, errors, warnings };
}

/**
 * The same as a JSON text. Most answers have neither errors nor warnings, and hold nothing but numbers, words and a time:
 * these are put together by hand, which takes a third of the time.
 */
export function answerJson(result: CriterionResult): string {
  const { matches, reason, errors, warnings } = result;
  if (errors.length > 0 || warnings.length > 0) return JSON.stringify(wireAnswer(result));
  const start = `{"matches":${matches},"reason":"${reason}",`;
  if (!('delayMs' in result)) {
    return `${start}"attempt_count":${result.attemptCount},"limit":${result.limit},${NO_NOTES}`;
  }
  const { delayMs, elapsedMs, dueAtMs } = result;
  const dueAt = isoTime(dueAtMs);
  const time = dueAt === null ? 'null' : `"${dueAt}"`;
  return `${start}"delay_ms":${delayMs},"elapsed_ms":${elapsedMs},"due_at":${time},${NO_NOTES}`;
}

const NO_NOTES = '"errors":[],"warnings":[]}';

/** Null for a time that is not known, and for one that no date can hold. */
export function isoTime(ms: number | null): string | null {
  return ms === null || Math.abs(ms) > LAST_DATE_MS ? null : new Date(ms).toISOString();
}
