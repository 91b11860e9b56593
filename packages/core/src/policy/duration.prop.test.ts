import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMs, MAX_DURATION_MS } from './duration.ts';

const units = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n };
const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]));

describe('durations', () => {
  it('are ms from 0 to a hundred years, or NaN, whatever is given', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.anything({ withBigInt: true, withNullPrototype: true }), fc.double()),
        (value) => {
          const ms = durationMs(value);
          expect(Number.isNaN(ms) || (ms >= 0 && ms <= MAX_DURATION_MS)).toBe(true);
          expect(ms).not.toBe(-0);
        },
      ),
    );
  });

  it('as whole numbers with a unit are exact', () => {
    fc.assert(
      fc.property(fc.nat({ max: 36_500 }), unit, (count, name) => {
        expect(durationMs(`${count}${name}`)).toBe(Number(BigInt(count) * units[name]));
      }),
    );
  });

  it('with three decimals are exact, where arithmetic with fractions would not be', () => {
    fc.assert(
      fc.property(fc.nat({ max: 3650 }), fc.nat({ max: 999 }), unit, (whole, thousandths, name) => {
        const text = `${whole}.${String(thousandths).padStart(3, '0')}${name}`;
        const exact = Number(BigInt(whole * 1000 + thousandths) * units[name]) / 1000;
        expect(durationMs(text)).toBe(exact);
      }),
    );
  });

  it('as numbers stay what they are', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: MAX_DURATION_MS, noNaN: true }), (ms) => {
        expect(durationMs(ms)).toBe(ms + 0);
      }),
    );
  });
});
