import { describe, expect, it } from 'vitest';
import type { Decision, GiveUp, Retry } from './decide.ts';
import { explain } from './explain.ts';
import type { Failure } from './failure/failure.ts';

const failure: Failure = { class: 'transient', code: 'ECONNRESET', names: ['Error'] };
const refused: Failure = { class: 'transient', code: 'CIRCUIT_OPEN', counted: false };

function retrying(change: Partial<Retry>): Decision {
  return {
    action: 'retry',
    reason: 'BACKOFF',
    delayMs: 250,
    attempt: 2,
    nextAttempt: 3,
    maxAttempts: 4,
    failure,
    ...change,
  };
}

function givingUp(change: Partial<GiveUp>): Decision {
  return { action: 'giveUp', reason: 'EXHAUSTED', attempt: 4, maxAttempts: 4, failure, ...change };
}

describe('the sentence about a decision', () => {
  it.each([
    [retrying({}), 'Attempt 2 of 4 failed (ECONNRESET, transient); the next one starts in 250 ms.'],
    [
      retrying({ reason: 'RETRY_AFTER', delayMs: 61_000 }),
      'Attempt 2 of 4 failed (ECONNRESET, transient); as the server asked, the next one starts in 1 min.',
    ],
    [
      retrying({ reason: 'CIRCUIT_OPEN', delayMs: 1500, failure: refused }),
      'Attempt 2 of 4 was not started; the circuit breaker is open for another 1.5 s.',
    ],
    [
      givingUp({}),
      'Attempt 4 of 4 failed (ECONNRESET, transient); gave up because no attempts are left.',
    ],
    [
      givingUp({ reason: 'PERMANENT', attempt: 1, failure: { class: 'business' } }),
      'Attempt 1 of 4 failed (business); gave up because the policy does not retry such a failure.',
    ],
    [
      givingUp({ reason: 'DEADLINE' }),
      'Attempt 4 of 4 failed (ECONNRESET, transient); gave up because the next attempt could not start before the deadline.',
    ],
    [
      givingUp({ reason: 'BUDGET' }),
      'Attempt 4 of 4 failed (ECONNRESET, transient); gave up because the shared retry budget is used up.',
    ],
    [
      givingUp({ reason: 'CIRCUIT_OPEN', failure: refused, retryAfterMs: 30_000 }),
      'Attempt 4 of 4 was not started; gave up because the circuit breaker is open (come back after 30 s).',
    ],
    [givingUp({ reason: 'ABORTED', attempt: 3 }), 'The caller aborted at attempt 3 of 4.'],
    [
      givingUp({ reason: 'RETRY_AFTER_TOO_LONG', retryAfterMs: 7_200_000 }),
      'Attempt 4 of 4 failed (ECONNRESET, transient); gave up because the server asked for too long a wait (come back after 2 h).',
    ],
    [
      givingUp({ reason: 'TOO_MANY_UNCOUNTED' }),
      'Attempt 4 of 4 failed (ECONNRESET, transient); gave up because too many failures consumed no attempt.',
    ],
  ])('$reason', (decision, sentence) => {
    expect(explain(decision)).toBe(sentence);
  });

  it('names the failure by its code, else by the name of the error, else by its class', () => {
    const start = (named: Failure) => explain(retrying({ failure: named })).split(';')[0];
    expect(start({ class: 'technical', code: 'E1', names: ['TypeError'] })).toBe(
      'Attempt 2 of 4 failed (E1, technical)',
    );
    expect(start({ class: 'technical', names: ['TypeError', 'Error'] })).toBe(
      'Attempt 2 of 4 failed (TypeError, technical)',
    );
    expect(start({ class: 'technical', names: [] })).toBe('Attempt 2 of 4 failed (technical)');
  });

  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1 s'],
    [1949, '1.9 s'],
    [59_900, '59.9 s'],
    [60_000, '1 min'],
    [3_600_000, '1 h'],
    [5_400_000, '1.5 h'],
    [86_400_000, '1 d'],
    [3_153_600_000_000, '36500 d'],
  ])('says %d ms as %s', (delayMs, said) => {
    expect(explain(retrying({ delayMs }))).toMatch(new RegExp(` in ${said}\\.$`));
  });
});
