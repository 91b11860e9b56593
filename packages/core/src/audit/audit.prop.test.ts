import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { replayAudit } from './audit.ts';
import { type AuditEntry, decisionEntry, policyEntry } from './audit-events.ts';
import { Sequences } from './audit-sequence.ts';
import { decide, type Facts } from '../decide.ts';
import { failureClasses } from '../failure/failure.ts';
import { definePolicy } from '../policy/policy.ts';
import { policyFields, type Policy } from '../policy/policy-fields.ts';

const odd = fc.constantFrom(Infinity, -Infinity, NaN, -1, 0, 0.5, Number.MAX_VALUE, -0);
const ms = fc.oneof(fc.nat({ max: 100_000 }), fc.nat({ max: 10_000_000_000 }));
const number = fc.oneof(ms, odd);
const names = ['any', 'Error', '429', '5xx', 'ECONNRESET', 'TypeError', ...failureClasses];
const policies: fc.Arbitrary<Policy> = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 12 }),
    strategy: fc.constantFrom('exponential', 'linear', 'fixed'),
    base: ms,
    cap: ms,
    jitter: fc.constantFrom(...policyFields.jitter.of.filter((one) => one !== 'decorrelated')),
    deadline: fc.integer({ min: 1, max: 10_000_000 }),
    maxRetryAfter: ms,
    retryOn: fc.array(fc.constantFrom(...names), { maxLength: 4 }),
    neverOn: fc.array(fc.constantFrom(...names), { maxLength: 2 }),
    maxUncounted: fc.nat({ max: 12 }),
    idempotent: fc.boolean(),
    overrides: fc.dictionary(fc.constantFrom(...names), fc.record({ base: ms }), { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);
const decorrelated = policies.map((policy): Policy => {
  return { ...policy, strategy: 'exponential', jitter: 'decorrelated' };
});
const failures = fc.record(
  {
    class: fc.constantFrom(...failureClasses),
    code: fc.constantFrom('ECONNRESET', 'EPIPE'),
    status: fc.constantFrom(429, 503, 404),
    names: fc.subarray(['TypeError', 'SocketError', 'Error']),
    message: fc.string(),
    retryAfterMs: number,
    notExecuted: fc.boolean(),
    counted: fc.boolean(),
  },
  { requiredKeys: ['class'] },
);
const facts = fc.record(
  {
    attempt: fc.oneof(fc.integer({ min: 1, max: 12 }), number),
    failure: failures,
    seed: fc.oneof(fc.maxSafeNat(), odd),
    key: fc.oneof(fc.uuid(), fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', 'Infinity')),
    random: fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), odd),
    previousMs: number,
    uncounted: fc.oneof(fc.nat({ max: 12 }), odd),
    elapsedMs: number,
    remainingMs: number,
    retryable: fc.boolean(),
    aborted: fc.boolean(),
    budgetExhausted: fc.boolean(),
    circuit: fc.record({ waitMs: number, waited: fc.boolean() }),
  },
  { requiredKeys: ['attempt', 'failure'] },
) as unknown as fc.Arbitrary<Facts>;

const asJson = (entry: AuditEntry): unknown => JSON.parse(JSON.stringify(entry));

it('every decision that went through JSON comes out the same, whatever policy and facts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(policies, decorrelated), facts, async (written, given) => {
      const policy = definePolicy(written);
      const decided = { policy, facts: given, decision: decide(policy, given) };
      const entry = decisionEntry({ category: 'c', operation: 'o' }, decided);
      const trail = [asJson(entry), asJson(policyEntry(policy))];
      const report = await replayAudit(trail);
      expect(report.differing).toEqual([]);
      expect(report).toMatchObject({ checked: 1, same: 1, wrongPolicies: [] });
    }),
    { numRuns: 1000 },
  );
});

it('every name in an event is snake_case', () => {
  fc.assert(
    fc.property(policies, facts, (written, given) => {
      const policy = definePolicy(written);
      const decided = { policy, facts: given, decision: decide(policy, given) };
      const check = (value: unknown): void => {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
        for (const [name, inner] of Object.entries(value)) {
          expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
          check(inner);
        }
      };
      check(asJson(decisionEntry({ category: 'c', operation: 'o' }, decided)));
    }),
  );
});

it('what is missing and what is twice is found in any order', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (numbers) => {
      // The first one seen is where the trail begins.
      const start = Math.min(...numbers);
      const sequences = new Sequences(100);
      for (const one of [start, ...numbers]) sequences.see('i', 1, one);
      const seen = new Set(numbers);
      const expected: number[] = [];
      for (let n = start; n <= Math.max(...numbers); n++) if (!seen.has(n)) expected.push(n);
      const { missing, gaps } = sequences.end();
      expect(missing).toBe(expected.length);
      const listed = gaps.flatMap(({ from, to }) =>
        Array.from({ length: to - from + 1 }, (_, i) => from + i),
      );
      expect(listed.toSorted((a, b) => a - b)).toEqual(expected);
      expect(sequences.twins).toBe(numbers.length + 1 - seen.size);
    }),
  );
});
