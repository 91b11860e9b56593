import { describe, expect, it } from 'vitest';
import { type DefinedPolicy, defined, definePolicy, parsePolicy } from './policy.ts';
import { type Policy, policyFields } from './policy-fields.ts';

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('a defined policy', () => {
  it('has every default filled in', () => {
    expect(definePolicy()).toEqual({
      maxAttempts: 4,
      strategy: 'exponential',
      base: 200,
      cap: 30_000,
      multiplier: 2,
      schedule: undefined,
      jitter: 'full',
      jitterRatio: 0.1,
      jitterAdd: 1000,
      hardCap: false,
      attemptTimeout: undefined,
      deadline: undefined,
      maxRetryAfter: 60_000,
      retryOn: ['transient', 'unknown'],
      neverOn: [],
      maxUncounted: 10,
      idempotent: true,
      overrides: undefined,
    });
  });

  it('has its durations in ms', () => {
    const { base, cap, deadline, attemptTimeout, jitterAdd, maxRetryAfter } = definePolicy({
      base: '250ms',
      cap: '2s',
      deadline: '5m',
      attemptTimeout: '1.5s',
      jitterAdd: 7,
      maxRetryAfter: '1d',
    });
    expect([base, cap, deadline, attemptTimeout, jitterAdd, maxRetryAfter]).toEqual([
      250, 2000, 300_000, 1500, 7, 86_400_000,
    ]);
  });

  it('has the strategy of its schedule', () => {
    const policy = definePolicy({ schedule: ['1s', '5s', 60_000] });
    expect([policy.strategy, policy.schedule]).toEqual(['schedule', [1000, 5000, 60_000]]);
  });

  it('is defined again as itself', () => {
    const policy = definePolicy({ maxAttempts: 7 });
    expect(definePolicy(policy)).toBe(policy);
    expect(parsePolicy(policy)).toBe(policy);
    expect(defined(policy)).toBe(policy);
  });

  it('can be spread into another', () => {
    const policy: Policy = definePolicy({ base: '1s', overrides: { 429: { base: '5s' } } });
    const more = definePolicy({ ...policy, maxAttempts: 9 });
    expect([more.maxAttempts, more.base, more.for('429')?.base]).toEqual([9, 1000, 5000]);
  });

  it('is frozen to the bottom, the defaults of all policies with it', () => {
    const policies = [
      definePolicy(),
      definePolicy({ schedule: [1, 2], retryOn: ['any'], neverOn: ['business'] }),
      definePolicy({ overrides: { 429: { schedule: [1, 2] } } }),
    ];
    for (const policy of policies) expect(unfrozen(policy)).toEqual([]);
    expect(unfrozen(policies[2]?.for('429'))).toEqual([]);
    expect(() => (definePolicy().retryOn as string[]).push('business')).toThrow(TypeError);
    expect(definePolicy().retryOn).toEqual(['transient', 'unknown']);
  });

  it('does not follow later changes of what it was made of', () => {
    const data = { schedule: [1, 2], retryOn: ['any'], overrides: { 429: { schedule: [3] } } };
    const policy = definePolicy(data);
    data.schedule.push(9);
    data.retryOn.push('business');
    data.overrides[429].schedule.push(9);
    expect([policy.schedule, policy.retryOn, policy.for('429')?.schedule]).toEqual([
      [1, 2],
      ['any'],
      [3],
    ]);
  });

  it.each([
    ['the default', {}],
    ['a schedule', { schedule: ['1s', '5s'] }],
    ['limits', { deadline: '1m', attemptTimeout: '5s', maxRetryAfter: 0 }],
    ['names', { retryOn: ['any'], neverOn: ['business', '404', 'TypeError'] }],
    ['no names', { retryOn: [], neverOn: [] }],
    ['an override', { overrides: { 429: { schedule: ['1m', '5m'] } } }],
    [
      'an override that goes back to growing',
      { schedule: [60_000], overrides: { a: { strategy: 'linear' } } },
    ],
    ['an override of another cap', { base: '1m', overrides: { a: { base: 5 }, b: { cap: '2m' } } }],
    ['an override that insists on the cap', { overrides: { a: { base: '1m', cap: '30s' } } }],
    ['an override that changes nothing', { overrides: { a: {} } }],
    ['an override of an odd name', { overrides: JSON.parse('{"__proto__": {"base": 5}}') }],
  ] as [string, Policy][])('survives JSON: %s', (_name, written) => {
    const policy = definePolicy(written);
    const again = parsePolicy(asJson(policy));
    expect(again).toEqual(policy);
    expect(again.fingerprint).toBe(policy.fingerprint);
    for (const name of Object.keys(policy.overrides ?? {})) {
      expect(again.for(name)).toEqual(policy.for(name));
    }
  });

  it('has a cap that does not cut the base or the schedule, unless one was written', () => {
    expect(definePolicy({ base: '60s' }).cap).toBe(60_000);
    expect(definePolicy({ schedule: ['1s', '1h', '5s'] }).cap).toBe(3_600_000);
    expect(definePolicy({ base: '1s' }).cap).toBe(30_000);
    expect(definePolicy({ base: '60s', cap: '30s' }).cap).toBe(30_000);
    expect(definePolicy({ schedule: ['1s', '1h'], cap: '30s' }).cap).toBe(30_000);
  });
});

describe('a fingerprint', () => {
  // Audit trails name policies by these.
  it.each([
    [{}, '092c3cca06e746c5'],
    [
      { base: '2s', cap: '60s', jitter: 'add', maxRetryAfter: '24h', retryOn: ['transient'] },
      'c02f4bca38c02647',
    ],
    [
      {
        schedule: ['1s', '5s'],
        overrides: { 429: { schedule: ['1m'] }, ECONNRESET: { base: 5, strategy: 'fixed' } },
      },
      '7ac2d0856bef39a3',
    ],
  ] as [Policy, string][])('of %j is the same for ever', (policy, fingerprint) => {
    expect(definePolicy(policy).fingerprint).toBe(fingerprint);
  });

  it.each([
    ['units', { base: '2s' }, { base: 2000 }],
    [
      'defaults',
      {},
      { maxAttempts: 4, jitter: 'full', retryOn: ['unknown', 'transient'], neverOn: [] },
    ],
    ['the order of fields', { base: 5, cap: 9 }, { cap: 9, base: 5 }],
    ['the order of names', { retryOn: ['a', 'b'] }, { retryOn: ['b', 'a', 'b'] }],
    ['the strategy of a schedule', { schedule: [5] }, { schedule: [5], strategy: 'schedule' }],
    ['the cap that follows from a base', { base: '1m' }, { base: '1m', cap: '1m' }],
    [
      'the order of overrides',
      { overrides: { b: { base: 1 }, a: { base: 2 } } },
      { overrides: { a: { base: 2 }, b: { base: 1 } } },
    ],
    [
      'what an override repeats',
      { overrides: { a: { base: 5 } } },
      { overrides: { a: { base: 5, cap: '30s', jitter: 'full' } } },
    ],
    ['overrides of nothing', {}, { overrides: {} }],
    ['what is left undefined', {}, { deadline: undefined, overrides: undefined }],
    ['the schema that a file names', {}, { $schema: './retry-policy.schema.json' }],
  ] as [string, Policy, Policy][])('does not depend on %s', (_what, one, two) => {
    expect(definePolicy(one).fingerprint).toBe(definePolicy(two).fingerprint);
  });

  it('is another one for every field that is changed', () => {
    const changes: Policy[] = [
      {},
      { maxAttempts: 5 },
      { strategy: 'fixed' },
      { base: 201 },
      { cap: 31_000 },
      { multiplier: 3 },
      { schedule: [200] },
      { schedule: [200, 200] },
      { jitter: 'none' },
      { jitterRatio: 0.2 },
      { jitterAdd: 999 },
      { hardCap: true },
      { attemptTimeout: 1 },
      { deadline: 1 },
      { maxRetryAfter: 0 },
      { retryOn: [] },
      { retryOn: ['any'] },
      { neverOn: ['any'] },
      { maxUncounted: 11 },
      { idempotent: false },
      { overrides: { a: { base: 5 } } },
      { overrides: { b: { base: 5 } } },
      { overrides: { a: { base: 6 } } },
    ];
    const named = new Set(changes.flatMap((policy) => Object.keys(policy)));
    expect([...named].sort()).toEqual(Object.keys(policyFields).sort());
    const fingerprints = changes.map((policy) => definePolicy(policy).fingerprint);
    expect(new Set(fingerprints).size).toBe(changes.length);
  });

  it('is worked out once', () => {
    const policy = definePolicy({ base: 5 });
    expect(policy.fingerprint).toBe(policy.fingerprint);
  });
});

describe('overrides', () => {
  const policy = definePolicy({
    maxAttempts: 6,
    base: '1s',
    deadline: '1h',
    retryOn: ['any'],
    overrides: {
      429: { schedule: ['1m', '5m'], maxRetryAfter: '1h' },
      ECONNRESET: { maxAttempts: 2, jitter: 'none' },
      business: { strategy: 'fixed', base: '90s' },
    },
  });

  it('have their own numbers, and the policy for the rest', () => {
    expect(policy.for('429')).toMatchObject({
      maxAttempts: 6,
      strategy: 'schedule',
      schedule: [60_000, 300_000],
      maxRetryAfter: 3_600_000,
      deadline: 3_600_000,
      retryOn: ['any'],
      overrides: undefined,
    });
    expect(policy.for('ECONNRESET')).toMatchObject({ maxAttempts: 2, base: 1000, jitter: 'none' });
    expect(policy.for('503')).toBeUndefined();
    expect(definePolicy().for('429')).toBeUndefined();
  });

  it('are written down as what they change', () => {
    expect(policy.overrides).toEqual({
      429: {
        strategy: 'schedule',
        schedule: [60_000, 300_000],
        cap: 300_000,
        maxRetryAfter: 3_600_000,
      },
      ECONNRESET: { maxAttempts: 2, jitter: 'none' },
      business: { strategy: 'fixed', base: 90_000, cap: 90_000 },
    });
  });

  it('have a cap that does not cut their base or schedule, unless one was written', () => {
    expect(policy.for('429')?.cap).toBe(300_000);
    expect(policy.for('business')?.cap).toBe(90_000);
    const capped = definePolicy({ overrides: { 429: { schedule: ['1m', '5m'], cap: '2m' } } });
    expect(capped.for('429')?.cap).toBe(120_000);
  });

  it('are not cut by a cap that they did not write, also not by that of a preset', () => {
    const lifted = definePolicy({ cap: '1m', overrides: { 429: { schedule: ['1m', '1h'] } } });
    expect(lifted.for('429')?.cap).toBe(3_600_000);
    expect(definePolicy(JSON.parse(JSON.stringify(lifted)) as Policy).for('429')?.cap).toBe(
      3_600_000,
    );
  });

  it('leave a schedule behind by naming another strategy', () => {
    const { strategy, schedule, cap } = definePolicy({
      schedule: ['1m'],
      overrides: { a: { strategy: 'fixed' } },
    }).for('a') as DefinedPolicy;
    expect([strategy, schedule, cap]).toEqual(['fixed', undefined, 60_000]);
  });

  it('may have the schedule of the policy with another number of attempts', () => {
    const { schedule, strategy } = definePolicy({
      schedule: ['1m'],
      overrides: { a: { strategy: 'schedule', maxAttempts: 9 } },
    }).for('a') as DefinedPolicy;
    expect([schedule, strategy]).toEqual([[60_000], 'schedule']);
  });

  it('may put a schedule in place of a strategy that was written', () => {
    const override = definePolicy({ strategy: 'linear', overrides: { a: { schedule: [5] } } });
    expect(override.for('a')?.strategy).toBe('schedule');
  });
});

/** Paths of objects within that can still be changed. */
function unfrozen(value: unknown, path = 'policy'): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, part]) => unfrozen(part, `${path}.${name}`));
  return Object.isFrozen(value) ? inner : [path, ...inner];
}
