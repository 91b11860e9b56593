import { describe, expect, it } from 'vitest';
import { faultPlace } from './json-place.ts';

describe('the place where a text stops being JSON', () => {
  it.each([
    ['', 0],
    ['  ', 2],
    ['{', 1],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{"a":1 "b":2}', 7],
    ['{a:1}', 1],
    ["{'a':1}", 1],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['[1}', 2],
    ['{"a":1]', 6],
    ['1 2', 2],
    ['01', 1],
    ['-', 0],
    ['.5', 0],
    ['nul', 0],
    ['NaN', 0],
    ['"abc', 4],
    ['"a\nb"', 2],
    ['"a\\x"', 2],
    ['"\\u12"', 1],
    ['{"a":1}}', 7],
    ['{:1}', 1],
    ['[,1]', 1],
    ['{"a"::1}', 5],
    ['{"a":1},', 7],
    [']', 0],
    ['\ufeff1', 0],
  ])('of %j is %d', (text, place) => {
    expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
    expect(faultPlace(text)).toBe(place);
  });

  it.each(['1', '-1.5e+10', '{}', '[]', ' {"a": [true, null, {"b": "\\u00e9\\n"}]} ', '"x"', '0'])(
    'is nowhere in %s',
    (text) => {
      expect(faultPlace(text)).toBeUndefined();
    },
  );

  it('is found behind a text of many megabytes', () => {
    const text = `{"a":"${'x'.repeat(5_000_000)}",}`;
    expect(faultPlace(text)).toBe(text.length - 1);
  });
});
