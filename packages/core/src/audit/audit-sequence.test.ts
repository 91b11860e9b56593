import { expect, it } from 'vitest';
import { Sequences } from './audit-sequence.ts';

it('follows ten thousand runs at once, and counts what the oldest lack before it lets them go', () => {
  const sequences = new Sequences(10);
  for (const n of [1, 4]) sequences.see('first', 1, n);
  for (let run = 2; run <= 10_001; run++) sequences.see('other', run, 1);
  // Too late to fill the gap: its run is forgotten, and begins anew.
  sequences.see('first', 1, 2);
  expect(sequences.end()).toEqual({
    missing: 2,
    gaps: [{ instance: 'first', run: 1, from: 2, to: 3 }],
  });
});

it('keeps a thousand gaps of a run open, and counts those before them as missing', () => {
  const sequences = new Sequences(1);
  for (let n = 1; n <= 2003; n += 2) sequences.see('one', 1, n);
  // The first gap is closed by now, the second still open.
  sequences.see('one', 1, 4);
  sequences.see('one', 1, 2);
  expect(sequences.twins).toBe(1);
  expect(sequences.end()).toEqual({
    missing: 1000,
    gaps: [{ instance: 'one', run: 1, from: 2, to: 2 }],
  });
});
