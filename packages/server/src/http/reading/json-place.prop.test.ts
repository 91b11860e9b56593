import fc from 'fast-check';
import { describe, it } from 'vitest';
import { faultPlace } from './json-place.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('the place where a text stops being JSON', () => {
  it('is nowhere exactly where the platform can read it', () => {
    const signs = fc.string({ unit: fc.constantFrom(...'[]{}:,"\\u0aen1-. \t'.split('')) });
    fc.assert(
      fc.property(fc.oneof(signs, fc.json()), (text) => {
        return (faultPlace(text) === undefined) === isJson(text);
      }),
    );
  });

  it('of JSON that was cut off is its end or before it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.nat(), (text, at) => {
        const cut = text.slice(0, at % text.length);
        return isJson(cut) || faultPlace(cut)! <= cut.length;
      }),
    );
  });
});
