import { criterionDefaults, layerConfig } from './criteria-config.ts';
import type { CriterionSettings } from './criteria-config.ts';
import { configured, isMissing, retryDelay } from './criteria-delay.ts';
import type { CriterionError, CriterionPorts, Delay, RetryDelayInput } from './criteria-delay.ts';
import { hasZone, parseIsoTime } from './criteria-time.ts';
import { systemClock } from './system.ts';

export type { CriterionError, CriterionPorts, RetryDelayInput } from './criteria-delay.ts';

const MAX_MESSAGE_LENGTH = 200;

export type RetryDelayReason =
  | 'FIXED_DELAY_ELAPSED'
  | 'BACKOFF_ELAPSED'
  | 'JITTER_ELAPSED'
  | 'MAXIMUM_DELAY_ELAPSED'
  | 'TOO_SOON'
  | 'BACKOFF_WAIT'
  | 'JITTER_WAIT'
  | 'TIMING_ERROR';

export interface RetryDelayResult {
  matches: boolean;
  reason: RetryDelayReason;
  /** Whole ms; null where it could not be worked out, as with the two below. */
  delayMs: number | null;
  elapsedMs: number | null;
  dueAtMs: number | null;
  /** Why there is no proper answer; empty when there is one. */
  errors: CriterionError[];
  /** Sentences, each after a code and a colon; an error has its sentence here too. */
  warnings: string[];
}

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
  input: RetryDelayInput | null | undefined,
  settings?: CriterionSettings | null,
  ports?: CriterionPorts | null,
): RetryDelayResult {
  const warnings: string[] = [];
  try {
    return evaluate(input ?? {}, settings, ports ?? {}, warnings);
  } catch (error) {
    return failed('CALCULATION_ERROR', textOf(error), warnings);
  }
}

function evaluate(
  input: RetryDelayInput,
  settings: CriterionSettings | null | undefined,
  ports: CriterionPorts,
  warnings: string[],
): RetryDelayResult {
  const { monotonicMs } = ports;
  const startMs = monotonicMs ? readClock(monotonicMs) : 0;
  const { lastAttemptTime, currentTime } = input;
  if (isMissing(lastAttemptTime)) {
    return failed('DATA_UNAVAILABLE', 'lastAttemptTime is missing', warnings);
  }
  const lastMs = timeOf('lastAttemptTime', lastAttemptTime, warnings);
  if (Number.isNaN(lastMs)) return failed('INVALID_TIME', notATime('lastAttemptTime'), warnings);
  const clockAsked = isMissing(currentTime);
  const nowMs = clockAsked
    ? Math.floor(readClock(ports.nowMs ?? systemNow))
    : timeOf('currentTime', currentTime, warnings);
  if (Number.isNaN(nowMs)) {
    return clockAsked
      ? failed('CALCULATION_ERROR', 'the clock failed twice', warnings)
      : failed('INVALID_TIME', notATime('currentTime'), warnings);
  }

  const elapsedMs = nowMs - lastMs;
  if (elapsedMs < 0) {
    warnings.push(`CLOCK_SKEW: lastAttemptTime is ${-elapsedMs} ms after the current time`);
  }
  const config = layerConfig(settings ?? criterionDefaults, {
    operationType: input.operationType,
  });
  const delay = retryDelay(input, config, ports, lastMs, warnings);
  const delayMs = delay.kind === 'delay' ? delay.delayMs : null;
  const dueAtMs = delayMs === null ? null : lastMs + delayMs;
  const times = { delayMs, elapsedMs, dueAtMs };
  // A skew ends the evaluation before the delay can be at fault. The delay is worked out all the same:
  // `dueAtMs` tells when the answer will be yes.
  if (elapsedMs < 0) {
    return { matches: false, reason: 'TIMING_ERROR', ...times, errors: [], warnings };
  }
  if (delay.kind === 'error') return failed(delay.code, delay.message, warnings, times);

  if (monotonicMs) {
    const tookMs = readClock(monotonicMs) - startMs;
    const limitMs = configured('responseTimeoutMs', config, warnings);
    if (Number.isNaN(tookMs)) {
      return failed('CALCULATION_ERROR', 'the monotonic clock failed twice', warnings, times);
    }
    if (tookMs > limitMs) {
      const message = `the evaluation took ${tookMs} ms, more than ${limitMs} ms`;
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
  code: CriterionError,
  message: string,
  warnings: string[],
  times: Times = unknownTimes,
): RetryDelayResult {
  warnings.push(`${code}: ${message}`);
  return { matches: false, reason: 'TIMING_ERROR', ...times, errors: [code], warnings };
}

type Times = Pick<RetryDelayResult, 'delayMs' | 'elapsedMs' | 'dueAtMs'>;

const unknownTimes: Times = { delayMs: null, elapsedMs: null, dueAtMs: null };

function timeOf(field: string, value: unknown, warnings: string[]): number {
  if (typeof value === 'string') {
    const ms = parseIsoTime(value);
    if (!Number.isNaN(ms) && !hasZone(value)) {
      warnings.push(`ZONE_MISSING: ${field} names no zone and is read as UTC`);
    }
    return ms;
  }
  // Not the value's own `getTime`, which a subclass may have replaced.
  return value instanceof Date ? Date.prototype.getTime.call(value) : Number.NaN;
}

function notATime(field: string): string {
  return `${field} is not an ISO-8601 date and time such as 2025-06-01T12:00:00Z`;
}

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

/** What was thrown may itself be hostile: a message that throws when read. */
function textOf(error: unknown): string {
  try {
    return error instanceof Error
      ? `${error.message}`.slice(0, MAX_MESSAGE_LENGTH)
      : `a value of type ${typeof error} was thrown`;
  } catch {
    return 'the error cannot be read';
  }
}
