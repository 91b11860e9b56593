import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Progress } from './progress.ts';

describe('Progress', () => {
  it('never passes a record that is not done', () => {
    const offsets = fc
      .uniqueArray(fc.nat(200), { minLength: 1 })
      .map((all) => all.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(offsets, fc.array(fc.nat(300)), (given, order) => {
        const progress = new Progress(0);
        for (const offset of given) progress.add(offset);
        const open = new Set(given);
        for (const pick of order) {
          const offset = given[pick % given.length]!;
          expect(progress.done(offset)).toBe(open.delete(offset));
          expect(progress.safe).toBe(Math.min(...open, given.at(-1)! + 1));
          expect(progress.openCount).toBe(open.size);
        }
      }),
    );
  });

  it('passes gaps and markers when all before them is done', () => {
    const progress = new Progress(5);
    expect(progress.uncommitted).toBeUndefined();
    progress.add(7);
    progress.advance(20);
    progress.advance(3);
    expect([progress.next, progress.uncommitted]).toEqual([20, 7]);
    progress.done(7);
    expect(progress.uncommitted).toBe(20);
    progress.committed(20);
    expect([progress.uncommitted, progress.committedOffset]).toEqual([undefined, 20]);
  });

  it('begins again where the log does', () => {
    const progress = new Progress(5);
    progress.add(7);
    progress.restart(100);
    expect(progress.done(7)).toBe(false);
    expect([progress.next, progress.safe]).toEqual([100, 100]);
  });
});
