import { describe, expect, it } from 'vitest';
import { loadOverTime, peakPerSecond, percentiles } from './simulate-measures.ts';

describe('the peak per second', () => {
  it('is the fullest second anywhere, not only a second of the clock', () => {
    expect(peakPerSecond([0, 900, 950, 1100, 1899, 1900, 5000])).toBe(4);
  });

  it('does not count both ends of a second', () => {
    expect(peakPerSecond([0, 1000, 2000])).toBe(1);
    expect(peakPerSecond([0, 999])).toBe(2);
  });

  it('can leave out what came before a moment', () => {
    expect(peakPerSecond([0, 1, 2, 3, 500, 501], 500)).toBe(2);
    expect(peakPerSecond([0, 1, 2], 10)).toBe(0);
    expect(peakPerSecond([])).toBe(0);
  });
});

describe('percentiles', () => {
  it('are values that occurred, by the nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(percentiles(hundred)).toEqual({ p50: 50, p90: 90, p99: 99, max: 100 });
    expect(percentiles([9, 10, 1000])).toEqual({ p50: 10, p90: 1000, p99: 1000, max: 1000 });
    expect(percentiles([7])).toEqual({ p50: 7, p90: 7, p99: 7, max: 7 });
  });

  it('of nothing are nothing', () => {
    expect(percentiles([])).toBeNull();
  });
});

describe('load over time', () => {
  const none = { served: [], down: [], overloaded: [], timedOut: [] };

  it('counts attempts when they were sent, and each outcome at its own time', () => {
    const outcomes = { served: [250], down: [0], overloaded: [99], timedOut: [200] };
    expect(loadOverTime([0, 99, 100, 200], outcomes, 260, 100)).toEqual({
      bucketMs: 100,
      load: [
        { atMs: 0, attempts: 2, served: 0, down: 1, overloaded: 1, timedOut: 0 },
        { atMs: 100, attempts: 1, served: 0, down: 0, overloaded: 0, timedOut: 0 },
        { atMs: 200, attempts: 1, served: 1, down: 0, overloaded: 0, timedOut: 1 },
      ],
    });
  });

  it.each([
    [0, 1],
    [60, 1],
    [101, 2],
    [2001, 50],
    [100_000, 1000],
    [501_000, 10_000],
    [60_001, 1000],
  ])(
    'takes a round width that gives about a hundred buckets: %i ms in steps of %i',
    (end, width) => {
      const { bucketMs, load } = loadOverTime([], none, end, undefined);
      expect(bucketMs).toBe(width);
      expect(load.length).toBeLessThanOrEqual(101);
    },
  );

  it('doubles a width that would give more buckets than anybody can use', () => {
    const { bucketMs, load } = loadOverTime([], none, 30_000, 1);
    expect(bucketMs).toBe(4);
    expect(load).toHaveLength(7501);
  });
});
