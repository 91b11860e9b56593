import { describe, expect, it } from 'vitest';
import { readKeyHeader } from './key-header.ts';

const long = 'k'.repeat(255);

describe('the header Idempotency-Key', () => {
  it.each([
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['"8e03978e"', '8e03978e'],
    ['  "8e03978e"\t', '8e03978e'],
    ['"a \\"b\\" \\\\, ; c"', 'a "b" \\, ; c'],
    ['YWJj+/=', 'YWJj+/='],
    ['order:7/retry', 'order:7/retry'],
    ['__proto__', '__proto__'],
    [long, long],
    [`"${long}"`, long],
    [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
  ])('is read: %j', (header, key) => {
    expect(readKeyHeader(header)).toEqual({ state: 'given', key });
  });

  it.each([
    ['nothing', ''],
    ['white space', '   '],
    ['an empty string', '""'],
    ['two headers', 'a, b'],
    ['two headers without a space', 'a,b'],
    ['two strings', '"a", "b"'],
    ['a parameter', '"a";x=1'],
    ['a space', 'a b'],
    ['an open quote', '"a'],
    ['a quote inside', 'a"b'],
    ['a backslash', 'a\\b'],
    ['a backslash at the end', '"a\\"'],
    ['another escape', '"a\\n"'],
    ['a control character', '"a\u0001"'],
    ['a line break', '"a\nb"'],
    ['a letter that is not ASCII', 'schlüssel'],
    ['256 characters', `${long}k`],
    ['256 characters in quotes', `"${long}k"`],
    ['a hundred thousand characters', `"${'\\'.repeat(100_000)}"`],
  ])('is malformed with %s', (_, header) => {
    expect(readKeyHeader(header)).toEqual({ state: 'malformed' });
  });

  it('may be absent', () => {
    expect(readKeyHeader(null)).toEqual({ state: 'absent' });
    expect(readKeyHeader(undefined)).toEqual({ state: 'absent' });
  });
});
