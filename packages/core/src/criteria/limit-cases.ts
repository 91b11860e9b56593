import type { CriterionCase } from './case.ts';
import type { CriterionWarningCode } from './result.ts';

function limitCase(
  criterion: 'isMaxRetriesExceeded' | 'hasRetriesAvailable',
  title: string,
  entity: unknown,
  matches: boolean,
  attemptCount: number,
  limit: number,
  warnings: readonly CriterionWarningCode[] = [],
): CriterionCase {
  const exhausted = attemptCount >= limit;
  const reason = exhausted ? 'RETRIES_EXHAUSTED' : 'RETRIES_AVAILABLE';
  const expected = { matches, reason, attemptCount, limit, errors: [], warnings } as const;
  return { title, criterion, entity, expected };
}

function limitErrors(title: string, entity: unknown, attemptCount: number | null): CriterionCase[] {
  const expected = {
    reason: 'DATA_ERROR',
    attemptCount,
    limit: null,
    errors: ['DATA_UNAVAILABLE'],
    warnings: [],
  } as const;
  return [
    { title, criterion: 'isMaxRetriesExceeded', entity, expected: { ...expected, matches: true } },
    { title, criterion: 'hasRetriesAvailable', entity, expected: { ...expected, matches: false } },
  ];
}

const exceeded = 'isMaxRetriesExceeded';
const available = 'hasRetriesAvailable';

export const limitCases: readonly CriterionCase[] = [
  limitCase(exceeded, 'below the default limit', { attemptCount: 2 }, false, 2, 3),
  limitCase(exceeded, 'at the default limit', { attemptCount: 3 }, true, 3, 3),
  limitCase(exceeded, 'maxRetries', { attemptCount: 3, maxRetries: 4 }, false, 3, 4),
  limitCase(
    exceeded,
    'twice for a critical operation',
    { attemptCount: 6, criticalOperation: true },
    true,
    6,
    6,
  ),
  limitCase(exceeded, '+2 for HIGH', { attemptCount: 4, operationPriority: 'HIGH' }, false, 4, 5),
  limitCase(
    exceeded,
    '+5 for CRITICAL',
    { attemptCount: 8, operationPriority: 'CRITICAL' },
    true,
    8,
    8,
  ),
  limitCase(
    exceeded,
    '+10 for an override',
    { attemptCount: 12, manualRetryOverride: true },
    false,
    12,
    13,
  ),
  limitCase(
    exceeded,
    'doubled first, then added to',
    {
      attemptCount: 21,
      criticalOperation: true,
      operationPriority: 'CRITICAL',
      manualRetryOverride: true,
    },
    true,
    21,
    21,
  ),
  limitCase(
    exceeded,
    'a switch that is no boolean',
    { attemptCount: 3, criticalOperation: 'true' },
    true,
    3,
    3,
    ['DEFAULT_USED'],
  ),
  limitCase(available, 'below the default limit', { attemptCount: 2 }, true, 2, 3),
  limitCase(available, 'at the default limit', { attemptCount: 3 }, false, 3, 3),
  limitCase(
    available,
    'nothing raises maxRetries',
    { attemptCount: 3, criticalOperation: true },
    false,
    3,
    3,
  ),
  ...limitErrors('no entity', null, null),
  ...limitErrors('attemptCount missing', {}, null),
  ...limitErrors('attemptCount a text', { attemptCount: '1' }, null),
  ...limitErrors('attemptCount a fraction', { attemptCount: 1.5 }, null),
  ...limitErrors('maxRetries negative', { attemptCount: 1, maxRetries: -1 }, 1),
];
