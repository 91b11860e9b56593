import { simulate } from 'redrive';
import { describe, expect, it } from 'vitest';
import {
  columnsOf,
  columnWidth,
  FINE_BUCKET_MS,
  heightAfter,
  heightOf,
  roundUp,
  tickStep,
  timeLabel,
} from './columns.ts';

const simulation = simulate({}, { clients: 50, bucket: FINE_BUCKET_MS });

describe('columns', () => {
  it('lose nothing of the load', () => {
    const width = columnWidth(simulation.endedMs, 30);
    const columns = columnsOf(simulation, width, 30);
    const sum = columns.reduce((total, column) => total + column.attempts, 0);
    expect(sum).toBe(simulation.attempts);
    expect(columns.reduce((total, column) => total + heightOf(column), 0)).toBe(sum);
  });

  it('leave out what lies past their end', () => {
    expect(columnsOf(simulation, 100, 1)[0]!.attempts).toBeLessThan(simulation.attempts);
  });

  it('have a highest one after a moment, or none', () => {
    const columns = columnsOf(simulation, 100, 40);
    const highest = Math.max(...columns.slice(5).map(heightOf));
    expect(highest).toBeGreaterThan(0);
    expect(heightAfter(columns, 100, 500)).toBe(highest);
    expect(heightAfter(columns, 100, 1e6)).toBe(0);
  });

  it.each([
    [2697, 70, 40],
    [59, 70, 1],
    [132_000, 70, 2000],
  ])('are of a round width: %i ms in %i columns are %i ms each', (endedMs, columns, width) => {
    expect(columnWidth(endedMs, columns)).toBe(width);
  });
});

describe('axes', () => {
  it('end at round numbers', () => {
    expect([0, 1, 7, 11, 101, 1600, 2001].map(roundUp)).toEqual([1, 1, 8, 15, 150, 2000, 2500]);
  });

  it.each([
    [1700, 5, 500],
    [140_000, 5, 30_000],
    [140_000, 8, 20_000],
    [3_600_000, 6, 600_000],
    [31_536_000_000, 8, 4_000_000_000],
  ])('of %i ms with about %i marks have one each %i ms', (span, marks, step) => {
    expect(tickStep(span, marks)).toBe(step);
  });

  it.each([
    [0, 500, '0'],
    [50, 20, '50 ms'],
    [1500, 500, '1.5 s'],
    [120_000, 20_000, '120 s'],
    [120_000, 60_000, '2 min'],
    [7_200_000, 3_600_000, '2 h'],
    [172_800_000, 86_400_000, '2 d'],
  ])('name %i ms, in steps of %i, as %s', (at, step, text) => {
    expect(timeLabel(at, step)).toBe(text);
  });
});
