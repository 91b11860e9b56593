import { describe, expect, it } from 'vitest';
import { decide, type Decision, type Facts } from './decide.ts';
import type { Failure } from './failure/failure.ts';
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

describe('what a server asks for', () => {
  const ask = (retryAfterMs: number, policy: Policy = steady, facts: Partial<Facts> = {}) =>
    asked(policy, { failure: { ...transient, retryAfterMs }, ...facts });

  it('is a floor, spread upwards by a tenth', () => {
    const delays = [0, 0.5, 0.9999].map((random) => ask(60_000, steady, { random }));
    expect(delays).toMatchObject([
      { delayMs: 60_000, reason: 'RETRY_AFTER' },
      { delayMs: 63_000, reason: 'RETRY_AFTER' },
      { delayMs: 65_999, reason: 'RETRY_AFTER' },
    ]);
  });

  it('counts only where it is longer than the backoff', () => {
    expect(ask(99)).toMatchObject({ delayMs: 100, reason: 'BACKOFF' });
    expect(ask(100)).toMatchObject({ delayMs: 100, reason: 'BACKOFF' });
    expect(ask(101, steady, { random: 0 })).toMatchObject({ delayMs: 101, reason: 'RETRY_AFTER' });
  });

  it('outranks the cap, the hard one too', () => {
    const policy = { ...steady, cap: 500, hardCap: true };
    expect(ask(30_000, policy, { random: 0 })).toMatchObject({ delayMs: 30_000 });
    expect(ask(30_000, policy, { random: 1 })).toMatchObject({ delayMs: 33_000 });
  });

  it('is never rounded to an earlier time', () => {
    expect(ask(1000.2, steady, { random: 0 })).toMatchObject({ delayMs: 1001 });
  });

  it('is followed up to maxRetryAfter, and beyond that given up with the wait', () => {
    expect(ask(60_000)).toMatchObject({ action: 'retry' });
    expect(ask(60_001)).toEqual({
      action: 'giveUp',
      reason: 'RETRY_AFTER_TOO_LONG',
      attempt: 1,
      maxAttempts: 4,
      failure: { ...transient, retryAfterMs: 60_001 },
      retryAfterMs: 60_001,
    });
    expect(ask(86_400_000, presets.scheduler)).toMatchObject({ action: 'retry' });
    expect(ask(86_400_001, presets.scheduler)).toMatchObject({ reason: 'RETRY_AFTER_TOO_LONG' });
    expect(ask(1, { ...steady, maxRetryAfter: 0 })).toMatchObject({
      reason: 'RETRY_AFTER_TOO_LONG',
    });
  });

  it('is handed on whatever the reason to give up', () => {
    const reasons: Partial<Facts>[] = [
      { aborted: true },
      { remainingMs: 0 },
      { retryable: false },
      { attempt: 4 },
      { budgetExhausted: true },
    ];
    for (const facts of reasons)
      expect(ask(7000, steady, facts)).toMatchObject({ retryAfterMs: 7000 });
    expect(ask(1, steady, { attempt: 4 })).toMatchObject({ retryAfterMs: 1 });
    expect('retryAfterMs' in ask(0, steady, { attempt: 4 })).toBe(false);
  });

  it('is ignored when it is no number of ms', () => {
    for (const odd of [NaN, -5, '60', null, 5n, {}]) {
      expect(ask(odd as number)).toMatchObject({ delayMs: 100, reason: 'BACKOFF' });
    }
    expect(ask(Infinity)).toMatchObject({
      reason: 'RETRY_AFTER_TOO_LONG',
      retryAfterMs: Number.MAX_SAFE_INTEGER,
    });
  });
});

describe('failures that consume no attempt', () => {
  it('leave the number as it is, even at the last attempt', () => {
    expect(asked(steady, { attempt: 4, failure: uncountedFailure })).toMatchObject({
      action: 'retry',
      attempt: 4,
      nextAttempt: 4,
    });
  });

  it('are limited themselves', () => {
    const outcomes = [0, 1, 2, 3].map((uncounted) =>
      outcome({ ...steady, maxUncounted: 2 }, { failure: uncountedFailure, uncounted }),
    );
    expect(outcomes).toEqual([100, 200, 'TOO_MANY_UNCOUNTED', 'TOO_MANY_UNCOUNTED']);
    expect(outcome({ ...steady, maxUncounted: 0 }, { failure: uncountedFailure })).toBe(
      'TOO_MANY_UNCOUNTED',
    );
  });

  it('are ten at most unless told otherwise', () => {
    const facts = { failure: uncountedFailure };
    expect(outcome(steady, { ...facts, uncounted: 9 })).toBe(30_000);
    expect(outcome(steady, { ...facts, uncounted: 10 })).toBe('TOO_MANY_UNCOUNTED');
  });

  it('end together with the counted ones, whatever their order', () => {
    let facts: Facts = { attempt: 1, failure: transient, uncounted: 0 };
    let decisions = 0;
    for (;;) {
      const failure = decisions % 2 === 0 ? uncountedFailure : transient;
      const decision = decide(steady, { ...facts, failure });
      decisions += 1;
      if (decision.action === 'giveUp') break;
      const uncounted = (facts.uncounted ?? 0) + (failure === uncountedFailure ? 1 : 0);
      facts = { attempt: decision.nextAttempt, failure, uncounted };
    }
    expect(decisions).toBeLessThanOrEqual(4 + 10);
  });
});

describe('an open breaker', () => {
  const refused: Failure = { class: 'transient', code: 'CIRCUIT_OPEN', counted: false };

  it('is waited for once, for as long as it says, and costs no attempt', () => {
    const circuit = { waitMs: 1234.5, waited: false };
    expect(asked(steady, { attempt: 4, failure: refused, circuit })).toMatchObject({
      action: 'retry',
      reason: 'CIRCUIT_OPEN',
      delayMs: 1235,
      nextAttempt: 4,
    });
  });

  it('is waited for even for the shortest time', () => {
    const circuit = { waitMs: 0.5, waited: false };
    expect(asked(steady, { failure: refused, circuit })).toMatchObject({
      reason: 'CIRCUIT_OPEN',
      delayMs: 1,
    });
  });

  it('that was waited for already is given up on, with the time it takes', () => {
    const circuit = { waitMs: 1234.5, waited: true };
    expect(asked(steady, { failure: refused, circuit })).toMatchObject({
      reason: 'CIRCUIT_OPEN',
      retryAfterMs: 1235,
    });
  });

  it('that opens later than the deadline is given up on, with the time it takes', () => {
    const circuit = { waitMs: 5000, waited: false };
    expect(asked(steady, { failure: refused, circuit, remainingMs: 5000 })).toMatchObject({
      reason: 'CIRCUIT_OPEN',
      retryAfterMs: 5000,
    });
  });

  it('is waited for no more where too many waits were, and the time it takes is handed on', () => {
    const circuit = { waitMs: 1234.5, waited: false };
    const policy = { ...steady, maxUncounted: 2 };
    const reasons = [1, 2].map((uncounted) =>
      asked(policy, { failure: refused, circuit, uncounted }),
    );
    expect(reasons).toMatchObject([
      { action: 'retry', reason: 'CIRCUIT_OPEN' },
      { action: 'giveUp', reason: 'CIRCUIT_OPEN', retryAfterMs: 1235 },
    ]);
  });

  it('is not waited for at all where no uncounted failure is allowed, whatever its time', () => {
    for (const waitMs of [0, 1, 5000]) {
      const facts = { failure: refused, circuit: { waitMs, waited: false } };
      expect(outcome({ ...steady, maxUncounted: 0 }, facts)).toBe('CIRCUIT_OPEN');
    }
  });

  it('that is probing, and names no time, is tried again after a backoff', () => {
    const circuit = { waitMs: 0, waited: false };
    expect(asked(steady, { failure: refused, circuit, uncounted: 1 })).toMatchObject({
      reason: 'BACKOFF',
      delayMs: 200,
      nextAttempt: 1,
    });
  });

  it('needs no leave of retryOn, and no budget', () => {
    const circuit = { waitMs: 500, waited: false };
    const facts = { failure: refused, circuit, budgetExhausted: true, retryable: false };
    expect(outcome({ ...steady, retryOn: [], idempotent: false }, facts)).toBe(500);
  });

  it('is not there when circuit is null', () => {
    expect(outcome(steady, { circuit: null } as unknown as Partial<Facts>)).toBe(100);
  });
});
