import { describe, expect, it } from 'vitest';
import { classifyText } from './classify-text.ts';
import type { ClassifyRule } from './classify-text.ts';
import type { FailureClass } from './failure.ts';

const classOf = (text: string, rules?: readonly ClassifyRule[]) => classifyText(text, rules)?.class;

const listedWords: Record<Exclude<FailureClass, 'unknown'>, string[]> = {
  transient: [
    'timeout',
    'timed out',
    'etimedout',
    'econnrefused',
    'econnreset',
    'enetunreach',
    'ehostunreach',
    'epipe',
    'eai_again',
    'connection terminated',
    'connection refused',
    'connection closed',
    'connection lost',
    'too many requests',
    'rate limit',
    'throttled',
    'enomem',
    'emfile',
    'resource temporarily unavailable',
    'service unavailable',
    'try again later',
    'circuit open',
    'circuit breaker',
  ],
  business: [
    'validation',
    'schema',
    'business rule',
    'duplicate',
    'already exists',
    'already submitted',
    'unauthorized',
    'forbidden',
  ],
  technical: [
    'TypeError',
    'ReferenceError',
    'RangeError',
    'SyntaxError',
    'is not a function',
    'cannot read property',
    'cannot read properties',
    'unexpected token',
    'assertion',
    'invariant',
    'unreachable',
    'out of memory',
  ],
};
const statuses = {
  transient: [408, 425, 429, 502, 503, 504],
  business: [400, 401, 403, 404, 409, 422],
};
const listed = Object.entries(listedWords).flatMap(([name, words]) =>
  words.map((word) => [word, name] as const),
);
const numbered = Object.entries(statuses).flatMap(([name, numbers]) =>
  numbers.map((number) => [number, name] as const),
);

describe('classifyText', () => {
  it.each(listed)('takes "%s" for %s, in any case, and names it', (word, name) => {
    const expected = { class: name, word: word.toLowerCase() };
    expect(classifyText(word)).toEqual(expected);
    expect(classifyText(`it says: ${word.toUpperCase()}!`)).toEqual(expected);
    expect(classifyText(`it says\n${word.replaceAll(' ', ' \n ')}, alas`)).toEqual(expected);
  });

  it.each(listed)('does not find "%s" inside a longer word', (word) => {
    for (const around of [`x${word}`, `${word}x`, `${word}_`, `_${word}`, `7${word}`, `${word}7`]) {
      expect(classifyText(around)).toBeUndefined();
    }
    expect(classifyText(`é${word}`)).toBeUndefined();
    expect(classifyText(`${word}е`)).toBeUndefined();
  });

  it.each(numbered)('counts %d as %s when it is alone or said to be a status', (number, name) => {
    const expected = { class: name, word: String(number) };
    for (const text of [
      `${number}`,
      ` ${number}\n`,
      `"${number}".`,
      `(${number})`,
      `status ${number}`,
      `failed with status code ${number}`,
      `Status: ${number} here`,
      `code=${number}`,
      `error code : ${number}`,
      `HTTP ${number}`,
      `http:${number}`,
      `HTTP/1.1 ${number} Whatever`,
      `HTTP/2 ${number}`,
    ]) {
      expect({ text, ...classifyText(text) }).toEqual({ text, ...expected });
    }
  });

  it.each(numbered)('does not count %d as a status anywhere else', (number) => {
    for (const text of [
      `order ${number}`,
      `${number} items`,
      `a ${number}`,
      `$${number}`,
      `1${number}`,
      `${number}1`,
      `status ${number}1`,
      `status 1${number}`,
      `status of ${number}`,
      `mystatus ${number}`,
      `barcode ${number}`,
      `zip_code ${number}`,
      `https ${number}`,
      `HTTP/x ${number}`,
      `status${number}`,
      `${number} status`,
    ]) {
      expect({ text, ...classifyText(text) }).toEqual({ text });
    }
  });

  it.each([
    ['order 503 already exists', 'business'],
    ['user 429 unauthorized', 'business'],
    ["Cannot read properties of undefined (reading 'timeoutMs')", 'technical'],
    ['syntaxerror: 1', 'technical'],
    ['tax', undefined],
    ['private', undefined],
    ['the invoice was annulled', undefined],
    ['HTTP 500', undefined],
    ['', undefined],
    ['all is well', undefined],
  ])('takes %j for %s', (text, expected) => {
    expect(classOf(text)).toBe(expected);
  });

  it('asks transient before business before technical, wherever the words stand', () => {
    expect(classOf('assertion: duplicate: timeout')).toBe('transient');
    expect(classOf('invariant broken by schema')).toBe('business');
    expect(classOf('validation failed with status 503')).toBe('transient');
  });

  it.each([
    ['ValidationError: bad', 'business', 'validation'],
    ['java.net.SocketTimeoutException', 'transient', 'timeout'],
    ['ServiceTimeoutException', 'transient', 'timeout'],
    ['ServiceUnavailableException', 'transient', 'service unavailable'],
    ['HTTPTimeoutError', 'transient', 'timeout'],
    ['OutOfMemoryError', 'technical', 'out of memory'],
    ['AssertionError', 'technical', 'assertion'],
    ['JSONSchemaError', 'business', 'schema'],
    ['Http2TimeoutError', 'transient', 'timeout'],
  ])('splits %j into its words: %s', (text, name, word) => {
    expect(classifyText(text)).toEqual({ class: name, word });
  });

  it.each(['ValidationErrors', 'TimeoutHandler', 'timeouterror', 'TimeoutErrorCode', 'aTimeout'])(
    'splits no other token, such as %j',
    (text) => {
      expect(classifyText(text)).toBeUndefined();
    },
  );

  it('does not join the words of a split name with those around it', () => {
    expect(classifyText('ConnectionError refused')).toBeUndefined();
    expect(classifyText('rate LimitError')).toBeUndefined();
    expect(classifyText('CircuitError OpenError')).toBeUndefined();
  });

  it('looks at the first 8 KiB and no further', () => {
    const padding = ' '.repeat(8192 - 'timeout'.length);
    expect(classOf(`${padding}timeout`)).toBe('transient');
    expect(classOf(`${padding} timeout`)).toBeUndefined();
    expect(classOf(`${padding}timeoutMs`)).toBeUndefined();
  });
});

describe('classifyText with rules', () => {
  const rules: ClassifyRule[] = [
    { words: ['tax', 'vat', 'null'], class: 'business' },
    { words: ['timeout'], class: 'technical' },
    { words: ['C++ (v1.0) [x] {2} a|b $5 ^ \\ /*?'], class: 'transient' },
  ];

  it.each(['SyntaxError', 'private', 'annulled'])('finds no domain word inside %j', (text) => {
    expect(classOf(text, [rules[0] as ClassifyRule])).not.toBe('business');
  });

  it('asks them in order, before anything built in', () => {
    expect(classifyText('VAT timeout', rules)).toEqual({ class: 'business', word: 'vat' });
    expect(classifyText('timeout', rules)).toEqual({ class: 'technical', word: 'timeout' });
    expect(classifyText('duplicate', rules)).toEqual({ class: 'business', word: 'duplicate' });
  });

  it('takes a word as it stands, whatever it is made of', () => {
    const text = 'see c++  (V1.0) [x] {2} a|b $5 ^ \\ /*? there';
    expect(classOf(text, rules)).toBe('transient');
    expect(classOf('see c (v1.0) [x] {2} a|b $5 ^ \\ /*?', rules)).toBeUndefined();
  });

  it('finds a name as a whole and by its words', () => {
    const by = (word: string) =>
      classOf('a CardDeclinedError: no', [{ words: [word], class: 'business' }]);
    expect(by('CardDeclinedError')).toBe('business');
    expect(by('CardDeclinedError: no')).toBe('business');
    expect(by('card declined')).toBe('business');
    expect(by('clined')).toBeUndefined();
  });

  it('leaves the names of JavaScript errors whole', () => {
    const rule: ClassifyRule = { words: ['reference', 'type'], class: 'business' };
    expect(classOf('ReferenceError', [rule])).toBe('technical');
    expect(classOf('PaymentReferenceError', [rule])).toBe('business');
  });

  it.each<ClassifyRule>([
    { class: 'transient' },
    { words: [], class: 'transient' },
    { words: ['', '  '], class: 'transient' },
    { words: ['boom'], codes: ['X'], class: 'transient' },
    { words: ['boom'], names: ['X'], class: 'transient' },
    { words: ['boom'], statuses: [503], class: 'transient' },
    { codes: ['X'], class: 'transient' },
  ])('never matches a text by %j', (rule) => {
    expect(classifyText('. boom .', [rule])).toBeUndefined();
  });
});
