import { describe, expect, expectTypeOf, it } from 'vitest';
import type { GiveUp } from './decide.ts';
import {
  ConfigError,
  type ErrorCode,
  errorCodes,
  isConfigError,
  isRetryError,
  RetryError,
} from './errors.ts';

const decision: GiveUp = {
  action: 'giveUp',
  reason: 'RETRY_AFTER_TOO_LONG',
  attempt: 2,
  maxAttempts: 4,
  failure: { class: 'transient' },
  retryAfterMs: 90_000,
};

describe('a ConfigError', () => {
  it('lists its faults with their paths', () => {
    const faults = [
      { path: 'overrides.429.base', code: 'INVALID_DURATION', message: 'that is no duration.' },
      { path: '', code: 'INVALID_VALUE', message: 'that is no object.' },
    ] as const;
    const error = new ConfigError('INVALID_POLICY', 'The policy has faults:', faults);
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.code, error.faults]).toEqual([
      'ConfigError',
      'INVALID_POLICY',
      faults,
    ]);
    expect(error.message).toBe(
      'The policy has faults:\n  overrides.429.base: that is no duration.\n  that is no object.',
    );
  });

  it('may have none', () => {
    const error = new ConfigError('NOT_A_FUNCTION', 'That is not a function.');
    expect([error.message, error.faults]).toEqual(['That is not a function.', []]);
  });
});

describe('a RetryError', () => {
  it('says why, after how many attempts, and what was asked for', () => {
    const cause = new Error('reset');
    const history = [{ attempt: 1, error: cause, failure: decision.failure }];
    const error = new RetryError(decision, { attempts: 2, history, cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'RetryError',
      message: 'Gave up after 2 attempts (RETRY_AFTER_TOO_LONG).',
      code: 'RETRY_AFTER_TOO_LONG',
      attempts: 2,
      history,
      cause,
      decision,
      retryAfterMs: 90_000,
    });
    expect('result' in error).toBe(false);
  });

  it('ends in what the last failure said, if it said something', () => {
    const failure = { ...decision.failure, message: 'socket hang up' };
    const details = { attempts: 1, history: [], cause: undefined };
    expect(new RetryError({ ...decision, failure }, details).message).toBe(
      'Gave up after 1 attempt (RETRY_AFTER_TOO_LONG): socket hang up',
    );
  });

  it('has a result only if one was refused, and a wait only if one was asked for', () => {
    const { retryAfterMs: _, ...plain } = decision;
    const details = { attempts: 1, history: [], cause: undefined };
    const error = new RetryError(plain, { ...details, result: undefined });
    expect('result' in error).toBe(true);
    expect('retryAfterMs' in error).toBe(false);
  });
});

describe('telling errors apart', () => {
  const config = new ConfigError('INVALID_CONFIG', 'x');
  const retried = new RetryError(decision, { attempts: 1, history: [], cause: undefined });

  it('works by name, so that another copy of the library does no harm', () => {
    const copy = Object.assign(new Error('x'), { name: 'RetryError', history: [] });
    const configCopy = Object.assign(new Error('x'), { name: 'ConfigError', faults: [] });
    expect([retried, copy, config, configCopy].map(isRetryError)).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect([retried, copy, config, configCopy].map(isConfigError)).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  it.each([
    [null],
    [undefined],
    ['RetryError'],
    [{}],
    [{ name: 'RetryError' }],
    [{ name: 'ConfigError' }],
  ])('is not misled by %o', (value) => {
    expect([isRetryError(value), isConfigError(value)]).toEqual([false, false]);
  });
});

describe('the error codes', () => {
  it('have a sentence each', () => {
    for (const [code, sentence] of Object.entries(errorCodes)) {
      expect(code).toMatch(/^[A-Z_]+$/);
      expect(sentence).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('include every reason to give up', () => {
    expectTypeOf<GiveUp['reason']>().toExtend<ErrorCode>();
    expect(Object.keys(errorCodes)).toContain(decision.reason);
  });
});
