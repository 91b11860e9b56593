import type { CriterionErrorCode } from 'redrive';

/** The team that an error is reported to: operations for times and missing data, development for calculations. */
export type Audience = 'operations' | 'development';

const audiences: Readonly<Record<CriterionErrorCode, Audience>> = {
  DATA_UNAVAILABLE: 'operations',
  INVALID_TIME: 'operations',
  EVALUATION_TIMEOUT: 'operations',
  CALCULATION_ERROR: 'development',
  OVERFLOW_ERROR: 'development',
};

export function audienceOf(code: CriterionErrorCode): Audience {
  return audiences[code];
}

export function isErrorCode(code: string): code is CriterionErrorCode {
  return Object.hasOwn(audiences, code);
}
