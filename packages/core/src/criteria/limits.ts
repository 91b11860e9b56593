import { defaultUsed, fieldsOf, isMissing, missing, shown } from './entity.ts';
import type { CriterionWarning, RetryLimitResult } from './result.ts';

/** The entity as it came: nothing in it is trusted. `null` is the same as missing. */
export interface RetryLimitInput {
  /** Attempts so far: a whole number, 0 or more. */
  readonly attemptCount?: unknown;
  /** A whole number, 0 or more; 3 where it is missing. */
  readonly maxRetries?: unknown;
}

export interface MaxRetriesInput extends RetryLimitInput {
  readonly criticalOperation?: unknown;
  /** `HIGH` and `CRITICAL` raise the limit, every other priority leaves it. */
  readonly operationPriority?: unknown;
  readonly manualRetryOverride?: unknown;
}

const DEFAULT_MAX_RETRIES = 3;
const CRITICAL_FACTOR = 2;
const MANUAL_EXTRA = 10;
const priorityExtra = new Map<unknown, number>([
  ['HIGH', 2],
  ['CRITICAL', 5],
]);

/**
 * Whether the attempts have reached the limit. The limit is `maxRetries`, doubled for a critical operation;
 * the extras of priority and manual override are added after that, so the doubling never multiplies them.
 * Total: data that cannot be read counts as exceeded, since a retry without a limit is the worse mistake.
 */
export function isMaxRetriesExceeded(entity: unknown): RetryLimitResult {
  return judge(entity, true, (input, maxRetries, warnings) => {
    const factor = isTrue(input, 'criticalOperation', warnings) ? CRITICAL_FACTOR : 1;
    const extra = isTrue(input, 'manualRetryOverride', warnings) ? MANUAL_EXTRA : 0;
    return maxRetries * factor + (priorityExtra.get(input.operationPriority) ?? 0) + extra;
  });
}

/**
 * Whether an attempt is left below `maxRetries` as it stands: the raised limit is `isMaxRetriesExceeded`'s
 * business. Total: data that cannot be read counts as none left.
 */
export function hasRetriesAvailable(entity: unknown): RetryLimitResult {
  return judge(entity, false, (_input, maxRetries) => maxRetries);
}

type LimitOf = (input: MaxRetriesInput, maxRetries: number, warnings: CriterionWarning[]) => number;

function judge(entity: unknown, matchesWhenExhausted: boolean, limitOf: LimitOf): RetryLimitResult {
  const warnings: CriterionWarning[] = [];
  let attemptCount: number | null = null;
  let message: string;
  try {
    const input = fieldsOf(entity) as MaxRetriesInput;
    const { attemptCount: attempts, maxRetries } = input;
    const limitGiven = maxRetries ?? DEFAULT_MAX_RETRIES;
    if (isCount(attempts)) attemptCount = attempts;
    if (isCount(attempts) && isCount(limitGiven)) {
      const limit = limitOf(input, limitGiven, warnings);
      const exhausted = attempts >= limit;
      return {
        matches: exhausted === matchesWhenExhausted,
        reason: exhausted ? 'RETRIES_EXHAUSTED' : 'RETRIES_AVAILABLE',
        attemptCount,
        limit,
        errors: [],
        warnings,
      };
    }
    if (isMissing(attempts)) message = missing('attemptCount', entity);
    else {
      message = isCount(attempts)
        ? notACount('maxRetries', maxRetries)
        : notACount('attemptCount', attempts);
    }
  } catch {
    message = 'The entity cannot be read';
  }
  return {
    matches: matchesWhenExhausted,
    reason: 'DATA_ERROR',
    attemptCount,
    limit: null,
    errors: [{ code: 'DATA_UNAVAILABLE', message }],
    warnings,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function notACount(field: string, value: unknown): string {
  return `${field} must be a whole number, 0 or more, not ${shown(value)}`;
}

/** Only `true` raises a limit; what is neither true nor false is told, and raises nothing. */
function isTrue(
  input: MaxRetriesInput,
  field: 'criticalOperation' | 'manualRetryOverride',
  warnings: CriterionWarning[],
): boolean {
  const value = input[field];
  if (typeof value === 'boolean' || isMissing(value)) return value === true;
  warnings.push(defaultUsed(`${field} must be true or false, not ${shown(value)}; false is used`));
  return false;
}
