import { describe, expect, it } from 'vitest';
import { ConfigError, isConfigError } from '../errors.ts';
import { DefinedPolicy, defined, definePolicy, parsePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';

/** The faults of a policy as path, code and what was probably meant. */
function faultsOf(data: unknown): string[] {
  try {
    parsePolicy(data);
    return [];
  } catch (error) {
    if (!isConfigError(error) || error.code !== 'INVALID_POLICY') throw error;
    return error.faults.map(({ path, code, message }) => {
      const near = /Did you mean '(.*)'\?/.exec(message)?.[1];
      return [path, code, ...(near === undefined ? [] : [near])].join(' ');
    });
  }
}

describe('a faulty policy', () => {
  it('throws one error that lists every fault with its path', () => {
    const faulty = {
      maxAttempts: 0,
      base: '250 ms',
      multiplier: 0.5,
      jitter: 'ful',
      retries: 3,
      retryOn: ['transiet', 'busines', 'ECONNRESET'],
      schedule: [1, 'soon'],
      overrides: { 429: { bas: 5, cap: -1 }, unknwon: {} },
    };
    expect(faultsOf(faulty)).toEqual([
      'maxAttempts INVALID_VALUE',
      'base INVALID_DURATION',
      'multiplier INVALID_VALUE',
      'jitter INVALID_VALUE full',
      'retries UNKNOWN_FIELD maxAttempts',
      'retryOn.0 INVALID_VALUE transient',
      'retryOn.1 INVALID_VALUE business',
      'schedule.1 INVALID_DURATION',
      'overrides.429.bas UNKNOWN_FIELD base',
      'overrides.429.cap INVALID_DURATION',
      'overrides.unknwon INVALID_VALUE unknown',
    ]);
  });

  it('says where a live thing belongs, and what no override can change', () => {
    const messages = (policy: object) => {
      try {
        return definePolicy(policy).fingerprint;
      } catch (error) {
        return (error as ConfigError).faults.map((fault) => fault.message);
      }
    };
    const live = (example: string) =>
      `is not a field of a policy. Write it in the runtime, the argument after the policy: retry(fn, policy, { ${example} }).`;
    const verdict = live('retryIf: (error, attempt) => true');
    const wait = live('on: { wait: ({ error, attempt }) => {} }');
    expect(messages({ signal: 1, circuitBreaker: 1 })).toEqual([live('signal'), live('breaker')]);
    expect(messages({ retryIf: 1, shouldRetry: 1, retry: 1 })).toEqual([verdict, verdict, verdict]);
    expect(messages({ onFailedAttempt: 1, onRetry: 1 })).toEqual([wait, wait]);
    expect(messages({ onGiveUp: 1 })).toEqual([live('on: { giveUp: ({ error, attempt }) => {} }')]);
    expect(messages({ overrides: { 429: { deadline: '1s', constructor: 1 } } })).toEqual([
      'cannot be overridden for some failures: it belongs to the whole policy.',
      'there is no such field.',
    ]);
  });

  it('says what to write for what only others have, and for no limit', () => {
    const define = (policy: object) => () => definePolicy(policy);
    expect(define({ forever: true })).toThrow(
      "Did you mean 'maxAttempts'? It counts the first execution too. For no limit write 1_000_000_000.",
    );
    expect(define({ delayFirstAttempt: true })).toThrow('wait before you call retry.');
    expect(define({ maxAttempts: Infinity })).toThrow(
      'maxAttempts: Infinity is not a whole number from 1 to 1000000000. For no limit write 1_000_000_000.',
    );
    expect(define(3 as unknown as Policy)).toThrow(
      'The policy has faults:\n  3 is not an object of options such as { maxAttempts: 3 }.',
    );
  });

  it('is explained in the message of the error', () => {
    const define = () => definePolicy({ maxAttempt: 3, base: 'soon' } as unknown as Policy);
    expect(define).toThrow(ConfigError);
    expect(define).toThrow(
      "The policy has faults:\n  maxAttempt: there is no such field. Did you mean 'maxAttempts'? It counts the first execution too.\n  base: 'soon' is not a duration.",
    );
  });

  it.each([
    ['a strategy without its schedule', { strategy: 'schedule' }, ['schedule INVALID_VALUE']],
    [
      'a schedule with another strategy',
      { schedule: [5], strategy: 'fixed' },
      ['schedule INVALID_VALUE'],
    ],
    [
      'decorrelated with linear',
      { jitter: 'decorrelated', strategy: 'linear' },
      ['jitter INVALID_VALUE'],
    ],
    [
      'decorrelated with a schedule',
      { jitter: 'decorrelated', schedule: [5] },
      ['jitter INVALID_VALUE'],
    ],
    [
      'decorrelated with the schedule of an override',
      { jitter: 'decorrelated', overrides: { 429: { schedule: [5] } } },
      ['overrides.429.jitter INVALID_VALUE'],
    ],
    [
      'an override of a schedule that is not there',
      { overrides: { a: { strategy: 'schedule' } } },
      ['overrides.a.schedule INVALID_VALUE'],
    ],
    [
      'an override within an override',
      { overrides: { a: { overrides: {} } } },
      ['overrides.a.overrides UNKNOWN_FIELD'],
    ],
    [
      'a deadline in an override',
      { overrides: { a: { deadline: 5 } } },
      ['overrides.a.deadline UNKNOWN_FIELD'],
    ],
    ['an override that is no object', { overrides: { a: 5 } }, ['overrides.a INVALID_VALUE']],
    ['an override without a name', { overrides: { '': {} } }, ['overrides. INVALID_VALUE']],
    [
      'a timeout of nothing',
      { attemptTimeout: 0, deadline: '0s' },
      ['attemptTimeout INVALID_DURATION', 'deadline INVALID_DURATION'],
    ],
    ['a policy that is a list', [], [' INVALID_VALUE']],
    ['a policy that is null', null, [' INVALID_VALUE']],
    ['a policy that is still a promise', Promise.resolve({}), [' INVALID_VALUE']],
  ])('%s', (_what, data, faults) => {
    expect(faultsOf(data)).toEqual(faults);
  });

  it('cannot reach a prototype', () => {
    const hostile = JSON.parse(
      '{"__proto__": {"maxAttempts": 9}, "constructor": {"prototype": {"cap": 1}}, "overrides": {"__proto__": {"base": 5}, "constructor": {"base": 6}}}',
    );
    expect(faultsOf(hostile)).toEqual(['__proto__ UNKNOWN_FIELD', 'constructor UNKNOWN_FIELD']);
    const policy = defined(hostile as Policy);
    expect(policy.maxAttempts).toBe(4);
    expect(policy.for('__proto__')?.base).toBe(5);
    expect(policy.for('constructor')?.base).toBe(6);
    expect(policy.for('toString')).toBeUndefined();
    expect(Object.getPrototypeOf(policy.overrides)).toBe(Object.prototype);
    expect(({} as { maxAttempts?: number }).maxAttempts).toBeUndefined();
  });

  it('is refused at once when its lists are huge', () => {
    const huge = Array.from({ length: 1_000_000 }, () => 'x');
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`E${i}`, {}]));
    expect(faultsOf({ schedule: huge, retryOn: huge, overrides: many })).toEqual([
      'schedule INVALID_VALUE',
      'retryOn INVALID_VALUE',
      'overrides INVALID_VALUE',
    ]);
    expect(faultsOf({ schedule: Array.from({ length: 1000 }, () => 5) })).toEqual([]);
    expect(faultsOf({ retryOn: Array.from({ length: 100 }, (_, i) => `E${i}`) })).toEqual([]);
  });

  it('is a policy all the same where nothing may be thrown', () => {
    const policy = defined({
      base: 'soon',
      cap: '5s',
      strategy: 'schedule',
      jitter: 'decorrelated',
      overrides: { a: { schedule: [5] }, b: 5 },
    } as unknown as Policy);
    expect(policy).toBeInstanceOf(DefinedPolicy);
    expect(policy).toMatchObject({ base: 200, cap: 5000, strategy: 'exponential' });
    expect(policy.jitter).toBe('decorrelated');
    expect(policy.for('a')).toMatchObject({ strategy: 'schedule', jitter: 'full' });
    expect(policy.for('b')).toMatchObject({ base: 200, cap: 5000 });
  });
});
