import type { Decision, GiveUp, Retry } from './decide.ts';

/** The decision in one English sentence. */
export function explain(decision: Decision): string {
  const { attempt, maxAttempts, failure } = decision;
  if (decision.reason === 'ABORTED')
    return `The caller aborted at attempt ${attempt} of ${maxAttempts}.`;
  const what = failure.code ?? failure.names?.[0];
  const start =
    failure.code === 'CIRCUIT_OPEN' ||
    decision.reason === 'BULKHEAD_FULL' ||
    decision.reason === 'BEFORE_RETRY_FAILED'
      ? `Attempt ${attempt} of ${maxAttempts} was not started`
      : `Attempt ${attempt} of ${maxAttempts} failed (${what ? `${what}, ` : ''}${failure.class})`;
  if (decision.action === 'retry') {
    return `${start}; ${retries[decision.reason]} ${readable(decision.delayMs)}.`;
  }
  const asked = decision.retryAfterMs;
  return `${start}; gave up because ${giveUps[decision.reason]}${asked ? ` (come back after ${readable(asked)})` : ''}.`;
}

const retries: Record<Retry['reason'], string> = {
  BACKOFF: 'the next one starts in',
  RETRY_AFTER: 'as the server asked, the next one starts in',
  CIRCUIT_OPEN: 'the circuit breaker is open for another',
};

const giveUps: Record<Exclude<GiveUp['reason'], 'ABORTED'>, string> = {
  EXHAUSTED: 'no attempts are left',
  PERMANENT: 'the policy does not retry such a failure',
  DEADLINE: 'the next attempt could not start before the deadline',
  BUDGET: 'the shared retry budget is used up',
  CIRCUIT_OPEN: 'the circuit breaker is open',
  BULKHEAD_FULL: 'the bulkhead and its queue are full',
  RETRY_AFTER_TOO_LONG: 'the server asked for too long a wait',
  TOO_MANY_UNCOUNTED: 'too many failures consumed no attempt',
  BEFORE_RETRY_FAILED: 'beforeRetry failed',
};

function readable(ms: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const;
  for (const [unit, unitMs] of units) {
    if (ms >= unitMs) return `${Math.round((ms / unitMs) * 10) / 10} ${unit}`;
  }
  return `${ms} ms`;
}
