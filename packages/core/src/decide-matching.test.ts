import { describe, expect, it } from 'vitest';
import { decide, type Decision, type Facts } from './decide.ts';
import type { Failure } from './failure/failure.ts';
import { definePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import { presets } from './policy/presets.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;
const transient: Failure = { class: 'transient', code: 'ECONNRESET' };

function asked(policy: Policy, facts: Partial<Facts> = {}): Decision {
  return decide(policy, { attempt: 1, failure: transient, ...facts });
}

/** The delay, or why there is none. */
function outcome(policy: Policy, facts: Partial<Facts> = {}): number | string {
  const decision = asked(policy, facts);
  return decision.action === 'retry' ? decision.delayMs : decision.reason;
}

function isRetried(policy: Policy, failure: Failure): boolean {
  return decide(policy, { attempt: 1, failure }).action === 'retry';
}

describe('what is retried', () => {
  const reset: Failure = {
    class: 'transient',
    code: 'ECONNRESET',
    names: ['SocketError', 'NetworkError', 'Error'],
    status: 503,
  };

  it.each([
    ['by class', ['transient'], [], true],
    ['by code', ['ECONNRESET'], [], true],
    ['by status', ['503'], [], true],
    ['by the name of the error', ['SocketError'], [], true],
    ['by the name of a class it extends', ['NetworkError'], [], true],
    ['by any', ['any'], [], true],
    ['by Error, which is everything', ['Error'], [], true],
    ['not, when nothing names it', ['business', 'EPIPE', '500', 'TypeError'], [], false],
    ['not, when nothing is retried', [], [], false],
    ['not, by class', ['any'], ['transient'], false],
    ['not, by code', ['transient'], ['ECONNRESET'], false],
    ['not, by status', ['transient'], ['503'], false],
    ['not, by name', ['transient'], ['NetworkError'], false],
    ['when the code is more specific than the class', ['ECONNRESET'], ['transient'], true],
    ['when the class is more specific than any', ['transient'], ['any'], true],
    ['when the class is more specific than Error', ['transient'], ['Error'], true],
    ['when named alike in both lists', ['ECONNRESET'], ['ECONNRESET'], true],
    ['when named alike in both lists, by name and by status', ['503'], ['SocketError'], true],
    ['when its class is in both lists', ['transient'], ['transient'], true],
    ['when any is in both lists', ['any'], ['any'], true],
    [
      'in whatever order the words are',
      ['any', 'ECONNRESET', 'transient'],
      ['transient', 'any'],
      true,
    ],
  ])('%s', (_how, retryOn, neverOn, retried) => {
    expect(outcome({ ...steady, retryOn, neverOn }, { failure: reset })).toBe(
      retried ? 100 : 'PERMANENT',
    );
  });

  it.each([
    ['transient', true],
    ['unknown', true],
    ['business', false],
    ['technical', false],
  ] as const)('by default, of class %s: %s', (name, retried) => {
    expect(isRetried({}, { class: name })).toBe(retried);
  });

  it('in a category is everything, unless a list says otherwise', () => {
    const category: Policy = presets.categories.KV_GET;
    const policy = definePolicy({ ...category, neverOn: ['ValueError'] });
    const both = definePolicy({
      ...category,
      neverOn: ['ValueError'],
      retryOn: ['any', 'ValueError'],
    });
    const failure: Failure = { class: 'technical', names: ['ValueError', 'Error'] };
    expect(isRetried(policy, { class: 'technical', names: ['KeyError', 'Error'] })).toBe(true);
    expect(isRetried(policy, failure)).toBe(false);
    expect(isRetried(both, failure)).toBe(true);
  });

  it('without idempotence is only what surely was not executed', () => {
    const policy = { ...steady, idempotent: false, retryOn: ['any'] };
    expect(outcome(policy)).toBe('PERMANENT');
    expect(outcome(policy, { failure: { ...transient, notExecuted: true } })).toBe(100);
    const refused: Failure = { class: 'business', notExecuted: true };
    expect(outcome({ ...policy, retryOn: ['transient'] }, { failure: refused })).toBe('PERMANENT');
  });

  it('is what the caller says, before what the lists say', () => {
    const policy = { ...steady, retryOn: [], neverOn: ['any'] };
    expect(outcome(policy, { retryable: true })).toBe(100);
    expect(outcome(steady, { retryable: false })).toBe('PERMANENT');
  });

  it('is nothing that may have run, where that must not happen twice, whatever the caller says', () => {
    const policy = { ...steady, idempotent: false };
    const failure = { class: 'transient' } as const;
    expect(outcome(policy, { retryable: true, failure })).toBe('PERMANENT');
    expect(outcome(policy, { retryable: true, failure: { ...failure, notExecuted: true } })).toBe(
      100,
    );
  });

  it('is not decided by a word that stands for a missing status', () => {
    expect(isRetried({ retryOn: ['undefined'] }, { class: 'business' })).toBe(false);
  });
});

describe('overrides', () => {
  const policy = definePolicy({
    ...steady,
    overrides: {
      429: { schedule: ['5s', '50s'], maxRetryAfter: '1h' },
      ECONNRESET: { maxAttempts: 2 },
      SocketError: { strategy: 'fixed', base: 7 },
      NetworkError: { strategy: 'fixed', base: 8 },
      unknown: { base: 1000, maxAttempts: 9 },
      undefined: { base: 1 },
    },
  });
  const limited: Failure = { class: 'transient', code: 'HTTP_429', status: 429 };

  it('give a status a schedule of its own', () => {
    const at = (attempt: number) => outcome(policy, { attempt, failure: limited });
    expect([at(1), at(2), at(3), at(4)]).toEqual([5000, 50_000, 50_000, 'EXHAUSTED']);
  });

  it('give a status a longest wait of its own', () => {
    const failure = { ...limited, retryAfterMs: 3_600_000 };
    expect(asked(policy, { failure })).toMatchObject({ reason: 'RETRY_AFTER' });
    expect(asked(policy, { failure: { ...failure, status: 503 } })).toMatchObject({
      reason: 'RETRY_AFTER_TOO_LONG',
    });
  });

  it('give a code a number of attempts of its own, and say so', () => {
    expect(asked(policy, { attempt: 2 })).toMatchObject({ reason: 'EXHAUSTED', maxAttempts: 2 });
    expect(asked(policy, { attempt: 1 })).toMatchObject({ action: 'retry', maxAttempts: 2 });
  });

  it('give a class numbers of its own', () => {
    const failure: Failure = { class: 'unknown' };
    expect(asked(policy, { attempt: 5, failure })).toMatchObject({
      delayMs: 16_000,
      maxAttempts: 9,
    });
  });

  it.each([
    ['code before status', { ...limited, code: 'ECONNRESET' }, { maxAttempts: 2 }],
    ['status before name', { ...limited, names: ['SocketError'] }, { delayMs: 5000 }],
    [
      'name before the name it extends',
      { class: 'transient', names: ['SocketError', 'NetworkError'] },
      { delayMs: 7 },
    ],
    ['name before class', { class: 'unknown', names: ['NetworkError'] }, { delayMs: 8 }],
    [
      'none of them',
      { class: 'transient', code: 'EPIPE', status: 500, names: ['Error'] },
      { delayMs: 100 },
    ],
    ['nothing but a class that is not named', { class: 'transient' }, { delayMs: 100 }],
  ] as [string, Failure, object][])('apply by %s', (_order, failure, expected) => {
    expect(asked(policy, { failure })).toMatchObject(expected);
  });

  it('do not decide what is retried', () => {
    const failure: Failure = { ...limited, class: 'business' };
    expect(outcome(policy, { failure })).toBe('PERMANENT');
  });
});
