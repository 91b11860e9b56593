import { describe, expect, it } from 'vitest';
import { parseExactly, readPayload } from './exact-json.ts';

const again = (text: string) => JSON.stringify(parseExactly(text));
const bytes = (text: string) => Buffer.from(text);

describe('JSON without loss', () => {
  it.each([
    '{"id":12345678901234567890}',
    '{"id":-1234567890123456789012345,"b":[9007199254740993]}',
    '{"id":9007199254740992}',
    '{"card":"4111111111111111","n":1.5}',
    '[12345678901234567890,"12345678901234567890"]',
    `{"id":${'9'.repeat(400)}}`,
    '[1e400,-1E+400,{"a":1.5e999}]',
  ])('keeps every digit of %s', (text) => {
    expect(again(text)).toBe(text);
  });

  it('takes fractions for what they are everywhere', () => {
    expect(parseExactly('[0.30000000000000004, 1.00000000000000000001]')).toEqual([
      0.30000000000000004, 1,
    ]);
  });

  it('keeps a field that would be the prototype of others', () => {
    const value = parseExactly('{"__proto__":{"admin":true}}') as { admin?: boolean };
    expect(value.admin).toBeUndefined();
    expect(JSON.stringify(value)).toBe('{"__proto__":{"admin":true}}');
  });

  it('refuses what is no JSON', () => {
    expect(() => parseExactly('{')).toThrow(SyntaxError);
    expect(() => parseExactly('{"a": 12345678901234567890')).toThrow(SyntaxError);
  });
});

describe('depth', () => {
  it.each([
    ['[', '['.repeat(513), 512],
    ['both kinds of brackets', '[{"a":'.repeat(300), 256 * 6],
    ['a string with quotes before it', `["\\"[[[",${'['.repeat(512)}`, 9 + 511],
    ['a string that ends in backslashes', `["\\\\",${'['.repeat(512)}`, 6 + 511],
  ])('over the limit is told with its place: %s', (_, text, position) => {
    expect(() => parseExactly(text)).toThrow(expect.objectContaining({ position }));
  });

  it('counts what is open at the same time, not all brackets', () => {
    expect(parseExactly(`[${'[],{},'.repeat(1000)}1]`)).toHaveLength(2001);
    expect(parseExactly(JSON.stringify('['.repeat(1000)))).toHaveLength(1000);
    expect(() => parseExactly(`"${'['.repeat(1000)}`)).toThrow(SyntaxError);
  });
});

describe('payloads as JSON', () => {
  it('are read where they are UTF-8 and JSON', () => {
    expect(readPayload(bytes('{"a":"\\"[é"}'))).toEqual({ value: { a: '"[é' } });
    expect(readPayload(bytes('null'))).toEqual({ value: null });
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['other text', bytes('hello')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a mark of byte order', Buffer.from([0xef, 0xbb, 0xbf, 0x31])],
    ['a text that does not end', bytes('"a\\"')],
    ['more brackets than anybody can write', bytes('['.repeat(5000) + ']'.repeat(5000))],
  ])('are not read where they are %s', (_, payload) => {
    expect(readPayload(payload)).toBeUndefined();
  });

  it('may be nested as deep as people do', () => {
    expect(readPayload(bytes('['.repeat(512) + ']'.repeat(512)))).toBeDefined();
    expect(readPayload(bytes('['.repeat(513) + ']'.repeat(513)))).toBeUndefined();
  });
});
