import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerText, bytesToRead, harmlessMessage } from './answer.ts';
import { pattern } from './secrets.ts';

const bytes = (text: string) => Buffer.from(text);

describe('the answer that is kept', () => {
  it('is the text of the body', () => {
    expect(answerText(bytes('{"error":"größer"}\n\tmore'), undefined)).toBe(
      '{"error":"größer"}\n\tmore',
    );
    expect(answerText(bytes('a\r\nb'), undefined)).toBe('a\nb');
  });

  it('is nothing for an empty body', () => {
    expect(answerText(new Uint8Array(0), undefined)).toBeUndefined();
  });

  it('ends after 4 KiB, without half a character', () => {
    expect(answerText(bytes('x'.repeat(9999)), undefined)).toBe('x'.repeat(4096));
    expect(answerText(bytes(`${'x'.repeat(4094)}€€`), undefined)).toBe('x'.repeat(4094));
  });

  it('shows bytes that are no text as such', () => {
    expect(answerText(Uint8Array.of(0x61, 0xff, 0x62, 0xc3), undefined)).toBe('a\u{FFFD}b\u{FFFD}');
  });

  it('obeys nobody: no control characters, no marks of direction', () => {
    expect(answerText(bytes('\u001b[2Ja\0b\rc\u0085\u202Ed\u2066'), undefined)).toBe(
      '\u{FFFD}[2Ja\u{FFFD}b\u{FFFD}c\u{FFFD}\u{FFFD}d\u{FFFD}',
    );
  });

  it('hides a secret, also one that is cut by the end', () => {
    const secret = 's3cr3t-'.repeat(10);
    const hidden = pattern([secret]);
    const body = bytes(`${'x'.repeat(4090)}${secret}${'y'.repeat(5000)}`);
    expect(answerText(body.subarray(0, bytesToRead([secret])), hidden)).toBe(
      `${'x'.repeat(4090)}[secre`,
    );
    expect(answerText(bytes(`a ${secret} b`), hidden)).toBe('a [secret] b');
  });

  it('shows no part of a secret that moves up as others are hidden', () => {
    const secret = 'k'.repeat(999);
    const hidden = pattern([secret]);
    const body = bytes(`${secret},`.repeat(50)).subarray(0, bytesToRead([secret]));
    expect(answerText(body, hidden)).toBe('[secret],'.repeat(4) + '[secret]');
  });

  it('never holds a secret or a control character, wherever they stand', () => {
    const secret = 'aba"b';
    const hidden = pattern([secret]);
    const piece = fc.oneof(
      fc.constantFrom(secret, 'ab', 'a', '\0', '\u001b', '€', '😀', JSON.stringify(secret)),
      fc.nat(5000).map((length) => '-'.repeat(length)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const body = bytes(pieces.join('')).subarray(0, bytesToRead([secret]));
        const answer = answerText(body, hidden) ?? '';
        expect(answer).not.toContain(secret);
        expect(answer).not.toContain('aba\\"b');
        expect(answer).toMatch(/^[^\p{Cc}]*$/u);
        expect(answer.length).toBeLessThanOrEqual(4096);
        expect(Buffer.from(answer).toString()).toBe(answer);
      }),
    );
  });

  it('has messages like itself', () => {
    expect(harmlessMessage('no \u001b token', pattern(['token']))).toBe('no \u{FFFD} [secret]');
  });
});
