import { describe, expect, it } from 'vitest';
import { hash64, seededRandom, unitRandom } from './random.ts';

describe('the random number of a decision', () => {
  // Audit trails are replayed with these. A change here breaks every trail that was ever written.
  it.each([
    [0, '', 1, 0.308564418992581],
    [0, 'order-1', 1, 0.37983280918155526],
    [0, 'order-1', 2, 0.38519594620004927],
    [0, 'order-2', 1, 0.5912543990503646],
    [1, 'order-1', 1, 0.7750815241232974],
    [42, '550e8400-e29b-41d4-a716-446655440000', 3, 0.6662273135913515],
    [4_294_967_296, 'order-1', 1, 0.837006363816287],
    [9_007_199_254_740_991, 'заказ-7 🚚', 1_000_000_000, 0.4446803298478226],
  ])('of seed %d, key %j and attempt %d is %d for ever', (seed, key, attempt, random) => {
    expect(unitRandom(seed, key, attempt)).toBe(random);
  });

  it('depends on every bit of a seed', () => {
    const seeds = Array.from({ length: 53 }, (_, bit) => 2 ** bit);
    const delays = [0, ...seeds].map((seed) => Math.floor(unitRandom(seed, 'order-1', 1) * 1e6));
    expect(new Set(delays).size).toBe(54);
  });

  it('tells apart keys that differ in one character, in length, or in order', () => {
    const keys = [
      '',
      'a',
      'b',
      'aa',
      'ab',
      'ba',
      'a ',
      ' a',
      'A',
      '\0',
      '\0\0',
      'order-1',
      'order-10',
    ];
    expect(new Set(keys.map((key) => unitRandom(0, key, 1))).size).toBe(keys.length);
  });
});

describe('a fingerprint', () => {
  it.each([
    ['', '7206d575858afaf8'],
    ['a', '66bb88252af38f84'],
    ['{}', '092c3cca06e746c5'],
    ['order-1', 'd953083139c93a24'],
    ['ж🚚', '013d5910d5ab97b9'],
  ])('of %j is %s for ever', (text, hash) => {
    expect(hash64(text)).toBe(hash);
  });

  it('has no collision among a hundred thousand texts that are nearly alike', () => {
    const hashes = new Set<string>();
    for (let i = 0; i < 100_000; i++) hashes.add(hash64(`{"maxAttempts":${i},"base":1000}`));
    expect(hashes.size).toBe(100_000);
  });
});

describe('seeded randomness', () => {
  it('is the same sequence for the same seed', () => {
    const [one, two] = [seededRandom(7), seededRandom(7)];
    const numbers = Array.from({ length: 3 }, () => one());
    expect(numbers).toEqual([0.7930566815778778, 0.2931766894508804, 0.43448822418610633]);
    expect(Array.from({ length: 3 }, () => two())).toEqual(numbers);
  });

  it('is another sequence for another seed', () => {
    expect(seededRandom(8)()).not.toBe(seededRandom(7)());
  });
});
