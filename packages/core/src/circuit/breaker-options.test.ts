import { describe, expect, it } from 'vitest';
import { createBreaker } from './breaker.ts';
import { isConfigError } from '../errors.ts';
import type { BreakerOptions } from './breaker-options.ts';

function faultsOf(options: unknown): string[] {
  try {
    createBreaker(options as BreakerOptions);
    return [];
  } catch (error) {
    if (!isConfigError(error) || error.code !== 'INVALID_CONFIG') throw error;
    return error.faults.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('the options of a breaker', () => {
  it.each<BreakerOptions>([
    {},
    { openFor: {} },
    { openFor: { base: '10s', cap: '5m', multiplier: 3, jitter: 'equal', hardCap: true } },
    { openFor: { schedule: ['1s', '10s', '1m'] } },
    { rate: 0.5, windowCalls: 10 },
    { rate: 0.5, windowCalls: 10, minimumCalls: 10 },
    { rate: 0.5, window: '1m', minimumCalls: 50 },
    { probes: 5, successes: 8, probeFailures: 2 },
  ])('may be %j', (options) => {
    expect(faultsOf(options)).toEqual([]);
  });

  it('name the field of a growing openFor that is wrong', () => {
    expect(
      faultsOf({ openFor: { base: 'soon', factor: 2, deadline: '1s', strategy: 'schedule' } }),
    ).toEqual([
      expect.stringMatching(/^openFor.base: 'soon' is not a duration/),
      "openFor.factor: there is no such field. Did you mean 'multiplier'?",
      'openFor.deadline: cannot be overridden for some failures: it belongs to the whole policy.',
      expect.stringMatching(/^openFor.schedule: a schedule and the strategy/),
    ]);
  });

  it('refuse a window by count that cannot work', () => {
    expect(faultsOf({ windowCalls: 10 })).toEqual([
      'windowCalls: is the window of a rate: give a rate too.',
    ]);
    expect(faultsOf({ rate: 0.5, windowCalls: 10, window: '1s' })).toEqual([
      'windowCalls: give window or windowCalls, not both.',
    ]);
    expect(faultsOf({ rate: 0.5, windowCalls: 10, minimumCalls: 11 })).toEqual([
      'minimumCalls: 11 can never be reached in 10 calls.',
    ]);
    expect(faultsOf({ rate: 0.5, windowCalls: 2_000_000 })).toHaveLength(1);
  });

  it('list every fault at once', () => {
    expect(faultsOf({ failures: 0, openFor: { base: -1 }, probeFailures: -1 })).toHaveLength(3);
  });
});
