import { systemClock } from '../system.ts';
import { criterionDefaults, layerConfig } from './config.ts';
import type { CriterionConfig, CriterionSettings } from './config.ts';
import { configured, isMissing, retryDelay, shown } from './delay.ts';
import type { CriterionOptions, Delay, RetryDelayInput } from './delay.ts';
import type {
  CriterionError,
  CriterionErrorCode,
  CriterionWarning,
  RetryDelayReason,
  RetryDelayResult,
} from './result.ts';
import { hasZone, parseIsoTime } from './time.ts';

const MAX_MESSAGE_LENGTH = 200;

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
    return failed('CALCULATION_ERROR', textOf(error), warnings);
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
  const lastMs = lastAttemptOf(input, warnings);
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

  const elapsedMs = nowMs - lastMs;
  if (elapsedMs < 0) {
    warnings.push({
      code: 'CLOCK_SKEW',
      message: `lastAttemptTime is ${-elapsedMs} ms after the current time`,
    });
  }
  const config = configFor(input, settings, options);
  const delay = retryDelay(input, config, options, lastMs, warnings);
  const delayMs = delay.kind === 'delay' ? delay.delayMs : null;
  const dueAtMs = delayMs === null ? null : lastMs + delayMs;
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
      const message = `The evaluation took ${tookMs} ms, more than ${limitMs} ms`;
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

/** When a retry is due, for an engine that schedules it. */
export type NextRetryTime =
  | { fireAtMs: number; warnings: CriterionWarning[] }
  /** Counted from the answer. */
  | { fireAfterMs: number; warnings: CriterionWarning[] };

/** The last ms that a `Date` can hold. */
const LAST_MS = 8_640_000_000_000_000;

/**
 * The time at which `isRetryDelayElapsed` begins to match. Without usable data it is the default delay from
 * now, with a warning. Total, as the criteria are: a failure would fail the work that asks. The current time
 * plays no part, so a wrong clock cannot move the answer.
 */
export function nextRetryTime(
  entity: unknown,
  settings?: CriterionSettings | null,
  options?: CriterionOptions | null,
): NextRetryTime {
  const warnings: CriterionWarning[] = [];
  const usable = settings ?? criterionDefaults;
  try {
    const input = fieldsOf(entity);
    const lastMs = lastAttemptOf(input, warnings);
    const config = configFor(input, usable, options ?? {});
    if (typeof lastMs !== 'number') return afterDefault(lastMs, config, warnings);
    const delay = retryDelay(input, config, options ?? {}, lastMs, warnings);
    if (delay.kind === 'error') return afterDefault(delay.error, config, warnings);
    const dueAtMs = lastMs + delay.delayMs;
    if (dueAtMs <= LAST_MS) return { fireAtMs: dueAtMs, warnings };
    warnings.push({
      code: 'OVERFLOW_ERROR',
      message: `The due time is past the last one that a date can hold; ${LAST_MS} is used`,
    });
    return { fireAtMs: LAST_MS, warnings };
  } catch (error) {
    const failure: CriterionWarning = { code: 'CALCULATION_ERROR', message: textOf(error) };
    return afterDefault(failure, configOrDefaults(usable), warnings);
  }
}

function afterDefault(
  failure: CriterionWarning,
  config: CriterionConfig,
  warnings: CriterionWarning[],
): NextRetryTime {
  const seconds = configured('defaultRetryDelaySeconds', config, warnings);
  const { code, message } = failure;
  warnings.push({ code, message: `${message}; the default delay of ${seconds} s is used` });
  return { fireAfterMs: Math.min(seconds * 1000, LAST_MS), warnings };
}

/** Settings may be as hostile as an entity. */
function configOrDefaults(settings: CriterionSettings): CriterionConfig {
  try {
    return layerConfig(settings, {});
  } catch {
    return criterionDefaults;
  }
}

function configFor(
  input: RetryDelayInput,
  settings: CriterionSettings,
  { context }: CriterionOptions,
): Readonly<CriterionConfig> {
  return layerConfig(settings, { operationType: input.operationType, context });
}

/** A text or a number has no fields of an entity, and may be asked for them all the same. */
export function fieldsOf(entity: unknown): Readonly<Record<string, unknown>> {
  return (entity ?? {}) as Readonly<Record<string, unknown>>;
}

/** The epoch ms of the last attempt, or why there is none. */
function lastAttemptOf(
  { lastAttemptTime }: RetryDelayInput,
  warnings: CriterionWarning[],
): number | CriterionError {
  if (isMissing(lastAttemptTime)) {
    return { code: 'DATA_UNAVAILABLE', message: 'lastAttemptTime is missing' };
  }
  const lastMs = timeOf('lastAttemptTime', lastAttemptTime, warnings);
  return Number.isNaN(lastMs)
    ? { code: 'INVALID_TIME', message: notATime('lastAttemptTime', lastAttemptTime) }
    : lastMs;
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

function timeOf(field: string, value: unknown, warnings: CriterionWarning[]): number {
  if (typeof value === 'string') {
    const ms = parseIsoTime(value);
    if (!Number.isNaN(ms) && !hasZone(value)) {
      warnings.push({
        code: 'ZONE_MISSING',
        message: `${field} names no zone and is read as UTC`,
      });
    }
    return ms;
  }
  // Not the value's own `getTime`, which a subclass may have replaced.
  return value instanceof Date ? Date.prototype.getTime.call(value) : Number.NaN;
}

function notATime(field: string, value: unknown): string {
  return `${field} must be an ISO-8601 date and time such as 2025-06-01T12:00:00Z, not ${shown(value)}`;
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
