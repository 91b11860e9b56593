import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hash64, unitRandom } from './random.ts';

const COUNT = 20_000;

/** Keys as people have them: hardly different from each other. */
const keysets: [string, (i: number) => string][] = [
  ['order numbers', (i) => `order-${i}`],
  ['padded numbers', (i) => `order-${String(i).padStart(12, '0')}`],
  ['bare numbers', (i) => String(i)],
  ['numbers in front', (i) => `${i}:payment:capture`],
  ['UUIDs of one moment', (i) => `0190e8a4-7c3b-7${hex(i, 3)}-8000-${hex(i, 12)}`],
  ['random UUIDs', (i) => hash64(String(i)) + hash64(`${i}x`)],
];
const seeds = [0, 1, 42, 2 ** 32 + 1, 9_007_199_254_740_991];
const attempts = Array.from({ length: 10 }, (_, i) => i + 1);

describe('the random number of a decision', () => {
  it('is in [0, 1) and the same whenever asked, odd numbers included', () => {
    fc.assert(
      fc.property(fc.double(), fc.string({ unit: 'binary' }), fc.double(), (seed, key, attempt) => {
        const random = unitRandom(seed, key, attempt);
        expect(random >= 0 && random < 1).toBe(true);
        expect(unitRandom(seed, key, attempt)).toBe(random);
      }),
    );
  });

  describe.each(keysets)('over %s', (_name, keyOf) => {
    const keys = Array.from({ length: COUNT }, (_, i) => keyOf(i));
    const numbers = (seed: number, attempt: number) =>
      keys.map((key) => unitRandom(seed, key, attempt));

    it('is uniform at every attempt and seed', () => {
      for (const seed of seeds) {
        for (const attempt of attempts) {
          expect(distanceFromUniform(numbers(seed, attempt))).toBeLessThan(2.5);
        }
      }
    });

    it('says nothing about the number of the next key', () => {
      for (const seed of seeds) {
        const sample = numbers(seed, 1);
        expect(dependence(sample.slice(1), sample.slice(0, -1))).toBeLessThan(4.5);
      }
    });

    it('says nothing about the number of the next attempt', () => {
      for (const attempt of attempts) {
        expect(dependence(numbers(0, attempt), numbers(0, attempt + 1))).toBeLessThan(4.5);
      }
    });

    it('says nothing about the number of another seed', () => {
      for (const other of [1, 2, 3, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 52, -1]) {
        expect(dependence(numbers(0, 1), numbers(other, 1))).toBeLessThan(4.5);
      }
      expect(dependence(numbers(1, 1), numbers(0, 2))).toBeLessThan(4.5);
    });
  });

  it('is uniform along the attempts of one key, and along the seeds', () => {
    const many = Array.from({ length: COUNT }, (_, i) => i + 1);
    const byAttempt = many.map((attempt) => unitRandom(0, 'order-1', attempt));
    const bySeed = many.map((seed) => unitRandom(seed, 'order-1', 1));
    for (const sample of [byAttempt, bySeed]) {
      expect(distanceFromUniform(sample)).toBeLessThan(2.5);
      expect(dependence(sample.slice(1), sample.slice(0, -1))).toBeLessThan(4.5);
    }
  });
});

describe('fingerprints', () => {
  it('are 16 hex digits, and another for another text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, two) => {
        expect(hash64(one)).toMatch(/^[0-9a-f]{16}$/);
        expect(hash64(one) === hash64(two)).toBe(one === two);
      }),
    );
  });
});

/** Kolmogorov and Smirnov: the distance times the root of the count. Above 2.5 once in 100,000 honest samples. */
function distanceFromUniform(sample: readonly number[]): number {
  const sorted = Float64Array.from(sample).sort();
  let distance = 0;
  sorted.forEach((x, i) => {
    distance = Math.max(distance, x - i / sorted.length, (i + 1) / sorted.length - x);
  });
  return distance * Math.sqrt(sorted.length);
}

/** Chi-square over a grid of pairs, in standard deviations from what independence gives. */
function dependence(a: readonly number[], b: readonly number[]): number {
  const side = 12;
  const cells = new Float64Array(side * side);
  a.forEach((x, i) => {
    cells[Math.floor(x * side) * side + Math.floor((b[i] as number) * side)]! += 1;
  });
  const expected = a.length / cells.length;
  const chiSquare = cells.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
  const freedom = cells.length - 1;
  return Math.abs(chiSquare - freedom) / Math.sqrt(2 * freedom);
}

function hex(i: number, digits: number): string {
  return (i % 16 ** digits).toString(16).padStart(digits, '0');
}
