import { describe, expect, it } from 'vitest';
import { decide, type Decision, type Facts, giveUp } from './decide.ts';
import type { Failure } from './failure/failure.ts';
import { definePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import { presets } from './policy/presets.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;
const transient: Failure = { class: 'transient', code: 'ECONNRESET' };
const uncountedFailure: Failure = { class: 'transient', code: 'SNOOZED', counted: false };

function asked(policy: Policy, facts: Partial<Facts> = {}): Decision {
  return decide(policy, { attempt: 1, failure: transient, ...facts });
}

/** The delay, or why there is none. */
function outcome(policy: Policy, facts: Partial<Facts> = {}): number | string {
  const decision = asked(policy, facts);
  return decision.action === 'retry' ? decision.delayMs : decision.reason;
}

describe('a decision', () => {
  it('to retry says when, and with which number', () => {
    expect(asked(steady, { attempt: 3 })).toEqual({
      action: 'retry',
      reason: 'BACKOFF',
      delayMs: 400,
      attempt: 3,
      nextAttempt: 4,
      maxAttempts: 4,
      failure: transient,
    });
  });

  it('to give up says why', () => {
    expect(asked(steady, { attempt: 4 })).toEqual({
      action: 'giveUp',
      reason: 'EXHAUSTED',
      attempt: 4,
      maxAttempts: 4,
      failure: transient,
    });
  });

  it('gives as many attempts as the policy has', () => {
    const outcomes = [1, 2, 3, 4, 5, 1e9].map((attempt) => outcome(steady, { attempt }));
    expect(outcomes).toEqual([100, 200, 400, 'EXHAUSTED', 'EXHAUSTED', 'EXHAUSTED']);
    expect(outcome({ ...steady, maxAttempts: 1 })).toBe('EXHAUSTED');
  });

  it('takes its random number from seed, key and attempt', () => {
    const at = (facts: Partial<Facts>) => outcome({ base: 1_000_000, cap: '1d' }, facts);
    const first = at({ seed: 42, key: 'order-1' });
    expect(at({ seed: 42, key: 'order-1' })).toBe(first);
    expect(at({ seed: 43, key: 'order-1' })).not.toBe(first);
    expect(at({ seed: 42, key: 'order-2' })).not.toBe(first);
    expect(at({})).toBe(at({ seed: 0, key: '' }));
    expect(at({ seed: 42, key: 'order-1', attempt: 2 })).not.toBe((first as number) * 2);
  });

  // An audit trail replays to these.
  it.each([
    ['default', { seed: 0, key: 'order-1', attempt: 1 }, 75],
    ['default', { seed: 0, key: 'order-1', attempt: 2 }, 154],
    ['scheduler', { seed: 0, key: 'order-1', attempt: 3 }, 8627],
    ['notification.high', { seed: 7, key: 'order-2', attempt: 8 }, 920_433],
    ['fallback', { seed: 42, key: '550e8400-e29b-41d4-a716-446655440000', attempt: 1 }, 109],
  ] as const)('of the preset %s about %o is %d ms for ever', (name, facts, delayMs) => {
    expect(asked(presets[name], facts)).toMatchObject({ delayMs });
  });

  it('takes a random number that is given instead', () => {
    const policy = { strategy: 'fixed', base: 1000 } as const;
    expect(outcome(policy, { random: 0.25, seed: 1, key: 'order-1' })).toBe(250);
    expect(outcome(policy, { random: -3 })).toBe(0);
    expect(outcome(policy, { random: 3 })).toBe(1000);
  });

  it('derives the random number where the given one would not survive JSON', () => {
    const policy = { strategy: 'fixed', base: 1_000_000 } as const;
    for (const random of [NaN, Infinity, -Infinity]) {
      expect(outcome(policy, { random, key: 'a' })).toBe(outcome(policy, { key: 'a' }));
    }
  });

  it('walks on from the previous delay with the decorrelated jitter', () => {
    const policy = { base: 100, jitter: 'decorrelated' } as const;
    expect(outcome(policy, { random: 0.5 })).toBe(200);
    expect(outcome(policy, { random: 0.5, attempt: 2, previousMs: 1000 })).toBe(1550);
  });
});

describe('the reasons to give up', () => {
  const late = { ...transient, retryAfterMs: 61_000 };

  it.each([
    ['ABORTED', steady, { aborted: true }],
    ['DEADLINE', { ...steady, deadline: 1000 }, { elapsedMs: 1000 }],
    ['DEADLINE', { ...steady, deadline: 1000 }, { elapsedMs: 900 }],
    ['DEADLINE', steady, { remainingMs: 0 }],
    ['DEADLINE', steady, { remainingMs: 100 }],
    ['CIRCUIT_OPEN', steady, { circuit: { waitMs: 500, waited: true } }],
    ['CIRCUIT_OPEN', steady, { circuit: { waitMs: 500, waited: false }, remainingMs: 500 }],
    ['PERMANENT', steady, { failure: { class: 'business' } }],
    ['PERMANENT', steady, { retryable: false }],
    ['EXHAUSTED', steady, { attempt: 4 }],
    ['TOO_MANY_UNCOUNTED', steady, { failure: uncountedFailure, uncounted: 10 }],
    ['CIRCUIT_OPEN', steady, { circuit: { waitMs: 500, waited: false }, uncounted: 10 }],
    ['RETRY_AFTER_TOO_LONG', steady, { failure: late }],
    ['BUDGET', steady, { budgetExhausted: true }],
  ] as [string, Policy, Partial<Facts>][])('%s: with %o about %o', (reason, policy, facts) => {
    expect(outcome(policy, facts)).toBe(reason);
  });

  it('have an order, so that the first that holds is the one that is named', () => {
    const policy = { ...steady, deadline: 1000, retryOn: ['transient'] } as const;
    const everything: Partial<Facts> = {
      aborted: true,
      elapsedMs: 1000,
      failure: { ...late, class: 'business' },
      attempt: 4,
      budgetExhausted: true,
    };
    const cures: [string, Partial<Facts>][] = [
      ['ABORTED', { aborted: false }],
      ['DEADLINE', { elapsedMs: 999 }],
      ['PERMANENT', { failure: late }],
      ['EXHAUSTED', { attempt: 1 }],
      ['RETRY_AFTER_TOO_LONG', { failure: transient }],
      ['DEADLINE', { elapsedMs: 0 }],
      ['BUDGET', { budgetExhausted: false }],
    ];
    let facts = everything;
    for (const [reason, cure] of cures) {
      expect(outcome(policy, facts)).toBe(reason);
      facts = { ...facts, ...cure };
    }
    expect(outcome(policy, facts)).toBe(100);
  });

  it('have an order behind an open breaker too', () => {
    const policy = { ...steady, deadline: 1000, retryOn: [] };
    let facts: Partial<Facts> = {
      aborted: true,
      elapsedMs: 1000,
      circuit: { waitMs: 600, waited: true },
      failure: uncountedFailure,
      uncounted: 10,
      budgetExhausted: true,
      attempt: 4,
    };
    const cures: [string, Partial<Facts>][] = [
      ['ABORTED', { aborted: false }],
      ['DEADLINE', { elapsedMs: 500 }],
      ['CIRCUIT_OPEN', { circuit: { waitMs: 600, waited: false } }],
      ['CIRCUIT_OPEN', { uncounted: 9 }],
      ['CIRCUIT_OPEN', { elapsedMs: 0 }],
    ];
    for (const [reason, cure] of cures) {
      expect(outcome(policy, facts)).toBe(reason);
      facts = { ...facts, ...cure };
    }
    expect(outcome(policy, facts)).toBe(600);
  });
});

describe('giving up', () => {
  it('carries the wait that was asked for, in whole ms and not too short, if one was', () => {
    const base = {
      action: 'giveUp',
      reason: 'BUDGET',
      attempt: 2,
      maxAttempts: 4,
      failure: transient,
    };
    expect(giveUp('BUDGET', 2, 4, transient)).toEqual(base);
    expect(giveUp('BUDGET', 2, 4, transient, 0)).toEqual(base);
    expect(giveUp('BUDGET', 2, 4, transient, 0.2)).toEqual({ ...base, retryAfterMs: 1 });
  });
});

describe('a deadline', () => {
  const policy = { ...steady, deadline: 1000 };

  it('allows a delay that ends before it, and none that ends at it', () => {
    expect(outcome(policy, { elapsedMs: 899 })).toBe(100);
    expect(outcome(policy, { elapsedMs: 900 })).toBe('DEADLINE');
  });

  it('counts from the start where the time that passed is unknown', () => {
    expect(outcome(policy)).toBe(100);
    expect(outcome({ ...policy, deadline: 100 })).toBe('DEADLINE');
    expect(outcome({ ...policy, deadline: 101 })).toBe(100);
  });

  it('is the earlier one of the policy and the caller', () => {
    expect(outcome(policy, { elapsedMs: 0, remainingMs: 100 })).toBe('DEADLINE');
    expect(outcome(policy, { elapsedMs: 950, remainingMs: 9000 })).toBe('DEADLINE');
    expect(outcome(policy, { elapsedMs: 0, remainingMs: 101 })).toBe(100);
    expect(outcome(steady, { remainingMs: -5 })).toBe('DEADLINE');
  });

  it('is none when no time is left to name it: Infinity, also as the null that JSON makes of it', () => {
    for (const remainingMs of [Infinity, NaN, undefined, null]) {
      expect(outcome(steady, { remainingMs } as Partial<Facts>)).toBe(100);
    }
  });

  it('that a wait asked for does not fit hands the wait on', () => {
    const failure = { ...transient, retryAfterMs: 5000 };
    expect(asked(policy, { failure })).toMatchObject({ reason: 'DEADLINE', retryAfterMs: 5000 });
  });
});

describe('odd facts', () => {
  it.each([
    ['below 1', 0],
    ['negative', -3],
    ['not a number', NaN],
    ['missing', undefined],
    ['a text', '3'],
    ['a bigint', 3n],
  ])('an attempt that is %s is the first', (_what, attempt) => {
    expect(asked(steady, { attempt: attempt as number })).toMatchObject({
      attempt: 1,
      nextAttempt: 2,
      delayMs: 100,
    });
  });

  it('an attempt with a fraction is the whole one below', () => {
    expect(asked(steady, { attempt: 2.9 })).toMatchObject({ attempt: 2, delayMs: 200 });
  });

  it('a count with a fraction is the whole one below', () => {
    expect(outcome(steady, { uncounted: 1.9, failure: uncountedFailure })).toBe(200);
  });

  it('an attempt without end saturates and can still be written down', () => {
    const decision = asked(steady, { attempt: Infinity });
    expect(decision).toMatchObject({ attempt: Number.MAX_SAFE_INTEGER, reason: 'EXHAUSTED' });
    expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
  });

  it('a count without end saturates too', () => {
    for (const multiplier of [1, 2]) {
      const policy = { ...steady, multiplier, maxUncounted: 10 };
      expect(outcome(policy, { uncounted: Infinity, failure: uncountedFailure })).toBe(
        'TOO_MANY_UNCOUNTED',
      );
    }
  });

  it('failures that consumed nothing before do not lengthen the delay of one that counts', () => {
    expect(outcome(steady, { attempt: 2, uncounted: 3 })).toBe(200);
  });

  it('an attempt past the limit is exhausted even where it was not counted', () => {
    const facts = { attempt: 9, failure: uncountedFailure };
    expect(outcome({ ...steady, maxAttempts: 4 }, facts)).toBe('EXHAUSTED');
    expect(outcome({ ...steady, maxAttempts: 9 }, facts)).toBe(25_600);
  });

  it('5xx and 4xx name statuses, in lists and in overrides', () => {
    const failure = { class: 'unknown', status: 503 } as const;
    expect(outcome({ ...steady, retryOn: ['5xx'] }, { failure })).toBe(100);
    expect(outcome({ ...steady, retryOn: ['4xx'] }, { failure })).toBe('PERMANENT');
    expect(outcome({ ...steady, overrides: { '5xx': { base: 7 } } }, { failure })).toBe(7);
  });

  it('an override of any holds where nothing else does', () => {
    const overrides = { any: { base: 7 }, transient: { base: 9 } };
    expect(outcome({ ...steady, overrides }, { failure: { class: 'unknown' } })).toBe(7);
    expect(outcome({ ...steady, overrides }, { failure: { class: 'transient' } })).toBe(9);
  });

  it('a count that is a text is not glued to the attempt', () => {
    const facts = { uncounted: '3' as unknown as number, failure: uncountedFailure };
    expect(outcome(steady, facts)).toBe(100);
  });

  it('a key that is a number still tells one call from another', () => {
    const at = (key: unknown) => outcome({ base: 1_000_000, cap: '1d' }, { key: key as string });
    expect(at(1)).not.toBe(at(2));
    expect(at(1)).toBe(at('1'));
    expect(at({})).toBe(at(''));
    expect(at(null)).toBe(at(''));
  });

  it('a seed that is no number is 0', () => {
    const at = (seed: unknown) => outcome({ base: 1_000_000, cap: '1d' }, { seed: seed as number });
    for (const odd of [NaN, Infinity, null, 5n, '5', {}]) expect(at(odd)).toBe(at(0));
  });

  it('a failure that is none is unknown', () => {
    for (const failure of [undefined, null, 'ECONNRESET', 5]) {
      const decision = asked(steady, { failure: failure as unknown as Failure });
      expect(decision).toMatchObject({ action: 'retry', failure: { class: 'unknown' } });
      expect(Object.isFrozen(decision.failure)).toBe(true);
    }
  });

  it('names and a status of another kind name nothing', () => {
    const failure = {
      class: 'business',
      names: 5,
      status: { toString: null },
    } as unknown as Failure;
    const policy = definePolicy({ retryOn: ['x'], overrides: { x: { base: 1 } } });
    expect(outcome(policy, { failure })).toBe('PERMANENT');
  });

  it('facts that are missing are those of a first failure', () => {
    for (const facts of [undefined, null, 5]) {
      expect(decide(steady, facts as unknown as Facts)).toMatchObject({ attempt: 1, delayMs: 100 });
    }
  });
});
