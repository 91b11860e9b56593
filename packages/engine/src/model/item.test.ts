import type { Failure } from 'redrive';
import { describe, expect, it } from 'vitest';
import { itemOf } from './item.ts';

const lane = 'handler:orders';
const fingerprintOf = (failure: Failure, its: string) =>
  itemOf('PERMANENT', failure, its).fingerprint;
const of = (message: string, more = {}) =>
  fingerprintOf({ class: 'business', message, ...more }, lane);

describe('a fingerprint', () => {
  it.each([
    ['numbers', 'order 7 has 3 lines', 'order 12345 has 1 lines'],
    [
      'ids',
      'no user 0b7c0000-0000-4000-8000-00000000c0de',
      'no user 9a4d1111-2222-4333-8444-00000000FFFF',
    ],
    ['hashes', 'object deadbeef01 is gone', 'object 0123456789abcdef is gone'],
    ['quoted values', "no such column 'name'", "no such column 'colour of the sky'"],
    ['quoted values of the other kind', 'bad value "x"', 'bad value "1, 2"'],
    ['times', 'at 2025-01-01T00:00:00Z', 'at 2026-12-31T23:59:59Z'],
  ])('is the same where only %s differ', (_, one, another) => {
    expect(of(one)).toBe(of(another));
  });

  it('differs where cause, class, code or lane differ', () => {
    const all = [
      of('connection refused'),
      of('connection reset'),
      of('connection refused', { class: 'transient' }),
      of('connection refused', { code: 'ECONNREFUSED' }),
      fingerprintOf({ class: 'business', message: 'connection refused' }, 'handler:mails'),
      fingerprintOf({ class: 'business' }, lane),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it('keeps plain words, also those that could be hex', () => {
    expect(of('the facade decade')).not.toBe(of('the decade facade'));
    expect(of('defaced')).not.toBe(of('effaced'));
  });

  it('looks at the beginning of an endless message only', () => {
    const long = 'x'.repeat(500);
    expect(of(`${long}a`)).toBe(of(`${long}b`));
  });
});

it('an item has the reason, the failure and its fingerprint', () => {
  const failure = { class: 'technical', message: 'it broke' } as const;
  expect(itemOf('PERMANENT', failure, lane)).toEqual({
    reason: 'PERMANENT',
    failure,
    fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
});
