import { describe, expect, it } from 'vitest';
import { atLeast, clampRandom, delayFor, delayOf } from './backoff.ts';
import { definePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';

const ALMOST_ONE = 0.9999;

/** The delays without their jitter. */
function raws(policy: Policy, attempts: readonly number[] = [1, 2, 3, 4, 5]): number[] {
  const steady = definePolicy({ ...policy, jitter: 'none' });
  return attempts.map((attempt) => delayFor(steady, { attempt }));
}

describe('the raw delay', () => {
  it.each([
    [
      'exponential',
      { strategy: 'exponential', base: 100, multiplier: 2 },
      [100, 200, 400, 800, 1600],
    ],
    ['exponential, times 3', { base: 100, multiplier: 3 }, [100, 300, 900, 2700, 8100]],
    ['exponential, times 1', { base: 100, multiplier: 1 }, [100, 100, 100, 100, 100]],
    ['exponential, times 1.5', { base: 1000, multiplier: 1.5 }, [1000, 1500, 2250, 3375, 5062]],
    ['exponential from nothing', { base: 0 }, [0, 0, 0, 0, 0]],
    ['linear', { strategy: 'linear', base: 100 }, [100, 200, 300, 400, 500]],
    ['linear from nothing', { strategy: 'linear', base: 0 }, [0, 0, 0, 0, 0]],
    ['fixed', { strategy: 'fixed', base: 100 }, [100, 100, 100, 100, 100]],
    ['schedule', { strategy: 'schedule', schedule: [5, 60, '1s'] }, [5, 60, 1000, 1000, 1000]],
    ['schedule that falls', { schedule: [60, 5] }, [60, 5, 5, 5, 5]],
    ['exponential, capped', { base: 100, cap: 350 }, [100, 200, 350, 350, 350]],
    ['linear, capped', { strategy: 'linear', base: 100, cap: 350 }, [100, 200, 300, 350, 350]],
    ['fixed, capped', { strategy: 'fixed', base: 100, cap: 50 }, [50, 50, 50, 50, 50]],
    ['schedule, capped', { schedule: [5, 60, 1000], cap: 350 }, [5, 60, 350, 350, 350]],
    ['exponential, capped at nothing', { base: 100, cap: 0 }, [0, 0, 0, 0, 0]],
  ] as const)('is %s', (_name, policy, expected) => {
    expect(raws(policy)).toEqual(expected);
  });

  it('of a schedule is that of the whole attempt below', () => {
    expect(raws({ schedule: [5, 60] }, [1.9, 2.1])).toEqual([5, 60]);
  });

  it.each([
    ['exponential', { base: 100, cap: '60s' }, 60_000],
    ['exponential, hardly growing', { base: 100, multiplier: 1.000001, cap: '60s' }, 60_000],
    ['exponential, times 1', { base: 100, multiplier: 1, cap: '60s' }, 100],
    ['exponential from nothing', { base: 0, cap: '60s' }, 0],
    ['linear', { strategy: 'linear', base: 100, cap: '60s' }, 60_000],
    ['linear from nothing', { strategy: 'linear', base: 0, cap: '60s' }, 0],
    ['fixed', { strategy: 'fixed', base: 100, cap: '60s' }, 100],
    ['schedule', { schedule: [1, 2, 3], cap: '60s' }, 3],
  ] as const)('saturates at huge attempts: %s', (_name, policy, expected) => {
    const huge = [1e9, 2 ** 53, 1e300, Number.MAX_VALUE, Infinity];
    expect(raws(policy, huge)).toEqual(huge.map(() => expected));
  });

  it('of an attempt that is none is that of the first', () => {
    for (const policy of [
      { base: 100 },
      { strategy: 'linear', base: 100 },
      { schedule: [100, 5] },
    ] as const) {
      expect(raws(policy, [0, -1, -Infinity, NaN, 0.5, -0])).toEqual([
        100, 100, 100, 100, 100, 100,
      ]);
    }
  });
});

describe('jitter, row by row', () => {
  const base = { strategy: 'fixed', base: 1000 } as const;
  const walk = { base: 1000, cap: 100_000, jitter: 'decorrelated' } as const;

  it.each([
    ['none: d', { ...base, jitter: 'none' }, undefined, [1000, 1000, 1000]],
    [
      'up: d + U[0, r*d]',
      { ...base, jitter: 'up', jitterRatio: 0.3 },
      undefined,
      [1000, 1150, 1299],
    ],
    ['up, by 0.1 unless told', { ...base, jitter: 'up' }, undefined, [1000, 1050, 1099]],
    [
      'around: d + U[-r*d, +r*d]',
      { ...base, jitter: 'around', jitterRatio: 0.1 },
      undefined,
      [900, 1000, 1099],
    ],
    [
      'around, at least 0',
      { ...base, jitter: 'around', jitterRatio: 1 },
      undefined,
      [0, 1000, 1999],
    ],
    [
      'add: d + U[0, ms]',
      { ...base, jitter: 'add', jitterAdd: '5s' },
      undefined,
      [1000, 3500, 5999],
    ],
    ['add, 1000 ms unless told', { ...base, jitter: 'add' }, undefined, [1000, 1500, 1999]],
    ['full: U[0, d]', { ...base, jitter: 'full' }, undefined, [0, 500, 999]],
    ['full unless told', base, undefined, [0, 500, 999]],
    ['equal: d/2 + U[0, d/2]', { ...base, jitter: 'equal' }, undefined, [500, 750, 999]],
    ['decorrelated: U[base, 3*base] at first', walk, undefined, [1000, 2000, 2999]],
    ['decorrelated: U[base, 3*previous]', walk, 7000, [1000, 11_000, 20_998]],
    ['decorrelated: U[base, cap] once 3*previous is more', walk, 50_000, [1000, 50_500, 99_990]],
    ['decorrelated, its previous at least base', walk, 10, [1000, 2000, 2999]],
    ['decorrelated, its base above its cap', { ...walk, cap: 400 }, undefined, [400, 400, 400]],
  ] as const)('%s', (_formula, policy, previousMs, expected) => {
    const delays = [0, 0.5, ALMOST_ONE].map((random) =>
      delayFor(policy, { attempt: 1, random, ...(previousMs && { previousMs }) }),
    );
    expect(delays).toEqual(expected);
  });

  it('comes after the cap, so that it is still there at the cap', () => {
    const policy = { base: 1000, cap: 5000, jitter: 'up', jitterRatio: 0.3 } as const;
    expect(delayFor(policy, { attempt: 50, random: 0 })).toBe(5000);
    expect(delayFor(policy, { attempt: 50, random: ALMOST_ONE })).toBe(6499);
  });

  it.each([
    ['up', { jitter: 'up', jitterRatio: 1 }],
    ['around', { jitter: 'around', jitterRatio: 1 }],
    ['add', { jitter: 'add', jitterAdd: '1h' }],
  ] as const)('%s is clamped to a hard cap', (_name, jitter) => {
    const policy = { base: 1000, cap: 5000, hardCap: true, ...jitter };
    expect(delayFor(policy, { attempt: 50, random: ALMOST_ONE })).toBe(5000);
  });

  it('without a random number is the middle', () => {
    const policy = { strategy: 'fixed', base: 1000, jitter: 'full' } as const;
    for (const random of [undefined, NaN, Infinity, -Infinity]) {
      expect(delayFor(policy, { attempt: 1, ...(random !== undefined && { random }) })).toBe(500);
    }
  });

  it('clamps a random number that is out of its range', () => {
    const policy = { strategy: 'fixed', base: 1000, jitter: 'full' } as const;
    expect(delayFor(policy, { attempt: 1, random: -5 })).toBe(0);
    expect(delayFor(policy, { attempt: 1, random: -0 })).toBe(0);
    expect(delayFor(policy, { attempt: 1, random: 1 })).toBe(1000);
    expect(delayFor(policy, { attempt: 1, random: 5 })).toBe(1000);
  });
});

describe('the delay', () => {
  it('is rounded down to whole ms', () => {
    const policy = { base: 0.6, multiplier: 1.5, jitter: 'none' } as const;
    const delays = [1, 2, 3, 4, 5].map((attempt) => delayFor(policy, { attempt }));
    expect(delays).toEqual([0, 0, 1, 2, 3]);
  });

  it('stays within a hard cap that is not whole', () => {
    expect(delayFor({ base: 9, cap: 2.5, hardCap: true, jitter: 'none' }, { attempt: 1 })).toBe(2);
  });

  it('of a policy that is faulty uses the default of each faulty field', () => {
    const faulty = { base: 'soon', cap: 150, jitter: 'none', strategy: 7 } as unknown as Policy;
    expect(delayFor(faulty, { attempt: 1 })).toBe(150);
    expect(delayFor(null as unknown as Policy, { attempt: 1 })).toBe(100);
  });

  it('is the same with facts taken apart', () => {
    const policy = definePolicy({ jitter: 'decorrelated' });
    expect(delayOf(policy, 3, () => 0.25, 900)).toBe(
      delayFor(policy, { attempt: 3, random: 0.25, previousMs: 900 }),
    );
  });

  it('exists without facts', () => {
    expect(delayFor({}, undefined as unknown as { attempt: number })).toBe(100);
  });
});

describe('numbers from outside', () => {
  it('are at least the least, and can still be counted', () => {
    expect([5, 0.5, 0, -1, NaN, -Infinity].map((n) => atLeast(n, 0.5))).toEqual([
      5, 0.5, 0.5, 0.5, 0.5, 0.5,
    ]);
    expect(atLeast(Infinity, 1)).toBe(Number.MAX_SAFE_INTEGER);
    expect(atLeast(undefined, 1)).toBe(1);
    for (const odd of ['5', 5n, null, [5], Symbol('5'), {}]) {
      expect(atLeast(odd as number, 1)).toBe(1);
    }
  });

  it('that are to be random are in [0, 1] or nothing', () => {
    expect([0, 0.3, 1, 7, -7].map((n) => clampRandom(n))).toEqual([0, 0.3, 1, 1, 0]);
    expect([NaN, Infinity, undefined].map((n) => clampRandom(n))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
