import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classifyText } from './classify-text.ts';

const words = [
  'timeout',
  'econnreset',
  'eai_again',
  'throttled',
  'rate limit',
  'circuit open',
  'epipe',
  'validation',
  'schema',
  'duplicate',
  'forbidden',
  'already exists',
  'unauthorized',
  'typeerror',
  'assertion',
  'invariant',
  'unreachable',
  'out of memory',
];
const letters = fc.stringMatching(/^[a-z0-9_éßжλ漢]+$/u);
const word = fc.constantFrom(...words);

describe('classifyText, whatever the text', () => {
  it('never matches inside a longer word', () => {
    fc.assert(
      fc.property(word, fc.option(letters), fc.option(letters), (core, before, after) => {
        fc.pre(before !== null || after !== null);
        expect(classifyText(`${before ?? ''}${core}${after ?? ''}`)).toBeUndefined();
      }),
    );
  });

  it('matches the word between any two things that are no letters, digits or underscores', () => {
    const gap = fc.stringMatching(/^[ \t\n.,:;!?()[\]{}"'/+=<>-]*$/);
    fc.assert(
      fc.property(word, gap, gap, (core, before, after) => {
        expect(classifyText(before + core + after)?.word).toBe(core);
      }),
    );
  });

  it('says the same each time, and names a word that the text has', () => {
    const text = fc
      .array(fc.oneof(fc.string({ unit: 'grapheme' }), word, fc.constantFrom('status', '503')))
      .map((parts) => parts.join(' '));
    fc.assert(
      fc.property(text, (value) => {
        const found = classifyText(value);
        expect(classifyText(value)).toEqual(found);
        if (found) {
          expect(value.toLowerCase().replace(/\s+/g, ' ')).toContain(found.word);
        }
      }),
    );
  });

  it('finds the word of a rule wherever the text has it whole, whatever the word', () => {
    fc.assert(
      fc.property(
        fc.string().filter((each) => each.trim() !== ''),
        (each) => {
          const found = classifyText(`( ${each.trim()} )`, [{ words: [each], class: 'unknown' }]);
          expect(found?.class).toBe('unknown');
        },
      ),
    );
  });
});
