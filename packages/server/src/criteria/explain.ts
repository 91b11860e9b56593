/** The answer of a criterion as a sentence, for people: `recent` of the API and `redrive criteria evaluate`. */
import type { CriterionResult, RetryDelayResult, RetryLimitResult } from 'redrive';
import { LAST_DATE_MS } from 'redrive/internal';

export function explainAnswer(result: CriterionResult): string {
  const [error] = result.errors;
  if (error) return `${error.code}: ${error.message}.`;
  return 'delayMs' in result ? explainDelay(result) : explainLimit(result);
}

function explainDelay({ delayMs, elapsedMs, dueAtMs, warnings }: RetryDelayResult): string {
  const skew = warnings.find(({ code }) => code === 'CLOCK_SKEW');
  if (skew) return `The last attempt is in the future: ${skew.message}.`;
  if (delayMs === null || elapsedMs === null || dueAtMs === null) return 'The delay is not known.';
  if (delayMs === 0) return 'There is no delay.';
  const wait = `The delay of ${exactDuration(delayMs)}`;
  if (dueAtMs > LAST_DATE_MS) return `${wait} ends past the last date that can be written.`;
  const delay = `${wait} after ${momentOf(dueAtMs - delayMs)}`;
  const due = momentOf(dueAtMs);
  if (elapsedMs === delayMs) return `${delay} is over now, at ${due}.`;
  return elapsedMs > delayMs
    ? `${delay} was over at ${due}, ${exactDuration(elapsedMs - delayMs)} ago.`
    : `${delay} is over at ${due}, in ${exactDuration(delayMs - elapsedMs)}.`;
}

function explainLimit({ reason, attemptCount, limit }: RetryLimitResult): string {
  const attempts = attemptCount === 1 ? '1 attempt' : `${String(attemptCount)} attempts`;
  return reason === 'RETRIES_EXHAUSTED'
    ? `No retry is left after ${attempts}: the limit is ${String(limit)}.`
    : `Retries are left after ${attempts}: the limit is ${String(limit)}.`;
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const;

/** `2 min 3.5 s`, to the ms: two answers can be held side by side. */
function exactDuration(ms: number): string {
  const words: string[] = [];
  let restMs = ms;
  for (const [unit, unitMs] of units) {
    const count = Math.floor(restMs / unitMs);
    if (count > 0) words.push(`${count} ${unit}`);
    restMs -= count * unitMs;
  }
  if (restMs > 0 || words.length === 0) {
    words.push(restMs < 1000 && words.length === 0 ? `${restMs} ms` : `${restMs / 1000} s`);
  }
  return words.join(' ');
}

/** In UTC; without the ms where there are none. */
function momentOf(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}
