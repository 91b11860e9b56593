import type { CriterionSettings } from './config.ts';
import { isRetryDelayElapsed } from './elapsed.ts';
import type { CriterionOptions } from './entity.ts';
import { hasRetriesAvailable, isMaxRetriesExceeded } from './limits.ts';
import type { CriterionResult } from './result.ts';

export const criterionNames = [
  'isRetryDelayElapsed',
  'isMaxRetriesExceeded',
  'hasRetriesAvailable',
] as const;

export type CriterionName = (typeof criterionNames)[number];

export function isCriterionName(name: unknown): name is CriterionName {
  return criterionNames.includes(name as CriterionName);
}

/** One of the criteria by its name. Total, as each of them is: an unknown name is an answer with an error too. */
export function evaluateCriterion(
  name: CriterionName,
  entity: unknown,
  settings?: CriterionSettings | null,
  options?: CriterionOptions | null,
): CriterionResult {
  switch (name) {
    case 'isRetryDelayElapsed':
      return isRetryDelayElapsed(entity, settings, options);
    case 'isMaxRetriesExceeded':
      return isMaxRetriesExceeded(entity);
    case 'hasRetriesAvailable':
      return hasRetriesAvailable(entity);
    default:
      return {
        matches: false,
        reason: 'DATA_ERROR',
        attemptCount: null,
        limit: null,
        errors: [{ code: 'DATA_UNAVAILABLE', message: 'There is no criterion of this name' }],
        warnings: [],
      };
  }
}
