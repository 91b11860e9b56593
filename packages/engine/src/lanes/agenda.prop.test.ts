import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Agenda } from './agenda.ts';

const steps = fc.array(
  fc.record({
    id: fc.nat(12),
    // Few times, so that many are equal.
    atMs: fc.option(fc.nat(5), { nil: undefined }),
  }),
  { maxLength: 60 },
);

test('an agenda gives what a sorted list gives, whatever is added, moved and deleted', () => {
  fc.assert(
    fc.property(steps, fc.nat(5), fc.nat(10), (all, untilMs, limit) => {
      const agenda = new Agenda();
      const times = new Map<number, number>();
      for (const { id, atMs } of all) {
        if (atMs === undefined) {
          agenda.delete(id);
          times.delete(id);
        } else {
          agenda.set(id, atMs);
          times.set(id, atMs);
        }
        expect(agenda.first()).toEqual(sorted(times)[0]);
        expect(agenda.size).toBe(times.size);
      }
      const taken: number[] = [];
      agenda.takeWhile(untilMs, (id) => taken.length < limit && taken.push(id) > 0);
      const due = sorted(times).filter(({ atMs }) => atMs <= untilMs);
      expect(taken).toEqual(due.slice(0, limit).map(({ id }) => id));
      expect(drained(agenda)).toEqual(sorted(times));
    }),
  );
});

function sorted(times: ReadonlyMap<number, number>): { id: number; atMs: number }[] {
  return [...times]
    .map(([id, atMs]) => ({ id, atMs }))
    .sort((a, b) => a.atMs - b.atMs || a.id - b.id);
}

function drained(agenda: Agenda): unknown[] {
  const entries: unknown[] = [];
  for (let top = agenda.first(); top; top = agenda.first()) {
    entries.push(top);
    agenda.delete(top.id);
  }
  return entries;
}
