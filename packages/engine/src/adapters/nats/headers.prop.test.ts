import { headers as newHeaders, MsgHdrsImpl } from '@nats-io/transport-node';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerBytes, isOfServer, readText, writtenName, writtenValue } from './headers.ts';
import { loadNats } from './library.ts';

await loadNats();

/** Texts with what NATS has no place for: line ends, blanks at the ends, colons, other alphabets, and what looks encoded. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('a\r\nb', ' a', 'a ', '\t', '', 'a: b', 'ü', '\0', '=?utf-8?b?YQ==?=', '\u00a0a'),
);
const name = text.filter((one) => one !== '');

describe('a header', () => {
  it('comes over as it was, whatever stands in it', () => {
    fc.assert(
      fc.property(name, text, (key, value) => {
        const written = newHeaders();
        written.append(writtenName(key), writtenValue(value));
        const encoded = (written as MsgHdrsImpl).encode();
        const read = [...MsgHdrsImpl.decode(encoded)];
        expect(read.map(([at, values]) => [at, ...values].map(readText))).toEqual([[key, value]]);
      }),
    );
  });

  it('takes as many bytes as it is said to', () => {
    fc.assert(
      fc.property(name, text, (key, value) => {
        const [wireName, wireValue] = [writtenName(key), writtenValue(value)];
        const written = newHeaders();
        written.append(wireName, wireValue);
        const bytes = (written as MsgHdrsImpl).encode().length;
        expect(headerBytes(wireName, wireValue) + 'NATS/1.0\r\n\r\n'.length).toBe(bytes);
      }),
    );
  });

  it('is written as it stands where it fits', () => {
    expect([writtenName('x-a'), writtenValue('ünï 🚀')]).toEqual(['x-a', 'ünï 🚀']);
  });

  it('is told apart from those of the server, however they are written', () => {
    expect(['Nats-Rollup', 'nats-ttl', 'x-nats-a'].map(isOfServer)).toEqual([true, true, false]);
  });
});
