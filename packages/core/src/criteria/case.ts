import type { CriterionSettings } from './config.ts';
import type { CriterionName } from './evaluate.ts';
import type {
  CriterionErrorCode,
  CriterionWarningCode,
  RetryDelayReason,
  RetryLimitReason,
} from './result.ts';

/** One row of the criteria's rules: an entity as JSON, and the answer it must get. The seed is 0. */
export interface CriterionCase {
  title: string;
  criterion: CriterionName;
  entity: unknown;
  settings?: CriterionSettings;
  /** The jitter's key that is given beside the entity. */
  key?: string;
  context?: string;
  expected: ExpectedDelay | ExpectedLimit;
}

export interface ExpectedDelay {
  matches: boolean;
  reason: RetryDelayReason;
  delayMs: number | null;
  /** Absent where it depends on the clock. */
  elapsedMs?: number | null;
  dueAtMs: number | null;
  errors: readonly CriterionErrorCode[];
  warnings: readonly CriterionWarningCode[];
}

interface ExpectedLimit {
  matches: boolean;
  reason: RetryLimitReason;
  attemptCount: number | null;
  limit: number | null;
  errors: readonly CriterionErrorCode[];
  warnings: readonly CriterionWarningCode[];
}

/** One row of the rules of `nextRetryTime`. */
export interface NextRetryCase {
  title: string;
  entity: unknown;
  settings?: CriterionSettings;
  key?: string;
  context?: string;
  expected: ({ fireAtMs: number } | { fireAfterMs: number }) & {
    warnings: readonly CriterionWarningCode[];
  };
}
