/** The answer of a criterion as a sentence, for people. */
import type { CriterionResult, RetryDelayResult, RetryLimitResult } from 'redrive';

export function explainAnswer(result: CriterionResult): string {
  const [error] = result.errors;
  if (error) return `No answer by the data: ${error.code}. ${error.message}.`;
  return 'delayMs' in result ? explainDelay(result) : explainLimit(result);
}

function explainDelay({ reason, delayMs, elapsedMs, warnings }: RetryDelayResult): string {
  if (delayMs === null || elapsedMs === null) return `The delay is not known (${reason}).`;
  if (elapsedMs < 0) {
    const skew = warnings.find(({ code }) => code === 'CLOCK_SKEW');
    return `The last attempt is in the future: ${skew?.message ?? `${-elapsedMs} ms ahead`}.`;
  }
  const share = `${elapsedMs} of ${delayMs} ms have passed`;
  if (elapsedMs >= delayMs) return `The delay is over: ${share} (${reason}).`;
  return `The delay is not over: ${share}, ${delayMs - elapsedMs} ms are left (${reason}).`;
}

function explainLimit({ reason, attemptCount, limit }: RetryLimitResult): string {
  const isExhausted = reason === 'RETRIES_EXHAUSTED';
  const share = `${String(attemptCount)} attempts, the limit is ${String(limit)}`;
  return isExhausted ? `No retry is left: ${share}.` : `Retries are left: ${share}.`;
}
