import { describe, expect, it } from 'vitest';
import { explainFault, nearest } from './faults.ts';
import { overrideFields, policyFields } from '../policy/policy-fields.ts';

const fieldNames = Object.keys(policyFields);

describe('the nearest word', () => {
  it.each([
    ['maxAttempt', 'maxAttempts'],
    ['maxattempts', 'maxAttempts'],
    ['max_attempts', 'maxAttempts'],
    ['max-attempts', 'maxAttempts'],
    ['mxaAttempts', 'maxAttempts'],
    ['jiter', 'jitter'],
    ['jitterratio', 'jitterRatio'],
    ['retry_on', 'retryOn'],
    ['nevrOn', 'neverOn'],
    ['bas', 'base'],
    ['deadlin', 'deadline'],
    ['overide', 'overrides'],
    ['idempotant', 'idempotent'],
  ])('to the slip %s is %s', (word, meant) => {
    expect(nearest(word, fieldNames)).toBe(meant);
  });

  it.each([
    ['p-retry and async-retry', 'retries', 'maxAttempts'],
    ['p-retry and async-retry', 'factor', 'multiplier'],
    ['p-retry and async-retry', 'minTimeout', 'base'],
    ['p-retry and async-retry', 'maxTimeout', 'cap'],
    ['p-retry and async-retry', 'randomize', 'jitter'],
    ['p-retry and async-retry', 'maxRetryTime', 'deadline'],
    ['exponential-backoff', 'numOfAttempts', 'maxAttempts'],
    ['exponential-backoff', 'startingDelay', 'base'],
    ['exponential-backoff', 'timeMultiple', 'multiplier'],
    ['exponential-backoff', 'maxDelay', 'cap'],
    ['cockatiel', 'initialDelay', 'base'],
    ['cockatiel', 'exponent', 'multiplier'],
    ['cockatiel', 'backoff', 'strategy'],
    ['effect', 'times', 'maxAttempts'],
    ['others', 'attempts', 'maxAttempts'],
    ['others', 'maxRetries', 'maxAttempts'],
    ['others', 'max_retries', 'maxAttempts'],
    ['others', 'delay', 'base'],
    ['others', 'baseDelayMs', 'base'],
    ['others', 'base_ms', 'base'],
    ['others', 'max_ms', 'cap'],
    ['others', 'maxDelayMs', 'cap'],
    ['others', 'timeout', 'attemptTimeout'],
    ['others', 'tries', 'maxAttempts'],
    ['others', 'minDelay', 'base'],
    ['others', 'ttl', 'deadline'],
    ['async-retry', 'forever', 'maxAttempts'],
  ])('to what %s calls %s is %s', (_library, word, meant) => {
    expect(nearest(word, fieldNames)).toBe(meant);
  });

  it('is none when nothing is near', () => {
    for (const word of ['colour', 'x', '', 'constructor', '__proto__', 'b', 'zzz']) {
      expect(nearest(word, fieldNames)).toBeUndefined();
    }
  });

  it('is never one that cannot be chosen', () => {
    expect(nearest('timeout', overrideFields)).toBeUndefined();
    expect(nearest('deadlin', overrideFields)).toBeUndefined();
  });

  it('is the closer of two that are near', () => {
    expect(nearest('jitterAd', ['jitter', 'jitterAdd'])).toBe('jitterAdd');
  });

  it('to what is no text is none', () => {
    expect(nearest(5, ['5'])).toBeUndefined();
  });

  it('of a short word must differ by one letter at most', () => {
    expect(nearest('cup', ['cap'])).toBe('cap');
    expect(nearest('cut', ['cap'])).toBeUndefined();
    expect(nearest('bsae', ['base'])).toBe('base');
    expect(nearest('pca', ['cap'])).toBeUndefined();
  });
});

describe('the sentence of a fault', () => {
  it.each([
    [{ kind: 'integer', min: 1, max: 9 }, 0, '0 is not a whole number from 1 to 9.'],
    [{ kind: 'number', min: 0, max: 1 }, 'x', "'x' is not a number from 0 to 1."],
    [
      { kind: 'duration', min: 0 },
      '5 s',
      "'5 s' is not a duration. Write ms as a number, or a text such as '250ms', '2s', '5m', '1h', '1d', up to 100 years.",
    ],
    [
      { kind: 'duration', min: 1 },
      0.5,
      "0.5 is not a duration. Write ms as a number, or a text such as '250ms', '2s', '5m', '1h', '1d', up to 100 years and at least 1 ms.",
    ],
    [{ kind: 'durations', max: 10 }, '5s', "'5s' is not a list of 1 to 10 durations."],
    [{ kind: 'durations', max: 10 }, [], 'a list of 0 is not a list of 1 to 10 durations.'],
    [{ kind: 'boolean', default: true }, 'yes', "'yes' is not true or false."],
    [
      { kind: 'choice', of: ['full', 'none'], default: 'full' },
      'ful',
      "'ful' is not one of full, none. Did you mean 'full'?",
    ],
    [
      { kind: 'choice', of: ['full', 'none'], default: 'full' },
      true,
      'true is not one of full, none.',
    ],
    [
      { kind: 'name', known: ['transient'] },
      'transiet',
      "'transiet' is not a failure class (transient), code, status or error name, as a text of at most 200 characters ('503'). Did you mean 'transient'?",
    ],
    [
      { kind: 'name', known: ['transient'] },
      429,
      `429 is not a failure class (transient), code, status or error name, as a text of at most 200 characters ('503').`,
    ],
    [
      { kind: 'names', known: ['transient'], default: [] },
      'transient',
      "'transient' is not a list of at most 100 failure classes, codes, statuses or error names, as texts.",
    ],
    [
      { kind: 'objects', max: 3 },
      null,
      'null is not an object of at most 3 objects by class, code, status or error name.',
    ],
    [{ kind: 'object' }, [1, 2], 'a list of 2 is not an object of options.'],
    [{ kind: 'object' }, Promise.resolve(), '[object Promise] is not an object of options.'],
    [{ kind: 'object' }, undefined, 'undefined is not an object of options.'],
    [
      { kind: 'pair' },
      undefined,
      "a schedule and the strategy 'schedule' belong together: give both, or leave both out.",
    ],
    [
      { kind: 'decorrelated' },
      'linear',
      "the jitter 'decorrelated' goes with the strategy 'exponential' only, not with 'linear'.",
    ],
    [{ kind: 'known', name: 'x', near: undefined }, 1, 'there is no such field.'],
    [{ kind: 'known', name: 'x', near: 'base' }, 1, "there is no such field. Did you mean 'base'?"],
  ] as const)('about %o for %o says what is wanted', (wanted, value, sentence) => {
    expect(explainFault(wanted, value)).toBe(sentence);
  });

  it.each([
    ['a bigint', 5n, '5'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['an object', { a: 1 }, 'an object'],
    ['an object without a prototype', Object.create(null), 'an object'],
    ['a date', new Date(0), '[object Date]'],
    ['a function, however it prints itself', refusesToPrint(), 'a function'],
  ])('shows %s', (_what, value, shown) => {
    expect(explainFault({ kind: 'boolean', default: true }, value)).toBe(
      `${shown} is not true or false.`,
    );
  });

  it('cuts a long value short', () => {
    const sentence = explainFault({ kind: 'boolean', default: true }, 'x'.repeat(10_000));
    expect(sentence).toBe(`'${'x'.repeat(56)}... is not true or false.`);
    const fits = `'${'x'.repeat(58)}'`;
    expect(explainFault({ kind: 'boolean', default: true }, 'x'.repeat(58))).toContain(fits);
    expect(explainFault({ kind: 'boolean', default: true }, 'x'.repeat(59))).toContain('x...');
  });
});

function refusesToPrint(): () => void {
  return Object.assign(() => undefined, {
    toString() {
      throw new Error('no');
    },
  });
}
