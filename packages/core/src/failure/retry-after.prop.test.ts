import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from './retry-after.ts';

const names = [
  'retry-after',
  'Retry-After',
  'retry-after-ms',
  'date',
  'ratelimit-reset',
  'x-ratelimit-reset',
  'x-ratelimit-remaining',
];
const values = fc.oneof(
  fc.string(),
  fc.double(),
  fc.double().map(String),
  fc.nat().map(String),
  fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  fc.array(fc.string()),
);
const headersOf = fc.oneof(
  fc.dictionary(fc.constantFrom(...names), values),
  fc.array(fc.tuple(fc.constantFrom(...names), values)).map((entries) => new Map(entries)),
  fc.anything({ withMap: true, withNullPrototype: true }),
);

describe('parseRetryAfter, whatever it is handed', () => {
  it('gives whole ms between 0 and a hundred years, or nothing', () => {
    fc.assert(
      fc.property(
        headersOf,
        fc.option(fc.double(), { nil: undefined }),
        fc.constantFrom(undefined, 200, 429, 503),
        (headers, nowMs, status) => {
          const ms = parseRetryAfter(headers, nowMs, status);
          if (ms === undefined) return;
          expect(Number.isInteger(ms)).toBe(true);
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(ms).toBeLessThanOrEqual(3.2e12);
        },
      ),
    );
  });

  it('never comes back before the seconds it was told', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e9, noNaN: true }), (seconds) => {
        const text = seconds.toFixed(6);
        const ms = parseRetryAfter({ 'retry-after': text });
        expect(ms).toBeGreaterThanOrEqual(Number(text) * 1000);
        expect(ms).toBeLessThan(Number(text) * 1000 + 1);
      }),
    );
  });

  it('waits until the date, whatever the local clock says, when the response is dated', () => {
    fc.assert(
      fc.property(fc.nat(4e9), fc.nat(1e6), fc.double(), (sent, seconds, nowMs) => {
        const headers = {
          date: new Date(sent * 1000).toUTCString(),
          'retry-after': new Date((sent + seconds) * 1000).toUTCString(),
        };
        expect(parseRetryAfter(headers, nowMs)).toBe(seconds * 1000);
      }),
    );
  });
});
