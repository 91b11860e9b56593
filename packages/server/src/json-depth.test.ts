import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tooDeepAt } from './json-depth.ts';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('the depth of a JSON text', () => {
  it('is that of its arrays and objects, whatever stands in its strings', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('\\', '"', '[', '{') }));
    const value = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' });
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(text, value)), (given) => {
        const json = JSON.stringify(given);
        const depth = depthOf(JSON.parse(json));
        expect(tooDeepAt(json, depth)).toBeUndefined();
        expect(tooDeepAt(json, depth - 1)).toBeTypeOf('number');
      }),
    );
  });

  it('is found in any text, also in one that is not JSON', () => {
    expect(tooDeepAt('[[', 2)).toBeUndefined();
    expect(tooDeepAt('[{[', 2)).toBe(2);
    expect(tooDeepAt('"[[[[', 0)).toBeUndefined();
    expect(tooDeepAt('}}[[', 1)).toBeUndefined();
  });

  it('is at most 512 unless another limit is given', () => {
    expect(tooDeepAt('['.repeat(512))).toBeUndefined();
    expect(tooDeepAt('['.repeat(513))).toBe(512);
  });
});
