import { describe, expect, it } from 'vitest';
import {
  addJitter,
  calculateBackoffDelay,
  getPriorityBackoff,
  laneOfPriority,
  policiesWith,
  shouldRetry,
} from './retry-config.ts';

describe('the retry configuration by priority', () => {
  it.each([
    ['critical', 10, 10_000, 300_000],
    ['high', 8, 30_000, 900_000],
    ['medium', 5, 120_000, 3_600_000],
    ['low', 3, 300_000, 7_200_000],
  ] as const)('%s: %d retries, base %d, cap %d', (priority, maxRetries, baseMs, capMs) => {
    expect(shouldRetry(priority, maxRetries)).toBe(true);
    expect(shouldRetry(priority, maxRetries + 1)).toBe(false);
    for (let attempt = 1; attempt <= 12; attempt++) {
      const delayMs = Math.min(baseMs * 2 ** (attempt - 1), capMs);
      expect(getPriorityBackoff(priority, attempt)).toBe(delayMs);
      expect(calculateBackoffDelay(priority, attempt, 0)).toBe(delayMs);
      // The cap is applied before the jitter, as in the document's code.
      expect(calculateBackoffDelay(priority, attempt, 0.5)).toBe(
        Math.floor(delayMs + 0.15 * delayMs),
      );
    }
    expect(getPriorityBackoff(priority, 1e9)).toBe(capMs);
  });

  it('adds up to 30 %, in whole ms, rounded down', () => {
    expect(addJitter(1000, 0)).toBe(1000);
    expect(addJitter(1000, 0.999999)).toBe(1299);
    expect(addJitter(333, 0.5)).toBe(382);
  });

  it('puts critical and high into the urgent lane, medium and low into the bulk lane', () => {
    expect(laneOfPriority).toEqual({
      critical: 'urgent',
      high: 'urgent',
      medium: 'bulk',
      low: 'bulk',
    });
  });

  it('takes other numbers from the configuration, and keeps the rest of the preset', () => {
    const policies = policiesWith({ low: { maxAttempts: 2, base: '1s' } });
    expect(policies.low).toMatchObject({
      maxAttempts: 2,
      base: 1000,
      cap: 7_200_000,
      jitter: 'up',
    });
    expect(policies.high.maxAttempts).toBe(9);
    expect(shouldRetry('low', 2, policies)).toBe(false);
  });

  it('refuses a priority that nobody knows', () => {
    expect(() => shouldRetry('urgent' as 'high', 1)).toThrow(
      'There is no priority "urgent". Use one of critical, high, medium, low.',
    );
    expect(() => getPriorityBackoff('constructor' as 'high', 1)).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_PRIORITY' }),
    );
  });
});
