import { hasRetriesAvailable, isMaxRetriesExceeded, isRetryDelayElapsed } from 'redrive';
import { describe, expect, it } from 'vitest';
import { explainAnswer } from './explain.ts';

const entity = {
  lastAttemptTime: '2026-01-25T21:15:00Z',
  currentTime: '2026-01-25T21:17:00Z',
  retryDelaySeconds: 123,
  exponentialBackoff: false,
  jitterEnabled: false,
};
const explained = (changed: object): string =>
  explainAnswer(isRetryDelayElapsed({ ...entity, ...changed }));

describe('the explanation of an answer', () => {
  it.each([
    [
      {},
      'The delay of 2 min 3 s after 2026-01-25T21:15:00Z is over at 2026-01-25T21:17:03Z, in 3 s.',
    ],
    [
      { currentTime: '2026-01-25T21:17:03Z' },
      'The delay of 2 min 3 s after 2026-01-25T21:15:00Z is over now, at 2026-01-25T21:17:03Z.',
    ],
    [
      { currentTime: '2026-01-25T21:17:03.500Z' },
      'The delay of 2 min 3 s after 2026-01-25T21:15:00Z was over at 2026-01-25T21:17:03Z, 500 ms ago.',
    ],
    [{ retryDelaySeconds: 0 }, 'There is no delay.'],
    [{ lastAttemptTime: null }, 'DATA_UNAVAILABLE: lastAttemptTime is missing.'],
    [
      { currentTime: '2026-01-25T21:14:00Z' },
      'The last attempt is in the future: lastAttemptTime is 60000 ms after the current time.',
    ],
    [
      { retryDelaySeconds: 1e15 },
      'The delay of 11574074074 d 1 h 46 min 40 s ends past the last date that can be written.',
    ],
  ])('of %j is: %s', (changed, text) => {
    expect(explained(changed)).toBe(text);
  });

  it('tells the attempts and the limit', () => {
    expect(explainAnswer(isMaxRetriesExceeded({ attemptCount: 3 }))).toBe(
      'No retry is left after 3 attempts: the limit is 3.',
    );
    expect(explainAnswer(hasRetriesAvailable({ attemptCount: 1 }))).toBe(
      'Retries are left after 1 attempt: the limit is 3.',
    );
  });

  it.each([
    [1, '1 ms'],
    [999, '999 ms'],
    [1000, '1 s'],
    [61_123, '1 min 1.123 s'],
    [60_000, '1 min'],
    [60_001, '1 min 0.001 s'],
    [3_600_000, '1 h'],
    [90_061_000, '1 d 1 h 1 min 1 s'],
  ])('writes %s ms as %s', (ms, text) => {
    const currentTime = new Date(Date.parse('2026-01-25T21:17:03Z') + ms).toISOString();
    expect(explained({ currentTime })).toMatch(new RegExp(`, ${text} ago\\.$`));
  });
});
