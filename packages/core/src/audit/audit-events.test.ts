import { describe, expect, it } from 'vitest';
import { auditEntry, decisionEntry, type Happening, policyEntry } from './audit-events.ts';
import { decide, type Facts } from '../decide.ts';
import { definePolicy } from '../policy/policy.ts';

const subject = {
  category: 'RETRY_API_REQUEST',
  operation: 'get_user',
  tenantId: 't-1',
  correlationId: 'c-1',
  traceId: '0af7651916cd43dd8448eb211c80319c',
};
const failure = {
  class: 'transient',
  code: 'ECONNRESET',
  names: ['SocketError', 'Error'],
  message: 'connection reset',
} as const;

function entryOf(policy: Parameters<typeof definePolicy>[0], facts: Facts, waitMs?: number) {
  const defined = definePolicy(policy);
  const decision = decide(defined, facts);
  return decisionEntry(subject, { policy: defined, facts, decision }, { lane: 'a' }, waitMs);
}

describe('the event of a decision', () => {
  it('has the fields of retry_attempt, in their order, when there will be another', () => {
    const entry = entryOf({ base: '500ms', jitter: 'none' }, { attempt: 2, failure, key: 'k' });
    const { redrive, ...fields } = entry;
    expect(JSON.stringify(fields)).toBe(
      JSON.stringify({
        event_type: 'retry_attempt',
        retry_category: 'RETRY_API_REQUEST',
        operation: 'get_user',
        attempt_number: 2,
        max_attempts: 4,
        delay_seconds: 1,
        exception_type: 'SocketError',
        exception_message: 'connection reset',
        tenant_id: 't-1',
        correlation_id: 'c-1',
        trace_id: '0af7651916cd43dd8448eb211c80319c',
      }),
    );
    expect(redrive).toMatchObject({ lane: 'a', key: 'k', policy: expect.any(String) as string });
  });

  it('has the fields of retry_exhausted, in their order, when every attempt has failed', () => {
    const { redrive: _, ...fields } = entryOf({ maxAttempts: 2 }, { attempt: 2, failure });
    expect(JSON.stringify(fields)).toBe(
      JSON.stringify({
        event_type: 'retry_exhausted',
        retry_category: 'RETRY_API_REQUEST',
        operation: 'get_user',
        total_attempts: 2,
        final_exception_type: 'SocketError',
        final_exception_message: 'connection reset',
        tenant_id: 't-1',
        correlation_id: 'c-1',
        trace_id: '0af7651916cd43dd8448eb211c80319c',
      }),
    );
  });

  it.each<[string, Parameters<typeof definePolicy>[0], Partial<Facts>]>([
    ['non_retryable', { retryOn: [] }, {}],
    ['deadline', { deadline: 10 }, { elapsedMs: 11 }],
    ['budget', {}, { budgetExhausted: true }],
    ['aborted', {}, { aborted: true }],
    ['circuit_open', {}, { circuit: { waitMs: 5, waited: true } }],
    ['retry_after_too_long', { maxRetryAfter: 1 }, { failure: { ...failure, retryAfterMs: 2 } }],
    ['too_many_uncounted', { maxUncounted: 0 }, { failure: { ...failure, counted: false } }],
  ])('is retry_abandoned with the reason %s otherwise', (reason, policy, facts) => {
    expect(entryOf(policy, { attempt: 1, failure, ...facts })).toMatchObject({
      event_type: 'retry_abandoned',
      reason,
      attempt_number: 1,
      max_attempts: 4,
    });
  });

  it('has the wait that was set by somebody else, beside the decision', () => {
    const facts = { attempt: 1, failure };
    const entry = entryOf({ base: 100, jitter: 'none' }, facts, 7500);
    expect(entry).toMatchObject({
      delay_seconds: 7.5,
      redrive: { wait_ms: 7500, decision: { delay_ms: 100 } },
    });
    const same = entryOf({ base: 100, jitter: 'none' }, facts, 100);
    expect(same.redrive).not.toHaveProperty('wait_ms');
  });

  it('keeps the message out of the facts, and the failure out of the decision', () => {
    const { redrive } = entryOf({}, { attempt: 1, failure });
    expect(redrive).toMatchObject({ facts: { failure: { code: 'ECONNRESET' } } });
    expect(JSON.stringify(redrive)).not.toContain('connection reset');
  });
});

describe('an event', () => {
  const attempt: Happening = { type: 'retry_attempt', attempt: 1, maxAttempts: 3, delayMs: 0 };

  it('has null for what is not known', () => {
    expect(auditEntry({ category: 'a', operation: 'b' }, attempt)).toMatchObject({
      exception_type: null,
      exception_message: null,
      tenant_id: null,
      correlation_id: null,
      trace_id: null,
    });
  });

  it('names the code where the error has no name', () => {
    const coded = { ...attempt, failure: { class: 'unknown', code: 'E1' } } as const;
    expect(auditEntry(subject, coded)['exception_type']).toBe('E1');
  });

  it.each([
    ['a', 1024],
    ['ü', 512],
    ['测', 341],
    ['🚀', 256],
  ])('has a KiB of a message at most, and no half of %s', (character, count) => {
    const message = character.repeat(2000);
    const long = { ...attempt, failure: { class: 'unknown', message } } as const;
    expect(auditEntry(subject, long)['exception_message']).toBe(character.repeat(count));
    const short = character.repeat(count);
    const fits = { ...attempt, failure: { class: 'unknown', message: short } } as const;
    expect(auditEntry(subject, fits)['exception_message']).toBe(short);
  });
});

it('registers a policy with its fingerprint and its JSON', () => {
  const policy = definePolicy({ maxAttempts: 7, deadline: '1m' });
  const entry = JSON.parse(JSON.stringify(policyEntry(policy))) as Record<string, unknown>;
  expect(entry['event_type']).toBe('policy_registered');
  expect(entry['policy']).toBe(policy.fingerprint);
  expect(definePolicy(entry['definition'] as object).fingerprint).toBe(policy.fingerprint);
});
