import { describe, expect, it } from 'vitest';
import { durationMs, MAX_DURATION_MS } from './duration.ts';

describe('a duration', () => {
  it.each([
    [0, 0],
    [250, 250],
    [0.5, 0.5],
    ['0s', 0],
    ['250ms', 250],
    ['2s', 2000],
    ['1.5s', 1500],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['36500d', MAX_DURATION_MS],
    ['000000000000007ms', 7],
    ['1.000000000s', 1000],
  ])('%j is %d ms', (value, ms) => {
    expect(durationMs(value)).toBe(ms);
  });

  it.each([
    ['1.001s', 1001],
    ['8.03s', 8030],
    ['0.29h', 1_044_000],
    ['1.1d', 95_040_000],
  ])('of a fraction, %s, is not a hair short of %d ms', (value, ms) => {
    expect(durationMs(value)).toBe(ms);
  });

  it('is never -0, which JSON would turn into another value', () => {
    expect(durationMs(-0)).toBe(0);
  });

  it.each([
    ['is negative', -1],
    ['is negative as a text', '-5s'],
    ['is not a number', NaN],
    ['is infinite', Infinity],
    ['is longer than a hundred years', MAX_DURATION_MS + 1],
    ['is longer than a hundred years as a text', '36501d'],
    ['has no unit', '250'],
    ['has an unknown unit', '5min'],
    ['has a unit in capitals', '5S'],
    ['has a space', '250 ms'],
    ['has a space before it', ' 250ms'],
    ['ends in a line feed', '250ms\n'],
    ['has an exponent', '1e3ms'],
    ['is hexadecimal', '0x10ms'],
    ['has no digit before its point', '.5s'],
    ['has no digit after its point', '5.s'],
    ['has two parts', '1m30s'],
    ['has more than 15 digits', '0000000000000001ms'],
    ['has more than 9 decimals', '1.0000000001s'],
    ['is empty', ''],
    ['is only a unit', 'ms'],
    ['is null', null],
    ['is missing', undefined],
    ['is a list', [5]],
    ['is an object', { valueOf: () => 5 }],
    ['is a bigint', 5n],
    ['is a boolean', true],
  ])('is none when it %s', (_why, value) => {
    expect(durationMs(value)).toBeNaN();
  });
});
