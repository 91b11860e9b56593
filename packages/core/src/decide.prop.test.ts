import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { delayFor } from './policy/backoff.ts';
import { decide, type Decision, type Facts, type GiveUp } from './decide.ts';
import { explain } from './explain.ts';
import { type Failure, failureClasses } from './failure/failure.ts';
import { definePolicy, parsePolicy } from './policy/policy.ts';
import { overrideFields, type Policy, policyFields } from './policy/policy-fields.ts';
import { unitRandom } from './policy/random.ts';

const names = [
  'any',
  'Error',
  '429',
  '503',
  'ECONNRESET',
  'HTTP_429',
  'TypeError',
  ...failureClasses,
];
const ms = fc.oneof(fc.nat({ max: 100_000 }), fc.nat({ max: 100_000_000 }));
const numbers = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 12 }),
    strategy: fc.constantFrom('exponential', 'linear', 'fixed'),
    base: ms,
    cap: ms,
    multiplier: fc.double({ min: 1, max: 10, noNaN: true }),
    jitter: fc.constantFrom('none', 'up', 'around', 'add', 'full', 'equal'),
    jitterRatio: fc.double({ min: 0, max: 1, noNaN: true }),
    hardCap: fc.boolean(),
    maxRetryAfter: ms,
  },
  { requiredKeys: [] },
);
const policies: fc.Arbitrary<Policy> = fc
  .tuple(
    numbers,
    fc.record(
      {
        deadline: fc.integer({ min: 1, max: 1_000_000 }),
        retryOn: fc.array(fc.constantFrom(...names), { maxLength: 4 }),
        neverOn: fc.array(fc.constantFrom(...names), { maxLength: 2 }),
        maxUncounted: fc.nat({ max: 12 }),
        idempotent: fc.boolean(),
        overrides: fc.dictionary(fc.constantFrom(...names), numbers, { maxKeys: 3 }),
      },
      { requiredKeys: [] },
    ),
  )
  .map(([some, more]) => ({ ...some, ...more }));

const failures = fc.record(
  {
    class: fc.constantFrom(...failureClasses),
    code: fc.constantFrom('ECONNRESET', 'HTTP_429', 'EPIPE'),
    status: fc.constantFrom(429, 503, 404),
    names: fc.subarray(['TypeError', 'SocketError', 'Error']),
    retryAfterMs: fc.oneof(ms, fc.double({ min: 0, max: 1e6, noNaN: true })),
    notExecuted: fc.boolean(),
    counted: fc.boolean(),
  },
  { requiredKeys: ['class'] },
) as fc.Arbitrary<Failure>;
const facts = fc.record(
  {
    attempt: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1e9 })),
    failure: failures,
    seed: fc.maxSafeNat(),
    key: fc.oneof(fc.uuid(), fc.string()),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    previousMs: ms,
    uncounted: fc.nat({ max: 12 }),
    elapsedMs: ms,
    remainingMs: fc.oneof(ms, fc.constant(Infinity)),
    retryable: fc.boolean(),
    aborted: fc.boolean(),
    budgetExhausted: fc.boolean(),
    circuit: fc.record({ waitMs: ms, waited: fc.boolean() }),
  },
  { requiredKeys: ['attempt', 'failure'] },
) as fc.Arbitrary<Facts>;
/** Facts in which nothing but the policy speaks against a retry. */
const plainFacts = facts.map(({ attempt, failure, seed = 0, key = '' }): Facts => {
  return { attempt, failure: { ...failure, counted: true }, seed, key, retryable: true };
});

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSparseArray: true,
});
const odd = <T>(usual: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof(usual, anything, fc.double(), fc.constantFrom(Infinity, -Infinity, NaN, -0));
const oddFacts = fc.oneof(
  anything,
  fc.record(
    {
      attempt: odd(fc.nat()),
      failure: odd(
        fc.record(
          {
            class: odd(fc.constantFrom(...failureClasses)),
            code: anything,
            status: odd(fc.nat()),
            names: anything,
            retryAfterMs: odd(ms),
            counted: odd(fc.boolean()),
          },
          { requiredKeys: [] },
        ),
      ),
      seed: odd(fc.nat()),
      key: odd(fc.string()),
      random: odd(fc.double()),
      previousMs: odd(ms),
      uncounted: odd(fc.nat({ max: 9 })),
      elapsedMs: odd(ms),
      remainingMs: odd(ms),
      retryable: odd(fc.constant(true)),
      aborted: fc.constant(false),
      circuit: odd(fc.record({ waitMs: odd(ms), waited: odd(fc.constant(false)) })),
    },
    { requiredKeys: [] },
  ),
);
const oddPolicies = fc.oneof(
  policies,
  anything,
  fc.dictionary(fc.constantFrom(...Object.keys(policyFields)), anything),
  fc.record({
    retryOn: odd(fc.constant(['any'])),
    overrides: fc.dictionary(
      fc.constantFrom(...names),
      fc.dictionary(fc.constantFrom(...overrideFields), odd(ms)),
    ),
  }),
);

const giveUpReasons: GiveUp['reason'][] = [
  'EXHAUSTED',
  'PERMANENT',
  'DEADLINE',
  'BUDGET',
  'CIRCUIT_OPEN',
  'ABORTED',
  'RETRY_AFTER_TOO_LONG',
  'TOO_MANY_UNCOUNTED',
];

function expectSound(decision: Decision): void {
  expect(Number.isSafeInteger(decision.attempt) && decision.attempt >= 1).toBe(true);
  expect(Number.isSafeInteger(decision.maxAttempts) && decision.maxAttempts >= 1).toBe(true);
  if (decision.action === 'retry') {
    const { delayMs, nextAttempt, attempt } = decision;
    expect(Number.isSafeInteger(delayMs) && delayMs >= 0).toBe(true);
    expect(delayMs).not.toBe(-0);
    expect([attempt, attempt + 1]).toContain(nextAttempt);
    expect(['BACKOFF', 'RETRY_AFTER', 'CIRCUIT_OPEN']).toContain(decision.reason);
  } else {
    const { retryAfterMs } = decision;
    expect(giveUpReasons).toContain(decision.reason);
    expect(
      retryAfterMs === undefined || (Number.isSafeInteger(retryAfterMs) && retryAfterMs > 0),
    ).toBe(true);
  }
}

describe('decide', () => {
  it('is total: any policy and any facts give a sound decision, and nothing is thrown', () => {
    fc.assert(
      fc.property(oddPolicies, oddFacts, (policy, asked) => {
        expectSound(decide(policy as Policy, asked as Facts));
      }),
    );
  });

  it('is pure: it comes out the same, and leaves its input as it was', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const before = structuredClone([policy, asked]);
        expect(decide(policy, asked)).toEqual(decide(policy, asked));
        expect([policy, asked]).toEqual(before);
      }),
    );
  });

  it('comes out the same once policy and facts have been JSON', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const defined = definePolicy(policy);
        const decision = decide(defined, asked);
        expectSound(decision);
        const replayed = [
          policy,
          asJson(policy),
          defined,
          asJson(defined),
          parsePolicy(asJson(defined)),
        ];
        for (const same of replayed) expect(decide(same as Policy, asked)).toEqual(decision);
        expect(decide(defined, asJson(asked) as Facts)).toEqual(asJson(decision));
      }),
    );
  });

  it('agrees with delayFor where nothing else speaks', () => {
    fc.assert(
      fc.property(policies, plainFacts, (policy, asked) => {
        const { overrides: _, ...simple } = policy;
        const p = definePolicy({
          ...simple,
          maxAttempts: 1e9,
          deadline: undefined,
          idempotent: true,
        });
        const { retryAfterMs: __, ...failure } = asked.failure;
        const attempt = Math.min(asked.attempt, 1e9 - 1);
        const random = unitRandom(asked.seed as number, asked.key as string, attempt);
        expect(decide(p, { ...asked, attempt, failure })).toMatchObject({
          action: 'retry',
          reason: 'BACKOFF',
          delayMs: delayFor(p, { attempt, random }),
        });
      }),
    );
  });

  it('never goes past the attempts of its policy', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const decision = decide(policy, asked);
        if (decision.action === 'retry' && decision.nextAttempt > decision.attempt) {
          expect(decision.nextAttempt).toBeLessThanOrEqual(decision.maxAttempts);
        }
      }),
    );
  });

  it('ends, however counted and uncounted failures follow each other', () => {
    fc.assert(
      fc.property(policies, fc.infiniteStream(failures), (policy, stream) => {
        const p = definePolicy({ ...policy, overrides: undefined });
        let asked: Facts = { attempt: 1, failure: { class: 'unknown' }, uncounted: 0 };
        for (let decisions = 1; ; decisions++) {
          const failure = stream.next().value as Failure;
          const decision = decide(p, { ...asked, failure, retryable: true });
          expect(decisions).toBeLessThanOrEqual(p.maxAttempts + p.maxUncounted);
          if (decision.action === 'giveUp') break;
          const repeated = decision.nextAttempt === decision.attempt ? 1 : 0;
          asked = {
            attempt: decision.nextAttempt,
            failure,
            uncounted: (asked.uncounted ?? 0) + repeated,
            previousMs: decision.delayMs,
          };
        }
      }),
    );
  });

  it('never starts an attempt at or past a deadline', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const decision = decide(policy, asked);
        if (decision.action !== 'retry') return;
        const left = (policy.deadline as number | undefined) ?? Infinity;
        expect(decision.delayMs).toBeLessThan(left - (asked.elapsedMs ?? 0));
        expect(decision.delayMs).toBeLessThan(asked.remainingMs ?? Infinity);
      }),
    );
  });

  it('is never earlier than the server asked, and at most a tenth later where that set the delay', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const wanted = asked.failure.retryAfterMs ?? 0;
        const decision = decide(policy, asked);
        if (decision.action !== 'retry') return;
        expect(decision.delayMs).toBeGreaterThanOrEqual(wanted);
        if (decision.reason === 'RETRY_AFTER') {
          expect(decision.delayMs).toBeLessThanOrEqual(Math.ceil(wanted) * 1.1);
        }
      }),
    );
  });

  it('gives up on a longer wait than allowed, and hands it on', () => {
    fc.assert(
      fc.property(
        plainFacts,
        ms,
        fc.integer({ min: 1, max: 1e9 }),
        (asked, maxRetryAfter, more) => {
          const failure = { ...asked.failure, retryAfterMs: maxRetryAfter + more };
          const policy = { maxRetryAfter, maxAttempts: 1e9 };
          const attempt = Math.min(asked.attempt, 1e9 - 1);
          expect(decide(policy, { ...asked, attempt, failure })).toMatchObject({
            reason: 'RETRY_AFTER_TOO_LONG',
            retryAfterMs: maxRetryAfter + more,
          });
        },
      ),
    );
  });

  it('spreads a crowd that was told the same, evenly over a tenth', () => {
    const wanted = 1_000_000_000;
    const policy = definePolicy({ maxRetryAfter: '30d' });
    const failure: Failure = { class: 'transient', retryAfterMs: wanted };
    const sample = Array.from({ length: 20_000 }, (_, i) => {
      const decision = decide(policy, { attempt: 1, failure, key: `order-${i}` });
      return decision.action === 'retry' ? (decision.delayMs - wanted) / (0.1 * wanted) : NaN;
    }).sort((a, b) => a - b);
    const distance = sample.reduce(
      (most, x, i) => Math.max(most, Math.abs(x - i / sample.length)),
      0,
    );
    expect(distance * Math.sqrt(sample.length)).toBeLessThan(2.5);
  });

  it('uses exactly one override, the most specific that names the failure', () => {
    fc.assert(
      fc.property(policies, plainFacts, (policy, asked) => {
        const p = definePolicy({ ...policy, deadline: undefined });
        const { code, status, names: chain = [], class: kind } = asked.failure;
        const text = status === undefined ? undefined : String(status);
        const called = chain.filter((each) => each !== 'Error');
        const order = [code, text, text && `${text[0]}xx`, ...called, kind, 'Error', 'any'];
        const name = order.find((word) => word !== undefined && p.for(word));
        const effective =
          name === undefined
            ? definePolicy({ ...policy, deadline: undefined, overrides: undefined })
            : p.for(name);
        expect(decide(p, asked)).toEqual(decide(effective as Policy, asked));
      }),
    );
  });

  it('only ever waits within the range of the raw delay when jitter is full', () => {
    fc.assert(
      fc.property(plainFacts, ms, (asked, base) => {
        const policy = definePolicy({ base, maxAttempts: 1e9, cap: '1h' });
        const attempt = Math.min(asked.attempt, 1e9 - 1);
        const decision = decide(policy, { ...asked, attempt, failure: { class: 'unknown' } });
        expect(decision).toMatchObject({ action: 'retry' });
        expect((decision as { delayMs: number }).delayMs).toBeLessThanOrEqual(
          delayFor({ base, cap: '1h', jitter: 'none' }, { attempt }),
        );
      }),
    );
  });
});

describe('explain', () => {
  it('says every decision in one sentence, without a hole in it', () => {
    fc.assert(
      fc.property(policies, facts, (policy, asked) => {
        const sentence = explain(decide(policy, asked));
        expect(sentence).toMatch(/^[A-Z][^\n]*\.$/);
        expect(sentence).not.toMatch(/undefined|null|NaN|Infinity|\[object/);
      }),
    );
  });
});

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
