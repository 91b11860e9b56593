import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { delayFor, type DelayFacts } from './backoff.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import { type Policy, policyFields } from './policy-fields.ts';
import { unitRandom } from './random.ts';

const jitters = policyFields.jitter.of;
const duration = fc.oneof(
  fc.nat({ max: 10_000 }),
  fc.nat({ max: 3_153_600_000_000 }),
  fc.double({ min: 0, max: 1e9, noNaN: true }),
);
const shape = fc.record({
  base: duration,
  cap: duration,
  multiplier: fc.oneof(fc.constantFrom(1, 2), fc.double({ min: 1, max: 1000, noNaN: true })),
  jitterRatio: fc.double({ min: 0, max: 1, noNaN: true }),
  jitterAdd: duration,
  hardCap: fc.boolean(),
});
const growing = fc
  .tuple(shape, fc.constantFrom('exponential', 'linear', 'fixed'))
  .map(([rest, strategy]) => ({ ...rest, strategy }) satisfies Policy);
const scheduled = fc
  .tuple(shape, fc.array(duration, { minLength: 1, maxLength: 20 }))
  .map(([rest, schedule]) => ({ ...rest, schedule }) satisfies Policy);
const policies: fc.Arbitrary<Policy> = fc
  .tuple(fc.oneof(growing, scheduled), fc.constantFrom(...jitters))
  .map(([rest, jitter]) => {
    const walks = jitter === 'decorrelated' && (rest as Policy).strategy !== 'exponential';
    return { ...rest, jitter: walks ? 'full' : jitter };
  });

const attempts = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 1e9 }));
const oddNumbers = fc.oneof(
  attempts,
  fc.double(),
  fc.constantFrom(NaN, Infinity, -Infinity, 0, -0, -1, 1.5, 1e9, 2 ** 53, Number.MAX_VALUE),
);
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const previous = fc.option(duration, { nil: undefined });

function factsOf(attempt: number, random: number, previousMs: number | undefined): DelayFacts {
  return { attempt, random, ...(previousMs !== undefined && { previousMs }) };
}

describe('the raw delay', () => {
  it('never falls from one attempt to the next, and never exceeds the cap', () => {
    fc.assert(
      fc.property(growing, attempts, (policy, attempt) => {
        const p = definePolicy(policy);
        const raw = withoutJitter(p, attempt);
        expect(raw).toBeLessThanOrEqual(p.cap);
        expect(withoutJitter(p, attempt + 1)).toBeGreaterThanOrEqual(raw);
      }),
    );
  });

  it('is base * 2^(n-1) to the last digit', () => {
    fc.assert(
      fc.property(fc.nat(), attempts, duration, (base, attempt, cap) => {
        const p = definePolicy({ base, cap, multiplier: 2 });
        const exact = BigInt(base) << BigInt(Math.min(attempt - 1, 100));
        expect(withoutJitter(p, attempt)).toBe(Math.floor(Math.min(Number(exact), p.cap)));
      }),
    );
  });

  it('is that of the formula, capped and rounded down', () => {
    fc.assert(
      fc.property(policies, attempts, (policy, attempt) => {
        const p = definePolicy(policy);
        expect(withoutJitter(p, attempt)).toBe(Math.floor(rawOf(p, attempt)));
      }),
    );
  });

  it('stays finite whatever the attempt', () => {
    fc.assert(
      fc.property(policies, oddNumbers, (policy, attempt) => {
        const p = definePolicy(policy);
        const raw = withoutJitter(p, attempt);
        expect(raw >= 0 && raw <= p.cap).toBe(true);
      }),
    );
  });
});

describe('the delay', () => {
  it('is whole ms, never NaN, Infinity or negative, whatever the numbers', () => {
    fc.assert(
      fc.property(
        policies,
        oddNumbers,
        oddNumbers,
        oddNumbers,
        (policy, attempt, random, before) => {
          const delayMs = delayFor(policy, { attempt, random, previousMs: before });
          expect(Number.isSafeInteger(delayMs)).toBe(true);
          expect(delayMs).toBeGreaterThanOrEqual(0);
          expect(delayMs).not.toBe(-0);
        },
      ),
    );
  });

  it('exists for any policy and facts at all', () => {
    const anything = fc.anything({
      withBigInt: true,
      withNullPrototype: true,
      withSparseArray: true,
    });
    const facts = fc.oneof(
      anything,
      fc.record({ attempt: anything, random: anything, previousMs: anything }),
    );
    const policy = fc.oneof(
      anything,
      fc.dictionary(fc.constantFrom(...Object.keys(policyFields)), anything),
    );
    fc.assert(
      fc.property(policy, facts, (odd, asked) => {
        const delayMs = delayFor(odd as Policy, asked as DelayFacts);
        expect(Number.isSafeInteger(delayMs) && delayMs >= 0).toBe(true);
      }),
    );
  });

  it('is the same for the same facts, and for the policy as JSON', () => {
    fc.assert(
      fc.property(policies, attempts, randoms, previous, (policy, attempt, random, before) => {
        const facts = factsOf(attempt, random, before);
        const delayMs = delayFor(policy, facts);
        expect(delayFor(definePolicy(policy), facts)).toBe(delayMs);
        expect(delayFor(JSON.parse(JSON.stringify(policy)) as Policy, facts)).toBe(delayMs);
      }),
    );
  });

  it('keeps to the range of its jitter', () => {
    fc.assert(
      fc.property(policies, attempts, randoms, previous, (policy, attempt, random, before) => {
        const p = definePolicy(policy);
        const [low, high] = rangeOf(p, rawOf(p, attempt), before);
        const hard = p.hardCap ? p.cap : Infinity;
        const delayMs = delayFor(p, factsOf(attempt, random, before));
        // The last bit of a product may be rounded up or down.
        expect(delayMs).toBeGreaterThanOrEqual(Math.floor(Math.min(low, hard) * (1 - 1e-15)));
        expect(delayMs).toBeLessThanOrEqual(Math.min(high * (1 + 1e-15), hard));
      }),
    );
  });

  it('grows with the random number', () => {
    fc.assert(
      fc.property(
        policies,
        attempts,
        randoms,
        randoms,
        previous,
        (policy, attempt, a, b, before) => {
          const p = definePolicy(policy);
          const less = delayFor(p, factsOf(attempt, Math.min(a, b), before));
          const more = delayFor(p, factsOf(attempt, Math.max(a, b), before));
          expect(less).toBeLessThanOrEqual(more);
        },
      ),
    );
  });

  it('never exceeds a hard cap', () => {
    fc.assert(
      fc.property(policies, oddNumbers, oddNumbers, (policy, attempt, random) => {
        const p = definePolicy({ ...policy, hardCap: true });
        expect(delayFor(p, { attempt, random })).toBeLessThanOrEqual(p.cap);
      }),
    );
  });

  it('is capped before jitter: past the cap every attempt has the same range', () => {
    fc.assert(
      fc.property(fc.constantFrom(...jitters), attempts, randoms, (jitter, more, random) => {
        const p = definePolicy({ base: 1000, cap: 8000, jitter, jitterRatio: 0.5 });
        const atCap = delayFor(p, { attempt: 4, random });
        expect(delayFor(p, { attempt: 4 + more, random })).toBe(atCap);
      }),
    );
  });
});

describe('the distribution of jitter', () => {
  const d = 1_000_000_000;
  const keys = Array.from({ length: 20_000 }, (_, i) => `order-${i}`);

  it.each([...jitters].filter((jitter) => jitter !== 'none'))(
    '%s is uniform over its range',
    (jitter) => {
      const p = definePolicy({ base: d, cap: 100 * d, jitter, jitterRatio: 0.3, jitterAdd: 5 * d });
      for (const attempt of [1, 2, 3, 10]) {
        const [low, high] = rangeOf(p, rawOf(p, attempt), 7 * d);
        const sample = keys.map((key) => {
          const random = unitRandom(0, key, attempt);
          return (delayFor(p, { attempt, random, previousMs: 7 * d }) - low) / (high - low);
        });
        expect(distanceFromUniform(sample)).toBeLessThan(2.5);
        expect(Math.min(...sample)).toBeLessThan(0.001);
        expect(Math.max(...sample)).toBeGreaterThan(0.999);
      }
    },
  );

  it('none is always the same delay', () => {
    const delays = keys.map((key) =>
      delayFor({ jitter: 'none' }, { attempt: 3, random: unitRandom(0, key, 3) }),
    );
    expect(new Set(delays)).toEqual(new Set([800]));
  });
});

describe('the walk of the decorrelated jitter', () => {
  it('stays between base and three times the step before, under the cap', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat({ max: 1_000_000 }), duration, (seed, base, cap) => {
        const p = definePolicy({ base, cap, jitter: 'decorrelated' });
        const low = Math.min(base, p.cap);
        let before: number | undefined;
        for (let attempt = 1; attempt <= 50; attempt++) {
          const delayMs = delayFor(p, factsOf(attempt, unitRandom(seed, 'walk', attempt), before));
          expect(delayMs).toBeGreaterThanOrEqual(Math.floor(low));
          expect(delayMs).toBeLessThanOrEqual(Math.min(p.cap, 3 * Math.max(low, before ?? low)));
          before = delayMs;
        }
      }),
    );
  });

  it('is uniform at every step, given the step before, and gets to the cap', () => {
    const p = definePolicy({ base: 1_000_000, cap: 1_000_000_000, jitter: 'decorrelated' });
    const shares: number[] = [];
    let longest = 0;
    for (let walk = 0; walk < 1000; walk++) {
      let before = p.base;
      for (let attempt = 1; attempt <= 20; attempt++) {
        const random = unitRandom(0, `order-${walk}`, attempt);
        const delayMs = delayFor(p, { attempt, random, previousMs: before });
        shares.push((delayMs - p.base) / (Math.min(p.cap, 3 * before) - p.base));
        longest = Math.max(longest, delayMs);
        before = delayMs;
      }
    }
    expect(distanceFromUniform(shares)).toBeLessThan(2.5);
    expect(longest).toBeGreaterThan(0.99 * p.cap);
  });
});

function withoutJitter(policy: Policy, attempt: number): number {
  return delayFor({ ...policy, jitter: 'none' }, { attempt });
}

/** The raw delay of attempt n for whole attempts, saturated at the cap. */
function rawOf(p: DefinedPolicy, n: number): number {
  const grown = {
    exponential: () => (p.base === 0 ? 0 : p.base * p.multiplier ** (n - 1)),
    linear: () => p.base * n,
    fixed: () => p.base,
    schedule: () => p.schedule?.[n - 1] ?? p.schedule?.at(-1) ?? NaN,
  };
  return Math.min(grown[p.strategy](), p.cap);
}

/** The least and the most that the table of jitters allows for a capped delay d. */
function rangeOf(p: DefinedPolicy, d: number, previousMs = 0): [number, number] {
  const base = Math.min(p.base, p.cap);
  const ranges: Record<DefinedPolicy['jitter'], [number, number]> = {
    none: [d, d],
    up: [d, d + p.jitterRatio * d],
    around: [Math.max(0, d - p.jitterRatio * d), d + p.jitterRatio * d],
    add: [d, d + p.jitterAdd],
    full: [0, d],
    equal: [d / 2, d],
    decorrelated: [base, Math.min(p.cap, 3 * Math.max(previousMs, base))],
  };
  return ranges[p.jitter];
}

/** Kolmogorov and Smirnov: the distance times the root of the count. Above 2.5 once in 100,000 honest samples. */
function distanceFromUniform(sample: readonly number[]): number {
  const sorted = Float64Array.from(sample).sort();
  let distance = 0;
  sorted.forEach((x, i) => {
    distance = Math.max(distance, x - i / sorted.length, (i + 1) / sorted.length - x);
  });
  return distance * Math.sqrt(sorted.length);
}
