import { describe, expect, it } from 'vitest';
import { hasRetriesAvailable, isMaxRetriesExceeded } from './limits.ts';
import type { MaxRetriesInput } from './limits.ts';

const told = (value: unknown): string => {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return `a value of type ${typeof value}`;
  return value === '3' ? 'the text "3"' : `a text of length ${value.length}`;
};
const warned = (field: string, value: unknown): string =>
  `${field} must be true or false, not ${told(value)}; false is used`;
const refused = (field: string, value: unknown): { code: string; message: string } => ({
  code: 'DATA_UNAVAILABLE',
  message: `${field} must be a whole number, 0 or more, not ${told(value)}`,
});
const badCounts = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e300, '3', true, {}, [3]];

describe('isMaxRetriesExceeded', () => {
  it.each([
    ['3 by default', {}, 3],
    ['3 where maxRetries is null', { maxRetries: null }, 3],
    ['maxRetries', { maxRetries: 7 }, 7],
    ['0', { maxRetries: 0 }, 0],
    ['doubled for a critical operation', { criticalOperation: true }, 6],
    ['2 more for priority HIGH', { operationPriority: 'HIGH' }, 5],
    ['5 more for priority CRITICAL', { operationPriority: 'CRITICAL' }, 8],
    ['10 more for a manual override', { manualRetryOverride: true }, 13],
    [
      'doubled first and added to afterwards',
      {
        maxRetries: 4,
        criticalOperation: true,
        operationPriority: 'CRITICAL',
        manualRetryOverride: true,
      },
      4 * 2 + 5 + 10,
    ],
    ['not raised by false', { criticalOperation: false, manualRetryOverride: false }, 3],
    ['not raised by null', { criticalOperation: null, manualRetryOverride: null }, 3],
    ['not raised by another priority', { operationPriority: 'LOW' }, 3],
    ['not raised by a priority that is no text', { operationPriority: { HIGH: 1 } }, 3],
  ])('has a limit that is %s', (_name, input: MaxRetriesInput, limit) => {
    expect(isMaxRetriesExceeded({ ...input, attemptCount: limit })).toEqual({
      matches: true,
      reason: 'RETRIES_EXHAUSTED',
      attemptCount: limit,
      limit,
      errors: [],
      warnings: [],
    });
    if (limit === 0) return;
    expect(isMaxRetriesExceeded({ ...input, attemptCount: limit - 1 })).toEqual({
      matches: false,
      reason: 'RETRIES_AVAILABLE',
      attemptCount: limit - 1,
      limit,
      errors: [],
      warnings: [],
    });
  });

  it.each(['true', 1, {}])(
    'warns of a switch that is %j, and does not raise the limit',
    (value) => {
      const input = { attemptCount: 3, criticalOperation: value, manualRetryOverride: value };
      expect(isMaxRetriesExceeded(input)).toMatchObject({
        matches: true,
        limit: 3,
        errors: [],
        warnings: [
          { code: 'DEFAULT_USED', message: warned('criticalOperation', value) },
          { code: 'DEFAULT_USED', message: warned('manualRetryOverride', value) },
        ],
      });
    },
  );

  it.each(badCounts)('answers true when attemptCount is %j', (value) => {
    expect(isMaxRetriesExceeded({ attemptCount: value })).toEqual({
      matches: true,
      reason: 'DATA_ERROR',
      attemptCount: null,
      limit: null,
      errors: [refused('attemptCount', value)],
      warnings: [],
    });
  });

  it.each([undefined, null])('answers true when attemptCount is missing (%j)', (value) => {
    expect(isMaxRetriesExceeded({ attemptCount: value })).toMatchObject({
      matches: true,
      reason: 'DATA_ERROR',
      errors: [{ code: 'DATA_UNAVAILABLE', message: 'attemptCount is missing' }],
    });
  });

  it.each(badCounts)('answers true when maxRetries is %j', (value) => {
    const result = isMaxRetriesExceeded({ attemptCount: 0, maxRetries: value });
    expect(result).toMatchObject({ matches: true, reason: 'DATA_ERROR', limit: null });
    expect(result).toMatchObject({ attemptCount: 0, warnings: [] });
    expect(result.errors).toEqual([refused('maxRetries', value)]);
  });
});

describe('hasRetriesAvailable', () => {
  it.each([
    [0, 1, true],
    [2, 3, true],
    [3, 3, false],
    [4, 3, false],
    [0, 0, false],
    [2, undefined, true],
    [3, null, false],
  ])('compares attempt %j with a limit of %j', (attemptCount, maxRetries, matches) => {
    expect(hasRetriesAvailable({ attemptCount, maxRetries })).toEqual({
      matches,
      reason: matches ? 'RETRIES_AVAILABLE' : 'RETRIES_EXHAUSTED',
      attemptCount,
      limit: maxRetries ?? 3,
      errors: [],
      warnings: [],
    });
  });

  it('takes maxRetries as it stands, whatever raises the sibling', () => {
    const input = { attemptCount: 3, criticalOperation: true, manualRetryOverride: 'yes' };
    expect(hasRetriesAvailable(input)).toMatchObject({ matches: false, limit: 3, warnings: [] });
  });

  it.each(badCounts)('answers false when a count is %j', (value) => {
    for (const field of ['attemptCount', 'maxRetries']) {
      const result = hasRetriesAvailable({ attemptCount: 0, [field]: value });
      expect(result).toMatchObject({ matches: false, reason: 'DATA_ERROR', limit: null });
      expect(result.errors).toEqual([refused(field, value)]);
    }
  });
});

describe('both', () => {
  it.each([null, undefined, 5, 'entity'])('take %s for a data error', (input) => {
    const entity = input as MaxRetriesInput;
    expect(isMaxRetriesExceeded(entity)).toMatchObject({ matches: true, reason: 'DATA_ERROR' });
    expect(hasRetriesAvailable(entity)).toMatchObject({ matches: false, reason: 'DATA_ERROR' });
  });

  it('take an entity that cannot be read for a data error', () => {
    const unreadable = {
      get attemptCount(): number {
        throw new Error('locked');
      },
    };
    const error = {
      reason: 'DATA_ERROR',
      attemptCount: null,
      limit: null,
      errors: [{ code: 'DATA_UNAVAILABLE', message: 'The entity cannot be read' }],
      warnings: [],
    };
    expect(isMaxRetriesExceeded(unreadable)).toEqual({ matches: true, ...error });
    expect(hasRetriesAvailable(unreadable)).toEqual({ matches: false, ...error });
  });
});
