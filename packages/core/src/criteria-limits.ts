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

export type RetryLimitReason = 'RETRIES_EXHAUSTED' | 'RETRIES_AVAILABLE' | 'DATA_ERROR';

export interface RetryLimitResult {
  matches: boolean;
  reason: RetryLimitReason;
  /** The limit that counted; null when the data gave none. */
  limit: number | null;
  /** Why there is no proper answer; empty when there is one. */
  errors: RetryLimitError[];
  /** Sentences, each after a code and a colon; an error has its sentence here too. */
  warnings: string[];
}

/** The siblings share the codes of `isRetryDelayElapsed`, and with them the routes errors take. */
export type RetryLimitError = 'DATA_UNAVAILABLE';

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
export function isMaxRetriesExceeded(input: MaxRetriesInput | null | undefined): RetryLimitResult {
  return judge(input, true, (entity, maxRetries, warnings) => {
    const factor = isTrue(entity, 'criticalOperation', warnings) ? CRITICAL_FACTOR : 1;
    const extra = isTrue(entity, 'manualRetryOverride', warnings) ? MANUAL_EXTRA : 0;
    return maxRetries * factor + (priorityExtra.get(entity.operationPriority) ?? 0) + extra;
  });
}

/**
 * Whether an attempt is left below `maxRetries` as it stands: the raised limit is `isMaxRetriesExceeded`'s
 * business. Total: data that cannot be read counts as none left.
 */
export function hasRetriesAvailable(input: RetryLimitInput | null | undefined): RetryLimitResult {
  return judge(input, false, (_entity, maxRetries) => maxRetries);
}

type LimitOf = (entity: MaxRetriesInput, maxRetries: number, warnings: string[]) => number;

function judge(
  input: MaxRetriesInput | null | undefined,
  matchesWhenExhausted: boolean,
  limitOf: LimitOf,
): RetryLimitResult {
  const warnings: string[] = [];
  try {
    const entity = input ?? {};
    const attempts = countOf(entity.attemptCount, undefined);
    const maxRetries = countOf(entity.maxRetries, DEFAULT_MAX_RETRIES);
    if (attempts !== undefined && maxRetries !== undefined) {
      const limit = limitOf(entity, maxRetries, warnings);
      const exhausted = attempts >= limit;
      return {
        matches: exhausted === matchesWhenExhausted,
        reason: exhausted ? 'RETRIES_EXHAUSTED' : 'RETRIES_AVAILABLE',
        limit,
        errors: [],
        warnings,
      };
    }
    const field = attempts === undefined ? 'attemptCount' : 'maxRetries';
    warnings.push(`DATA_UNAVAILABLE: ${field} must be a whole number, 0 or more`);
  } catch {
    warnings.push('DATA_UNAVAILABLE: the entity cannot be read');
  }
  return {
    matches: matchesWhenExhausted,
    reason: 'DATA_ERROR',
    limit: null,
    errors: ['DATA_UNAVAILABLE'],
    warnings,
  };
}

function countOf(value: unknown, missing: number | undefined): number | undefined {
  if (value === undefined || value === null) return missing;
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** Only `true` raises a limit; what is neither true nor false is told, and raises nothing. */
function isTrue(
  entity: MaxRetriesInput,
  field: 'criticalOperation' | 'manualRetryOverride',
  warnings: string[],
): boolean {
  const value = entity[field];
  if (typeof value === 'boolean' || value === undefined || value === null) return value === true;
  warnings.push(`DEFAULT_USED: ${field} must be true or false; false is used`);
  return false;
}
