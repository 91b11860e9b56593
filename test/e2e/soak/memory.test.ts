import { expect, it } from 'vitest';
import { Memory } from './memory.ts';

const MIB = 2 ** 20;

function verdictOn(minutes: number, mibAt: (share: number) => number) {
  const memory = new Memory();
  for (let second = 0; second <= minutes * 60; second++) {
    const bytes = mibAt(second / (minutes * 60)) * MIB;
    memory.add('one', { atMs: second * 1000, bytes });
  }
  return memory.verdicts()[0]!;
}

it('takes memory that fills up first and stays then for flat', () => {
  expect(verdictOn(10, (share) => 100 + 400 * Math.min(share, 0.4)).isFlat).toBe(true);
});

it('finds memory that grows all the time', () => {
  expect(verdictOn(10, (share) => 100 + 400 * share)).toMatchObject({ isFlat: false });
});

it('forgives a peak in between, and what comes and goes', () => {
  expect(verdictOn(10, (share) => (share > 0.7 && share < 0.75 ? 900 : 200)).isFlat).toBe(true);
});

it('cannot tell by a minute', () => {
  expect(verdictOn(1, (share) => 100 + 400 * share).isFlat).toBeUndefined();
});
