import { describe, expect, test } from 'vitest';
import {
  byOf,
  checkedPlace,
  checkedText,
  checkedChanges,
  checkedFilter,
  checkedNumber,
  checkedNote,
  checkedReplay,
  checkedSelection,
} from './selection.ts';

const code = (call: () => unknown) => {
  try {
    call();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return undefined;
};

describe('a selection', () => {
  test('says something, or says that all are meant', () => {
    expect(checkedSelection({ lane: 'handler:a' })).toEqual({ lane: 'handler:a' });
    expect(checkedSelection({ all: true })).toEqual({});
    expect(code(() => checkedSelection({}))).toBe('EMPTY_FILTER');
    expect(code(() => checkedSelection(undefined))).toBe('EMPTY_FILTER');
    // What was meant to be a variable.
    expect(code(() => checkedSelection({ lane: undefined }))).toBe('EMPTY_FILTER');
  });

  test('is not all and a filter at once, and not of closed items', () => {
    expect(code(() => checkedSelection({ all: true, lane: 'handler:a' }))).toBe('INVALID_FILTER');
    expect(code(() => checkedSelection({ all: false, lane: 'handler:a' }))).toBe('INVALID_FILTER');
    expect(code(() => checkedSelection({ state: 'resolved' }))).toBe('INVALID_FILTER');
  });
});

describe('a filter', () => {
  test.each([
    [{ lan: 'x' }, "A filter has no 'lan'. Did you mean 'lane'?"],
    [{ state: 'closed' }, 'One of open, replayed, resolved, discarded, erased is needed.'],
    [{ class: 'fatal' }, 'One of transient, business, technical, unknown is needed.'],
    [{ ids: [] }, 'A list of 1 to 10000 ids is needed.'],
    [{ ids: [1.5] }, 'A list of 1 to 10000 ids is needed.'],
    [{ text: '' }, 'A text of 1 to 500 characters is needed'],
    [{ text: '\0' }, 'A text of 1 to 500 characters is needed'],
    [{ fromMs: new Date() }, 'Milliseconds since the epoch are needed.'],
  ])('%j is refused with a word about it', (filter, message) => {
    expect(() => checkedFilter(filter)).toThrow(message);
  });

  test('has a message id in one spelling', () => {
    const messageId = '0000000A-0000-4000-8000-000000000001';
    expect(checkedFilter({ messageId })).toEqual({ messageId: messageId.toLowerCase() });
    expect(code(() => checkedFilter({ messageId: 'x' }))).toBe('INVALID_ID');
  });
});

describe('the options of a replay', () => {
  test('have their defaults', () => {
    expect(checkedReplay({})).toEqual({ canary: [], observeMs: 30_000 });
    expect(checkedReplay({ canary: true })).toEqual({
      canary: [1, 10, 100],
      observeMs: 30_000,
      maxFailures: 0,
    });
    expect(checkedReplay({ to: 'https://example.com/x' })).toMatchObject({
      to: { kind: 'http', address: 'https://example.com/x' },
    });
  });

  test.each([
    { canary: [0] },
    { canary: [1.5] },
    { canary: Array.from({ length: 21 }, () => 1) },
    { perSecond: 0 },
    { perSecond: NaN },
    { perSecond: '10' } as object,
    { canary: 5 } as object,
    { canary: 'abc' } as object,
    { observeMs: -1 },
    { maxFailures: 0.5 },
    { by: '' },
    { pace: 1 } as object,
  ])('%j are refused', (options) => {
    expect(code(() => checkedReplay(options))).toBe('INVALID_FILTER');
  });
});

describe('an edit', () => {
  test('changes something, within the limits', () => {
    expect(checkedChanges({ payload: { a: 1 } }, 100, 'ann')).toEqual({
      payload: Buffer.from('{"a":1}'),
      by: 'ann',
    });
    expect(code(() => checkedChanges({}, 100, undefined))).toBe('INVALID_FILTER');
    expect(code(() => checkedChanges({ payload: 'x'.repeat(100) }, 100, undefined))).toBe(
      'PAYLOAD_TOO_LARGE',
    );
    const bad = { a: 1 } as unknown as Record<string, string>;
    expect(code(() => checkedChanges({ headers: bad }, 100, undefined))).toBe('INVALID_FILTER');
    const map = new Map([['a', '1']]) as unknown as Record<string, string>;
    expect(code(() => checkedChanges({ headers: map }, 100, undefined))).toBe('INVALID_FILTER');
    const long = { a: 'x'.repeat(40_000) };
    expect(code(() => checkedChanges({ headers: long }, 100, undefined))).toBe('INVALID_FILTER');
    expect(code(() => checkedChanges({ to: 'ftp://x' }, 100, undefined))).toBe('NO_DESTINATION');
  });
});

test('a pace that is no number is refused', () => {
  expect(code(() => checkedReplay({ perSecond: 10n } as object))).toBe('INVALID_FILTER');
});

test('notes, names and ids are checked too', () => {
  expect(checkedNote({ note: '', owner: 'ann' })).toEqual({ note: '', owner: 'ann' });
  expect(code(() => checkedNote({ note: 'x'.repeat(10_001) }))).toBe('INVALID_FILTER');
  expect(code(() => checkedNote({ text: 'x' } as object))).toBe('INVALID_FILTER');
  expect(byOf(undefined)).toEqual({});
  expect(code(() => byOf('x'.repeat(501)))).toBe('INVALID_FILTER');
  expect(code(() => checkedNumber(0))).toBe('INVALID_FILTER');
  expect(code(() => checkedNumber('1'))).toBe('INVALID_FILTER');
  expect(code(() => checkedPlace(NaN, 'before'))).toBe('INVALID_FILTER');
  expect(code(() => checkedText('\0', 'fingerprint'))).toBe('INVALID_FILTER');
  expect(code(() => checkedFilter(null as never))).toBe('INVALID_FILTER');
});
