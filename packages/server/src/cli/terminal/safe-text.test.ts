import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { prettyJson, safeJson, shown, shownLines } from './safe-text.ts';

/** What a terminal may obey, or what makes a text read as another. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

describe('a text of somebody else', () => {
  it.each([
    ['an escape sequence', '\u001b[2J\u001b]0;owned\u0007', '\\x1b[2J\\x1b]0;owned\\x07'],
    ['a sequence in eight bits', 'a\u009b31mb', 'a\\x9b31mb'],
    ['lines', 'one\r\ntwo\tthree', 'one\\r\\ntwo\\tthree'],
    ['a backspace and a delete', 'abc\b\u007f', 'abc\\x08\\x7f'],
    ['a mark of direction', 'exe.\u202egpj', 'exe.\\u202egpj'],
    ['half a character', 'a\ud800b', 'a\\ud800b'],
    ['letters that are not seen', 'a\u{e0041}b\ufeff', 'a\\ue0041b\\ufeff'],
  ])('with %s is spelled out', (_, text, safe) => {
    expect(shown(text)).toBe(safe);
  });

  it('is left alone where it is harmless', () => {
    const text = 'Grüße, 日本語, 👩‍👩‍👧, é, \\n';
    expect(shown(text)).toBe(text);
  });

  it('keeps its lines where there is room for them', () => {
    expect(shownLines('a\r\nb\n\u001bc')).toEqual(['a', 'b', '\\x1bc']);
  });

  it('is never obeyed, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(shown(text)).not.toMatch(OBEYED);
        expect(shownLines(text).join('')).not.toMatch(OBEYED);
        expect(safeJson({ text })).not.toMatch(OBEYED);
        expect(prettyJson({ [text]: text }).join('')).not.toMatch(OBEYED);
      }),
    );
  });

  it('is the same in JSON when it is read again', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
        const all = { value, text };
        const same: unknown = JSON.parse(JSON.stringify(all));
        expect(JSON.parse(safeJson(all))).toEqual(same);
        expect(JSON.parse(prettyJson(all).join('\n'))).toEqual(same);
      }),
    );
  });
});
