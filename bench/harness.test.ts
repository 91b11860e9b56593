import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Contestant, type Effort, measure, median } from './harness.ts';

const effort: Effort = {
  rounds: 3,
  sampleMs: 1,
  warmUpMs: 1,
  memoryCalls: 1,
  turns: 1,
  tasks: 1,
  backlog: 1,
  crowd: 1,
  spanMs: 1,
};

describe('median', () => {
  it('is the middle one of an odd number of values, whatever their order', () => {
    expect(median([5, 1, 100])).toBe(5);
  });

  it('is between the two in the middle of an even number', () => {
    expect(median([4, 1, 100, 2])).toBe(3);
  });

  it('is no number where there is nothing', () => {
    expect(median([])).toBeNaN();
  });

  it('leaves the values as they were', () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('measure', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it('gives every contestant, in their order, a time and a spread', async () => {
    vi.stubGlobal('gc', () => undefined);
    const measured = await measure([answering('redrive', 42), answering('bare', 42)], effort);
    expect(measured.map(({ name }) => name)).toEqual(['redrive', 'bare']);
    for (const { nsPerOp, spread } of measured) {
      expect(nsPerOp).toBeGreaterThan(0);
      expect(spread).toBeGreaterThanOrEqual(0);
    }
  });

  it('lets everybody have a turn in every round, and begins each round with another one', async () => {
    const turns: string[] = [];
    let warm = false;
    vi.stubGlobal('gc', () => {
      warm = true;
    });
    const noting = (name: string): Contestant => ({
      ...answering(name, 42),
      check: () => {
        if (warm && turns.at(-1) !== name) turns.push(name);
      },
    });
    await measure([noting('a'), noting('b'), noting('c')], effort);
    expect(turns.join('')).toBe('abcbcacab');
  });

  it('refuses a contestant that comes to something wrong', async () => {
    await expect(measure([{ ...answering('liar', 41), expected: 42 }], effort)).rejects.toThrow(
      'a call came to 41 instead of 42',
    );
  });

  it('counts the operations of a call that makes a crowd of them', async () => {
    vi.stubGlobal('gc', () => undefined);
    const ops: number[] = [];
    const crowd = { ...answering('redrive', 42), opsPerCall: 1000 };
    await measure([{ ...crowd, check: (count) => ops.push(count) }], effort);
    expect(ops.every((count) => count % 1000 === 0)).toBe(true);
  });
});

function answering(name: string, answer: number): Contestant {
  return {
    name,
    call: () => Math.sqrt(answer * answer),
    expected: answer,
    sync: true,
    waits: true,
  };
}
