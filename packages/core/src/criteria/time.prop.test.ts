import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasZone, parseIsoTime } from './time.ts';

const epochMs = fc.integer({ min: Date.parse('0000-01-02'), max: Date.parse('9999-12-30') });
const pad = (value: number): string => String(value).padStart(2, '0');

describe('parseIsoTime', () => {
  it('reads back every time that a Date prints', () => {
    fc.assert(
      fc.property(epochMs, (ms) => {
        expect(parseIsoTime(new Date(ms).toISOString())).toBe(ms);
      }),
    );
  });

  it('reads one instant the same in every zone', () => {
    const offset = fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 });
    fc.assert(
      fc.property(epochMs, offset, fc.constantFrom(':', ''), (ms, minutes, colon) => {
        const local = new Date(ms + minutes * 60_000).toISOString().slice(0, -1);
        const size = Math.abs(minutes);
        const zone = `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}${colon}${pad(size % 60)}`;
        expect(parseIsoTime(local + zone)).toBe(ms);
        expect(hasZone(local + zone)).toBe(true);
        expect(hasZone(local)).toBe(false);
      }),
    );
  });

  it('accepts a calendar date only if it exists', () => {
    const field = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });
    fc.assert(
      fc.property(
        fc.integer({ min: 1000, max: 9999 }),
        field(14),
        field(33),
        (year, month, day) => {
          const date = new Date(Date.UTC(year, month - 1, day));
          const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
          const ms = parseIsoTime(`${year}-${pad(month)}-${pad(day)}T00:00:00Z`);
          expect(ms).toBe(exists ? date.getTime() : Number.NaN);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('is a number of ms or NaN for any text, and never more lenient than Date.parse', () => {
    const nearMiss = fc
      .tuple(epochMs, fc.nat(23), fc.string({ maxLength: 2 }))
      .map(([ms, at, other]) => {
        const text = new Date(ms).toISOString();
        return text.slice(0, at) + other + text.slice(at + 1);
      });
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearMiss), (text) => {
        const ms = parseIsoTime(text);
        // The forms that ISO-8601 has and Date.parse does not know.
        if (/,|[+-]\d\d(\d\d)?$/.test(text)) return;
        if (!Number.isNaN(ms)) {
          expect(Math.floor(ms)).toBe(Date.parse(hasZone(text) ? text : `${text}Z`));
        }
      }),
      { numRuns: 1000 },
    );
  });
});
