import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isConfigError } from '../errors.ts';
import { DefinedPolicy, defined, parsePolicy } from './policy.ts';
import { overrideFields, type Policy, policyFields } from './policy-fields.ts';

const ms = fc.oneof(
  fc.nat({ max: 100_000 }),
  fc.nat({ max: 3_153_600_000_000 }),
  fc.double({ min: 0, max: 1e9, noNaN: true }),
);
const duration = fc.oneof(
  ms,
  fc
    .tuple(fc.nat({ max: 3000 }), fc.constantFrom('ms', 's', 'm', 'h', 'd'))
    .map(([n, unit]) => n + unit),
);
const atLeastOneMs = fc.integer({ min: 1, max: 10_000_000 });
const numbers = {
  maxAttempts: fc.integer({ min: 1, max: 1e9 }),
  base: duration,
  cap: duration,
  multiplier: fc.double({ min: 1, max: 1000, noNaN: true }),
  jitterRatio: fc.double({ min: 0, max: 1, noNaN: true }),
  jitterAdd: duration,
  hardCap: fc.boolean(),
  maxRetryAfter: duration,
  jitter: fc.constantFrom(...policyFields.jitter.of),
};
const growth = fc.oneof(
  fc.constant({}),
  fc.record({ strategy: fc.constantFrom('exponential', 'linear', 'fixed') }),
  fc.record({ schedule: fc.array(duration, { minLength: 1, maxLength: 5 }) }),
);
const names = fc.constantFrom(
  'transient',
  'business',
  'any',
  '429',
  'ECONNRESET',
  'TypeError',
  '__proto__',
);
const override = fc
  .tuple(fc.record(numbers, { requiredKeys: [] }), growth)
  .map(([rest, grown]) => ({ ...rest, ...grown }));

/** Written policies without a fault, as data. */
const policies = fc
  .tuple(
    fc.record(
      {
        ...numbers,
        attemptTimeout: atLeastOneMs,
        deadline: atLeastOneMs,
        retryOn: fc.array(names),
        neverOn: fc.array(names),
        maxUncounted: fc.nat({ max: 1_000_000 }),
        idempotent: fc.boolean(),
        overrides: fc
          .array(fc.tuple(names, override), { maxLength: 4 })
          .map((entries): unknown => Object.fromEntries(entries)),
      },
      { requiredKeys: [] },
    ),
    growth,
  )
  .map(([rest, grown]): unknown => ({ ...rest, ...grown }))
  .filter((data) => faultsOf(data).length === 0);

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSparseArray: true,
});
const fieldNames = Object.keys(policyFields);
const hostile = fc.oneof(
  anything,
  fc.dictionary(fc.oneof(fc.constantFrom(...fieldNames), fc.string()), anything),
  fc.record({
    strategy: fc.oneof(anything, fc.constantFrom(...policyFields.strategy.of)),
    jitter: fc.oneof(anything, fc.constantFrom(...policyFields.jitter.of)),
    schedule: fc.oneof(anything, fc.array(fc.oneof(duration, anything))),
    overrides: fc.dictionary(
      fc.string(),
      fc.oneof(anything, fc.dictionary(fc.constantFrom(...overrideFields), anything)),
    ),
  }),
);

describe('defining a policy', () => {
  it('gives the same policy, fingerprint and overrides again from its JSON', () => {
    fc.assert(
      fc.property(policies, (data) => {
        const policy = parsePolicy(data);
        const again = parsePolicy(asJson(policy));
        expect(again).toEqual(policy);
        expect(again.fingerprint).toBe(policy.fingerprint);
        for (const name of Object.keys(policy.overrides ?? {})) {
          expect(again.for(name)).toEqual(policy.for(name));
        }
      }),
    );
  });

  it('does not depend on whether the data has been JSON, or on the order of its fields', () => {
    fc.assert(
      fc.property(policies, (data) => {
        const policy = parsePolicy(data);
        const backwards = Object.fromEntries(Object.entries(data as object).toReversed());
        for (const same of [
          asJson(data),
          backwards,
          { ...(policy as Policy) },
          structuredClone(data),
        ]) {
          expect(parsePolicy(same)).toEqual(policy);
          expect(parsePolicy(same).fingerprint).toBe(policy.fingerprint);
        }
      }),
    );
  });

  it('gives two policies that differ two fingerprints', () => {
    fc.assert(
      fc.property(policies, policies, (one, two) => {
        const [a, b] = [parsePolicy(one), parsePolicy(two)];
        expect(a.fingerprint === b.fingerprint).toBe(canonical(a) === canonical(b));
      }),
    );
  });

  it('keeps every override at what it writes, and the policy for the rest', () => {
    fc.assert(
      fc.property(policies, (data) => {
        const policy = parsePolicy(data);
        const overrides = Object.entries((data as { overrides?: object }).overrides ?? {});
        for (const [name, written] of overrides as [string, object][]) {
          const inner = policy.for(name) as DefinedPolicy;
          expect(parsePolicy({ ...(inner as Policy), ...written })).toEqual(inner);
          const untouched = fieldNames.filter(
            (field) =>
              !(overrideFields as readonly string[]).includes(field) && field !== 'overrides',
          ) as (keyof Policy)[];
          for (const field of untouched) expect(inner[field]).toBe(policy[field]);
        }
      }),
    );
  });

  it('either gives a policy or throws a ConfigError with faults, whatever it is given', () => {
    fc.assert(
      fc.property(hostile, (data) => {
        for (const fault of faultsOf(data)) expect(fault.message).not.toBe('');
      }),
    );
  });

  it('where nothing may be thrown gives a sound policy, whatever it is given', () => {
    fc.assert(
      fc.property(hostile, (data) => {
        const policy = defined(data as Policy);
        expect(policy).toBeInstanceOf(DefinedPolicy);
        const simple = { ...(policy as Policy), overrides: undefined };
        expect(parsePolicy(simple)).toEqual(simple);
        expect(defined(asJson(policy) as Policy)).toEqual(policy);
      }),
    );
  });

  it('leaves all prototypes alone', () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    fc.assert(
      fc.property(hostile, (data) => {
        defined(data as Policy);
        expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
      }),
    );
  });
});

function faultsOf(data: unknown) {
  try {
    parsePolicy(data);
    return [];
  } catch (error) {
    if (!isConfigError(error) || error.faults.length === 0) throw error;
    return error.faults;
  }
}

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** A policy as a text in which the order of names does not count. */
function canonical(policy: DefinedPolicy): string {
  return JSON.stringify(policy, (name, value: unknown) =>
    name === 'retryOn' || name === 'neverOn' ? [...(value as string[])].sort() : value,
  );
}
