import { systemClock } from '../system.ts';
import { criterionDefaults } from './config.ts';
import type { CriterionSettings } from './config.ts';
import { configured, dueAt, retryDelay } from './delay.ts';
import type { Delay } from './delay.ts';
import {
  configFor,
  fieldsOf,
  isMissing,
  lastAttemptOf,
  messageOf,
  notATime,
  timeOf,
} from './entity.ts';
import type { CriterionOptions } from './entity.ts';
import type {
  CriterionErrorCode,
  CriterionWarning,
  RetryDelayReason,
  RetryDelayResult,
} from './result.ts';

/**
 * Whether the delay since the last attempt is over: `currentTime - lastAttemptTime >= delay`, in ms.
 *
 * Pure but for its ports, and total: whatever it is handed, it answers, and where it cannot know it answers
 * false. Missing and odd data are looked at from the top down; the first that ends the evaluation wins. Of
 * several reasons that hold, the one given is
 * - elapsed: MAXIMUM_DELAY_ELAPSED when the cap cut the delay, else JITTER_ELAPSED when jitter lengthened it,
 *   else BACKOFF_ELAPSED when it is exponential, else FIXED_DELAY_ELAPSED;
 * - waiting: JITTER_WAIT when only the jitter is still running, else BACKOFF_WAIT when it is exponential,
 *   else TOO_SOON;
 * - TIMING_ERROR for every error, and for a last attempt that lies in the future.
 */
export function isRetryDelayElapsed(
  entity: unknown,
  settings?: CriterionSettings | null,
  options?: CriterionOptions | null,
): RetryDelayResult {
  const warnings: CriterionWarning[] = [];
  try {
    return evaluate(entity, settings ?? criterionDefaults, options ?? {}, warnings);
  } catch (error) {
    return failed('CALCULATION_ERROR', messageOf(error), warnings);
  }
}

function evaluate(
  entity: unknown,
  settings: CriterionSettings,
  options: CriterionOptions,
  warnings: CriterionWarning[],
): RetryDelayResult {
  const { monotonicMs } = options;
  const startMs = monotonicMs ? readClock(monotonicMs) : 0;
  const input = fieldsOf(entity);
  const lastMs = lastAttemptOf(entity, warnings);
  if (typeof lastMs !== 'number') return failed(lastMs.code, lastMs.message, warnings);
  const { currentTime } = input;
  const clockAsked = isMissing(currentTime);
  const nowMs = clockAsked
    ? Math.floor(readClock(options.nowMs ?? systemNow))
    : timeOf('currentTime', currentTime, warnings);
  if (Number.isNaN(nowMs)) {
    return clockAsked
      ? failed('CALCULATION_ERROR', 'The clock failed twice', warnings)
      : failed('INVALID_TIME', notATime('currentTime', currentTime), warnings);
  }

  // Times may have a fraction of a ms. Rounded down: never yes too early.
  const elapsedMs = Math.floor(nowMs - lastMs);
  if (elapsedMs < 0) {
    warnings.push({
      code: 'CLOCK_SKEW',
      message: `lastAttemptTime is ${-elapsedMs} ms after the current time`,
    });
  }
  const config = configFor(input, settings, options);
  const delay = retryDelay(input, config, options, lastMs, warnings);
  const delayMs = delay.kind === 'delay' ? delay.delayMs : null;
  const dueAtMs = delayMs === null ? null : dueAt(lastMs, delayMs);
  const times = { delayMs, elapsedMs, dueAtMs };
  // A skew ends the evaluation before the delay can be at fault. The delay is worked out all the same:
  // `dueAtMs` tells when the answer will be yes.
  if (elapsedMs < 0) {
    return { matches: false, reason: 'TIMING_ERROR', ...times, errors: [], warnings };
  }
  if (delay.kind === 'error') {
    return failed(delay.error.code, delay.error.message, warnings, times);
  }

  if (monotonicMs) {
    const tookMs = readClock(monotonicMs) - startMs;
    const limitMs = configured('responseTimeoutMs', config, warnings);
    if (Number.isNaN(tookMs)) {
      return failed('CALCULATION_ERROR', 'The monotonic clock failed twice', warnings, times);
    }
    if (tookMs > limitMs) {
      const message = `The evaluation took ${Math.ceil(tookMs)} ms, more than ${limitMs} ms`;
      return failed('EVALUATION_TIMEOUT', message, warnings, times);
    }
  }
  return {
    matches: elapsedMs >= delay.delayMs,
    reason: reasonFor(elapsedMs, delay),
    delayMs,
    elapsedMs,
    dueAtMs,
    errors: [],
    warnings,
  };
}

function reasonFor(elapsedMs: number, delay: Delay): RetryDelayReason {
  if (elapsedMs >= delay.delayMs) {
    if (delay.capped) return 'MAXIMUM_DELAY_ELAPSED';
    if (delay.delayMs > delay.unjitteredMs) return 'JITTER_ELAPSED';
    return delay.exponential ? 'BACKOFF_ELAPSED' : 'FIXED_DELAY_ELAPSED';
  }
  if (elapsedMs >= delay.unjitteredMs) return 'JITTER_WAIT';
  return delay.exponential ? 'BACKOFF_WAIT' : 'TOO_SOON';
}

function failed(
  code: CriterionErrorCode,
  message: string,
  warnings: CriterionWarning[],
  times: Times = unknownTimes,
): RetryDelayResult {
  return {
    matches: false,
    reason: 'TIMING_ERROR',
    ...times,
    errors: [{ code, message }],
    warnings,
  };
}

type Times = Pick<RetryDelayResult, 'delayMs' | 'elapsedMs' | 'dueAtMs'>;

const unknownTimes: Times = { delayMs: null, elapsedMs: null, dueAtMs: null };

/** NaN when the clock fails: one more try, no more. */
function readClock(read: () => number): number {
  for (let tries = 0; tries < 2; tries++) {
    try {
      const ms = read();
      if (Number.isFinite(ms)) return ms;
    } catch {
      // A clock that throws is the same to us as one that shows no time.
    }
  }
  return Number.NaN;
}

function systemNow(): number {
  return systemClock.now();
}
