import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agenda } from './agenda.ts';

const times = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 60 });

describe('the agenda', () => {
  it('has nothing to say while it is empty', () => {
    const agenda = new Agenda(1);
    expect(agenda.size).toBe(0);
    expect(agenda.nextAt).toBe(Infinity);
  });

  it('gives everybody a turn, by time and then by number', () => {
    fc.assert(
      fc.property(times, (list) => {
        const agenda = new Agenda(list.length);
        list.forEach((at, client) => agenda.add(client, at));
        const taken = list.map(() => [agenda.nextAt, agenda.take()]);
        const expected = list.map((at, client) => [at, client]);
        expect(taken).toEqual(expected.sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]!));
        expect(agenda.size).toBe(0);
      }),
    );
  });

  it('keeps the order when clients come back while others are waiting', () => {
    fc.assert(
      fc.property(
        times,
        fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 60 }),
        (list, again) => {
          const agenda = new Agenda(list.length);
          list.forEach((at, client) => agenda.add(client, at));
          let now = 0;
          let turns = 0;
          const delays = [...again];
          while (agenda.size > 0) {
            expect(agenda.nextAt).toBeGreaterThanOrEqual(now);
            now = agenda.nextAt;
            const client = agenda.take();
            turns += 1;
            const delay = delays.pop();
            if (delay !== undefined) agenda.add(client, now + delay);
          }
          expect(turns).toBe(list.length + again.length);
        },
      ),
    );
  });
});
