/** Why an evaluation has no proper answer. Time errors and calculation errors go to different people. */
export type CriterionErrorCode =
  | 'DATA_UNAVAILABLE'
  | 'INVALID_TIME'
  | 'CALCULATION_ERROR'
  | 'OVERFLOW_ERROR'
  | 'EVALUATION_TIMEOUT';

export interface CriterionError {
  code: CriterionErrorCode;
  message: string;
}

/** What an evaluation noticed and answered in spite of. */
export interface CriterionWarning {
  code: CriterionWarningCode;
  message: string;
}

export type CriterionWarningCode =
  /** A field is missing or unusable, and a configured or built-in value is used. */
  | 'DEFAULT_USED'
  /** The last attempt lies after the current time. */
  | 'CLOCK_SKEW'
  /** A time names no zone and is read as UTC. */
  | 'ZONE_MISSING'
  /** The random source failed, and no jitter is added. */
  | 'RANDOM_FAILED'
  /** `OVERFLOW_ERROR`: the cap stands in for a delay that overflows. `nextRetryTime` warns of every error. */
  | CriterionErrorCode;

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
  /** Whole ms, rounded up. Null where it could not be worked out, as with the two below. */
  delayMs: number | null;
  elapsedMs: number | null;
  dueAtMs: number | null;
  /** Why there is no proper answer; empty when there is one. */
  errors: CriterionError[];
  warnings: CriterionWarning[];
}

export type RetryLimitReason = 'RETRIES_EXHAUSTED' | 'RETRIES_AVAILABLE' | 'DATA_ERROR';

export interface RetryLimitResult {
  matches: boolean;
  reason: RetryLimitReason;
  /** The attempts that counted; null where the entity has no usable count. */
  attemptCount: number | null;
  /** The limit that counted; null where the data gave none. */
  limit: number | null;
  /** Why there is no proper answer; empty when there is one. */
  errors: CriterionError[];
  warnings: CriterionWarning[];
}

export type CriterionResult = RetryDelayResult | RetryLimitResult;
