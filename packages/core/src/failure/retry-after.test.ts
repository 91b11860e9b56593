import { describe, expect, it } from 'vitest';
import { header, parseNumber, parseRetryAfter, wholeMs } from './retry-after.ts';

const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
const dateMs = 784111777000;

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    ['1.5', 1500],
    ['0.0001', 1],
    [' 7 ', 7000],
    ['9'.repeat(400), 3.2e12],
  ])('reads %j as seconds', (value, expected) => {
    expect(parseRetryAfter({ 'retry-after': value })).toBe(expected);
  });

  it.each(['', '-1', '+1', '1e3', '0x10', '1,2', 'soon', 'Infinity', 'NaN', '.', '1.', 'foo 5'])(
    'takes %j for no guidance',
    (value) => {
      expect(parseRetryAfter({ 'retry-after': value }, dateMs)).toBeUndefined();
    },
  );

  it('measures a date against the date of the response, not against the local clock', () => {
    const headers = { Date: date, 'Retry-After': 'Sun, 06 Nov 1994 08:50:07 GMT' };
    expect(parseRetryAfter(headers, dateMs + 1e9)).toBe(30_000);
  });

  it('measures a date against the given clock where the response has none', () => {
    expect(parseRetryAfter({ 'retry-after': date }, dateMs - 1500)).toBe(1500);
    expect(parseRetryAfter({ 'retry-after': date, date: 'yesterday' }, dateMs - 1500)).toBe(1500);
  });

  it('says nothing of a date when there is no clock at all', () => {
    expect(parseRetryAfter({ 'retry-after': date })).toBeUndefined();
    expect(parseRetryAfter({ 'retry-after': date }, Number.NaN)).toBeUndefined();
  });

  it('rounds up, so that nobody comes back early', () => {
    expect(parseRetryAfter({ 'retry-after': date }, dateMs - 0.25)).toBe(1);
  });

  it('waits for nothing when the date is past', () => {
    expect(parseRetryAfter({ 'retry-after': date }, dateMs + 5)).toBe(0);
  });

  it.each([date, 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'reads %j, one of the three shapes of an HTTP date, as UTC',
    (value) => {
      expect(parseRetryAfter({ 'retry-after': value }, dateMs - 1000)).toBe(1000);
    },
  );

  it('takes no other shape of a date, and none that does not exist', () => {
    expect(parseRetryAfter({ 'retry-after': '1994-11-06' }, 0)).toBeUndefined();
    expect(parseRetryAfter({ 'retry-after': 'Sun, 99 Foo 1994 08:49:37 GMT' }, 0)).toBeUndefined();
  });

  it('prefers retry-after-ms, unless it is garbage', () => {
    expect(parseRetryAfter({ 'retry-after-ms': '250.5', 'retry-after': '9' })).toBe(251);
    expect(parseRetryAfter({ 'retry-after-ms': 'x', 'retry-after': '9' })).toBe(9000);
  });

  describe('with a rate-limit reset', () => {
    it.each([429, 503])('counts it on a %d', (status) => {
      expect(parseRetryAfter({ 'ratelimit-reset': '5' }, 0, status)).toBe(5000);
      expect(parseRetryAfter({ 'X-RateLimit-Reset': '5' }, 0, status)).toBe(5000);
    });

    it.each([undefined, 200, 403, 500])('ignores it on a %s', (status) => {
      expect(parseRetryAfter({ 'ratelimit-reset': '5' }, 0, status)).toBeUndefined();
    });

    it('lets Retry-After and the standard name go first', () => {
      const headers = { 'ratelimit-reset': '5', 'x-ratelimit-reset': '6' };
      expect(parseRetryAfter({ ...headers, 'retry-after': '7' }, 0, 429)).toBe(7000);
      expect(parseRetryAfter(headers, 0, 429)).toBe(5000);
    });

    it('ignores it while something remains', () => {
      const reset = { 'x-ratelimit-reset': '5' };
      expect(parseRetryAfter({ ...reset, 'x-ratelimit-remaining': '1' }, 0, 429)).toBeUndefined();
      expect(
        parseRetryAfter({ ...reset, 'x-ratelimit-remaining': 'some' }, 0, 429),
      ).toBeUndefined();
      expect(parseRetryAfter({ ...reset, 'x-ratelimit-remaining': '0' }, 0, 429)).toBe(5000);
    });

    it('takes a large number for a time since the epoch, in seconds or in ms', () => {
      const reset = (value: string) =>
        parseRetryAfter({ 'x-ratelimit-reset': value }, 1.7e12 - 2000, 429);
      expect(reset('1700000000')).toBe(2000);
      expect(reset('1700000000500')).toBe(2500);
      expect(reset('1600000000')).toBe(0);
      expect(reset('1000000000')).toBe(1e12);
    });

    it('measures such a time like a date', () => {
      const headers = { 'x-ratelimit-reset': '1700000000' };
      const sent = new Date(1.7e12 - 3000).toUTCString();
      expect(parseRetryAfter({ ...headers, date: sent }, 0, 429)).toBe(3000);
      expect(parseRetryAfter(headers, undefined, 429)).toBeUndefined();
    });

    it('is no guidance when it is garbage', () => {
      expect(parseRetryAfter({ 'x-ratelimit-reset': 'soon' }, 0, 429)).toBeUndefined();
    });
  });

  it('never asks for more than a hundred years', () => {
    expect(parseRetryAfter({ 'retry-after': '99999999999' })).toBe(3.2e12);
  });

  it.each([undefined, null, 0, '', 'retry-after: 5', 5, [], new Map()])(
    'finds nothing in %j',
    (headers) => {
      expect(parseRetryAfter(headers, 0, 429)).toBeUndefined();
    },
  );
});

describe('header', () => {
  it.each([
    ['Headers', new Headers({ 'Retry-After': '5' })],
    ['a Map', new Map([['retry-after', '5']])],
    ['a Map in another case', new Map([['Retry-After', '5']])],
    ['a plain object', { 'retry-after': '5' }],
    ['a plain object in another case', { 'RETRY-After': '5' }],
    ['a number', { 'retry-after': 5 }],
    ['a list', { 'retry-after': ['5', '6'] }],
    ['something with get alone', { get: (name: string) => (name === 'retry-after' ? '5' : null) }],
    ['gRPC metadata', { get: () => ['5'] }],
  ])('reads %s', (_, headers) => {
    expect(header(headers, 'retry-after')).toBe('5');
  });

  it.each([
    ['null', null],
    ['an empty list', { 'retry-after': [] }],
    ['an object', { 'retry-after': {} }],
    [
      'a get that throws',
      {
        get: () => {
          throw new Error('no');
        },
      },
    ],
    ['a get that is no function', { get: 5 }],
  ])('finds nothing in %s', (_, headers) => {
    expect(header(headers, 'retry-after')).toBe('');
  });
});

describe('wholeMs', () => {
  it.each([
    [0, 0],
    [0.1, 1],
    [1500, 1500],
    [Number.POSITIVE_INFINITY, 3.2e12],
    [-1, undefined],
    [Number.NaN, undefined],
    ['5', undefined],
    [undefined, undefined],
  ])('makes %s a wait of %s', (value, expected) => {
    expect(wholeMs(value)).toBe(expected);
  });
});

describe('parseNumber', () => {
  it('knows digits and a decimal point, nothing else', () => {
    expect(parseNumber('12.5')).toBe(12.5);
    expect(parseNumber('-1')).toBeNaN();
    expect(parseNumber('1e3')).toBeNaN();
    expect(parseNumber('')).toBeNaN();
  });
});
