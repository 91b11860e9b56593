import type { AuditStats, CategoryStats } from 'redrive';
import type { Static } from 'typebox';
import type * as schemas from './schemas/audit-stats.ts';

type View = Static<typeof schemas.AuditStats>;

/** Statistics as they are written on a wire. */
export function auditStatsView(stats: AuditStats, complete: boolean, limit: number): View {
  const { events, unreadable, dropped, fromMs, toMs, loadFromMs, stepMs, categories } = stats;
  return {
    events,
    unreadable,
    dropped,
    complete,
    first_at: fromMs === null ? null : timeText(fromMs),
    last_at: toMs === null ? null : timeText(toMs),
    load_from: timeText(loadFromMs),
    step_ms: stepMs,
    categories: categories.slice(0, limit).map(categoryView),
  };
}

function categoryView(stats: CategoryStats): View['categories'][number] {
  return {
    category: stats.category,
    attempts: stats.attempts,
    failures: stats.failures,
    retries: stats.retries,
    succeeded: stats.succeeded,
    success_rate: stats.successRate,
    recovery_rate: stats.recoveryRate,
    mean_attempts: stats.meanAttempts,
    mean_attempts_of: stats.meanAttemptsOf,
    exhausted: stats.exhausted,
    ends: stats.ends,
    waiting: stats.waiting,
    postponed: stats.postponed,
    retries_per_minute: stats.retriesPerMinute,
    peak_retries_per_minute: stats.peakRetriesPerMinute,
    errors: stats.errors,
    recovered_within_ms: stats.recoveredWithinMs,
    by_attempt: stats.byAttempt.map((row) => ({
      attempt: row.attempt,
      executed: row.executed,
      failed: row.failed,
      helped: row.helped,
      mean_delay_ms: row.meanDelayMs,
      waited_ms: row.waitedMs,
    })),
    load: stats.load,
    max_attempts: stats.maxAttempts,
    policy: stats.policy as Readonly<Record<string, unknown>> | null,
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
