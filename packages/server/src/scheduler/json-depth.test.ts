import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isDeeper } from './json-depth.ts';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('the depth of a JSON text', () => {
  it('is that of its arrays and objects, whatever stands in its texts', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('\\', '"', '[', '{') }));
    const value = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' });
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(text, value)), (given) => {
        const bytes = Buffer.from(JSON.stringify(given));
        const depth = depthOf(JSON.parse(bytes.toString()));
        expect(isDeeper(bytes, depth)).toBe(false);
        expect(isDeeper(bytes, depth - 1)).toBe(true);
      }),
    );
  });

  it('is found in any bytes, also in a part of a buffer', () => {
    expect(isDeeper(Buffer.from('[[[[').subarray(1, 3), 2)).toBe(false);
    expect(isDeeper(Buffer.from('[[[[').subarray(1), 2)).toBe(true);
    expect(isDeeper(Buffer.from('"[[[['), 0)).toBe(false);
    expect(isDeeper(Buffer.from('}}[['), 1)).toBe(false);
  });
});
