import { readFileSync } from 'node:fs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { delayFor } from '../policy/backoff.ts';
import { ConfigError } from '../errors.ts';
import { presets } from '../policy/presets.ts';
import type { RoutingPolicyDocument } from './routing-fields.ts';
import { defineRoutingPolicy, parseRoutingPolicy } from './routing-policy.ts';

const base = { version: '1.0', providers: [{ name: 'a', weight: 100 }] };

function load(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`policies/${name}.json`, import.meta.url), 'utf8'));
}

function faultsOf(data: unknown): string[] {
  try {
    parseRoutingPolicy(data);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map(({ path, code, message }) => `${path} ${code} ${message}`);
  }
  return [];
}

function warningsOf(data: object): string[] {
  return parseRoutingPolicy({ ...base, ...data }).warnings.map(
    ({ code, path }) => `${code} ${path}`,
  );
}

describe('a routing policy', () => {
  it('has the defaults of the contract', () => {
    const policy = parseRoutingPolicy({
      ...base,
      fallbacks: [{ when: {}, to: 'a' }],
      sticky: { enabled: true },
    });
    expect(policy.toJSON()).toEqual({
      version: '1.0',
      providers: [{ name: 'a', weight: 100 }],
      fallbacks: [
        {
          when: {},
          to: 'a',
          retry: 1,
          backoff: { strategy: 'exponential', base_ms: 100, max_ms: 5000, jitter: true },
        },
      ],
      sticky: { enabled: true, session_key: 'session_id', ttl_seconds: 3600 },
      circuit_breaker: {
        enabled: false,
        failure_threshold: 5,
        success_threshold: 2,
        timeout_ms: 60_000,
        half_open_max_calls: 3,
      },
    });
    expect(policy).toMatchObject({ id: 'default', timeoutMs: undefined, warnings: [], notes: [] });
  });

  it('has the waits of the preset fallback underneath, decided by delayFor', () => {
    const [rule] = parseRoutingPolicy({ ...base, fallbacks: [{ when: {}, to: 'a' }] }).rules;
    expect(rule?.backoff.fingerprint).toBe(presets.fallback.fingerprint);
    const [other] = parseRoutingPolicy({
      ...base,
      fallbacks: [
        {
          when: {},
          to: 'a',
          retry: 3,
          backoff: { strategy: 'linear', base_ms: 10, max_ms: 25, jitter: false },
        },
      ],
    }).rules;
    expect(other?.backoff).toMatchObject({ maxAttempts: 4, hardCap: true });
    expect([1, 2, 3].map((attempt) => delayFor(other!.backoff, { attempt }))).toEqual([10, 20, 25]);
  });

  it('reads the life of a session in every form', () => {
    const life = (sticky: object) => parseRoutingPolicy({ ...base, sticky }).sticky.ttlMs;
    expect(life({ ttl: '90s' })).toBe(90_000);
    expect(life({ ttl: '15m' })).toBe(900_000);
    expect(life({ ttl: '48h' })).toBe(172_800_000);
    expect(life({ ttl_seconds: 7 })).toBe(7000);
    expect(life({})).toBe(3_600_000);
    expect(faultsOf({ ...base, sticky: { ttl: '1h', ttl_seconds: 5 } })).toEqual([
      'sticky.ttl INVALID_VALUE Write either ttl or ttl_seconds, not both.',
    ]);
  });

  it('is the same policy again as JSON, and has the same fingerprint however it was written', () => {
    for (const name of ['simple', 'chained', 'sticky-weights', 'legacy', 'mixed']) {
      const policy = parseRoutingPolicy(load(name));
      const again = parseRoutingPolicy(JSON.parse(JSON.stringify(policy)));
      expect(again.fingerprint).toBe(policy.fingerprint);
      expect(again.rules.map(({ id }) => id)).toEqual(policy.rules.map(({ id }) => id));
      expect(again.providers).toEqual(policy.providers);
    }
    for (const ttl of ['48h', '99999s', '0m', '5001m']) {
      const policy = parseRoutingPolicy({ ...base, sticky: { enabled: true, ttl } });
      expect(parseRoutingPolicy(policy.toJSON()).sticky).toEqual(policy.sticky);
    }
    const written = { ...base, sticky: { ttl: '60m' }, metadata: { x: 1 }, $schema: 'x' };
    expect(parseRoutingPolicy(written).fingerprint).toBe(parseRoutingPolicy(base).fingerprint);
    const other = { ...base, timeout_ms: 5 };
    expect(parseRoutingPolicy(other).fingerprint).not.toBe(parseRoutingPolicy(base).fingerprint);
  });

  it('is frozen, and passes through the parser unchanged', () => {
    const policy = parseRoutingPolicy(base, { id: 'mail' });
    expect(policy.id).toBe('mail');
    expect(parseRoutingPolicy(policy)).toBe(policy);
    expect(parseRoutingPolicy(policy, { id: 'sms' }).id).toBe('sms');
    expect(Object.isFrozen(policy)).toBe(true);
    expect(Object.isFrozen(policy.providers[0])).toBe(true);
  });

  it('accepts metadata, $schema and priority, which change nothing', () => {
    const policy = parseRoutingPolicy({
      ...base,
      providers: [{ name: 'a', weight: 100, priority: 7 }],
      metadata: { deep: [[[]]] },
      $schema: 'policy.schema.json',
    });
    expect(policy.fingerprint).toBe(parseRoutingPolicy(base).fingerprint);
    expect(faultsOf({ ...base, $schema: 5 })).toEqual(['$schema INVALID_VALUE 5 is not a text.']);
  });
});

describe('rule ids', () => {
  const rule = { when: { status: ['5xx', 'timeout'], tenant: 't' }, to: 'a', retry: 2 };
  const ids = (...fallbacks: object[]) =>
    parseRoutingPolicy({ ...base, fallbacks }).rules.map(({ id }) => id);

  it('come from the content, not from the place or the order of keys and values', () => {
    const other = { when: {}, to: 'a' };
    const [id] = ids(rule);
    expect(id).toMatch(/^[0-9a-f]{16}$/);
    expect(ids(other, rule)[1]).toBe(id);
    expect(ids({ to: 'a', retry: 2, when: { tenant: ['t'], status: ['timeout', '5xx'] } })).toEqual(
      [id],
    );
    for (const change of [{ retry: 1 }, { to: 'b' }, { when: {} }, { backoff: { base_ms: 5 } }]) {
      expect(ids({ ...rule, ...change })[0]).not.toBe(id);
    }
  });

  it('differ between equal rules, and stay when the policy is loaded again', () => {
    const twins = ids(rule, rule, rule);
    expect(new Set(twins).size).toBe(3);
    expect(ids(rule, rule, rule)).toEqual(twins);
    expect(ids(rule)).toEqual([twins[0]]);
  });
});

describe('legacy forms', () => {
  it('are converted, with notes', () => {
    const policy = parseRoutingPolicy(load('legacy'));
    expect(policy.providers).toEqual([
      { name: 'smtp_a', weight: 70 },
      { name: 'smtp_b', weight: 30 },
      { name: 'smtp_c', weight: 0 },
    ]);
    expect(policy.toJSON().fallbacks).toMatchObject([
      { when: { status: ['5xx', 'timeout'] }, to: 'smtp_c', retry: 1 },
    ]);
    expect(policy.notes.map(({ code, path }) => `${code} ${path}`)).toEqual([
      'LEGACY_WEIGHTS weights',
      'LEGACY_FALLBACK fallback',
    ]);
  });

  it('may be mixed with the new forms, which come first', () => {
    const policy = parseRoutingPolicy(load('mixed'));
    expect(policy.providers).toEqual([
      { name: 'a', weight: 40 },
      { name: 'b', weight: 60 },
    ]);
    expect(policy.rules.map(({ to }) => to)).toEqual(['b', 'a']);
    expect(policy.notes[0]?.message).toContain('providers already lists a');
    expect(policy.notes[1]?.message).toContain('fallbacks.1');
  });

  it('without conditions never match, with a warning', () => {
    expect(warningsOf({ fallback: { provider: 'a' } })).toEqual([
      'NEVER_MATCHES fallbacks.0.when.status',
    ]);
    const [rule] = parseRoutingPolicy({ ...base, fallback: { provider: 'a' } }).rules;
    expect(rule?.matches({ status: 'timeout' }, 'timeout')).toBe(false);
  });
});

describe('faults', () => {
  it('are listed all at once, with path, code and suggestion', () => {
    expect(faultsOf(load('broken'))).toEqual([
      "provider UNKNOWN_FIELD There is no such field. Did you mean 'providers'?",
      "version INVALID_VALUE 'one' is not a text of the form ^\\d+\\.\\d+$ with at most 20 characters.",
      "providers.0.name INVALID_VALUE 'Primary' is not a text of the form ^[a-z0-9_]+$ with at most 100 characters.",
      'providers.0.weight INVALID_VALUE 101 is not a whole number from 0 to 100.',
      "providers.1.wieght UNKNOWN_FIELD There is no such field. Did you mean 'weight'?",
      'providers.1.weight INVALID_VALUE This field is required.',
      'fallbacks.0.when.status.0 INVALID_VALUE null is not a text of at most 200 characters, a number or a boolean.',
      "fallbacks.0.to INVALID_VALUE '' is not a text of the form ^[a-z0-9_]+$ with at most 100 characters.",
      'fallbacks.0.retry INVALID_VALUE 11 is not a whole number from 0 to 10.',
      "fallbacks.0.backoff.base UNKNOWN_FIELD There is no such field. Did you mean 'base_ms'?",
      "fallbacks.0.backoff.strategy INVALID_VALUE 'exponental' is not one of exponential, linear, fixed. Did you mean 'exponential'?",
      'fallbacks.0.backoff.max_ms INVALID_VALUE 0 is not a whole number from 1 to 60000.',
      "fallbacks.0.backoff.jitter INVALID_VALUE 'yes' is not true or false.",
      "fallbacks.1.retries UNKNOWN_FIELD There is no such field. Did you mean 'retry'?",
      'fallbacks.1.when INVALID_VALUE This field is required.',
      "fallbacks.2 INVALID_VALUE 'backup' is not an object.",
      "sticky.enabled INVALID_VALUE 'yes' is not true or false.",
      "sticky.ttl INVALID_VALUE '1 hour' is not a text of the form ^[0-9]+[smh]$ with at most 8 characters.",
      "circuit_breaker.failureThreshold UNKNOWN_FIELD There is no such field. Did you mean 'failure_threshold'?",
      'circuit_breaker.half_open_max_calls INVALID_VALUE 0 is not a whole number from 1 to 1000.',
      'timeout_ms INVALID_VALUE 0 is not a whole number from 1 to 300000.',
    ]);
  });

  it.each([
    ['nothing', undefined, ' INVALID_VALUE undefined is not an object.'],
    ['a list', [], ' INVALID_VALUE a list of 0 is not an object.'],
    [
      'no provider at all',
      { version: '1.0', providers: [], weights: {} },
      'providers INVALID_VALUE No provider is named. List at least one here, or in weights.',
    ],
    [
      'a provider twice',
      { version: '1.0', providers: [...base.providers, ...base.providers] },
      "providers.1.name INVALID_VALUE The provider 'a' is listed twice. Keep one entry.",
    ],
    [
      'a weight of no provider name',
      { version: '1.0', weights: { 'A b': 5 } },
      "weights.A b INVALID_VALUE 'A b' is not a name of the form ^[a-z0-9_]+$ with at most 100 characters.",
    ],
    [
      'a weight that is a text',
      { version: '1.0', weights: { a: '5' } },
      "weights.a INVALID_VALUE '5' is not a whole number from 0 to 100.",
    ],
    [
      'weights that are a list',
      { version: '1.0', weights: [] },
      'weights INVALID_VALUE a list of 0 is not an object of at most 1000 weights by name.',
    ],
    [
      'conditions that are a text',
      { ...base, fallback: { provider: 'a', conditions: 'x' } },
      "fallback.conditions INVALID_VALUE 'x' is not a list of at most 100 texts, numbers or booleans.",
    ],
    [
      'when that is a list',
      { ...base, fallbacks: [{ when: [], to: 'a' }] },
      'fallbacks.0.when INVALID_VALUE a list of 0 is not an object of at most 20 conditions.',
    ],
    [
      'an empty key',
      { ...base, fallbacks: [{ when: { '': 1 }, to: 'a' }] },
      "fallbacks.0.when. INVALID_VALUE '' is not a key of 1 to 200 characters.",
    ],
    [
      'too many values',
      { ...base, fallbacks: [{ when: { x: Array(101).fill('1') }, to: 'a' }] },
      'fallbacks.0.when.x INVALID_VALUE a list of 101 is not a list of at most 100 texts, numbers or booleans.',
    ],
    [
      'a number that JSON does not have',
      { ...base, fallbacks: [{ when: { x: NaN }, to: 'a' }] },
      'fallbacks.0.when.x INVALID_VALUE NaN is not a text of at most 200 characters, a number or a boolean.',
    ],
    [
      'too many rules',
      { ...base, fallbacks: Array.from({ length: 1001 }, () => ({ when: {}, to: 'a' })) },
      'fallbacks INVALID_VALUE a list of 1001 is not a list of at most 1000 objects.',
    ],
  ])('name %s', (_, data, expected) => {
    expect(faultsOf(data)).toEqual([expected]);
  });

  it('come of keys of the prototype like of any other unknown key', () => {
    const data: unknown = JSON.parse(
      '{"version":"1.0","weights":{"a":100},"__proto__":{"x":1},"constructor":1,"toString":2}',
    );
    expect(faultsOf(data).map((line) => line.split(' ')[0])).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ]);
    const when = JSON.parse('{"__proto__": "1"}') as object;
    const [rule] = parseRoutingPolicy({ ...base, fallbacks: [{ when, to: 'a' }] }).rules;
    expect(rule?.matches({}, undefined)).toBe(false);
    expect(rule?.matches(JSON.parse('{"__proto__": 1}') as never, undefined)).toBe(true);
  });

  it('come in one ConfigError with the code INVALID_POLICY', () => {
    expect(() => parseRoutingPolicy({})).toThrow(
      expect.objectContaining({ name: 'ConfigError', code: 'INVALID_POLICY' }),
    );
  });

  it('show no more of a huge name or value than a line', () => {
    const [fault = ''] = faultsOf({ ...base, ['x'.repeat(1e6)]: 1 });
    expect(fault.length).toBeLessThan(200);
  });
});

describe('warnings', () => {
  const to = (name: string, when: object = {}) => ({ when, to: name });

  it('tell of weights that do not sum to 100', () => {
    expect(warningsOf({ providers: [{ name: 'a', weight: 50 }] })).toEqual([
      'WEIGHTS_NOT_100 providers',
    ]);
    expect(warningsOf({ providers: [{ name: 'a', weight: 0 }] })).toEqual(['NO_WEIGHT providers']);
  });

  it('tell of targets and conditions that name no provider', () => {
    expect(warningsOf({ fallbacks: [to('x')] })).toEqual(['UNKNOWN_TARGET fallbacks.0.to']);
    expect(warningsOf({ fallbacks: [to('a', { current_provider: ['a', 'y'] })] })).toEqual([
      'UNKNOWN_CONDITION_PROVIDER fallbacks.0.when.current_provider',
    ]);
  });

  it('tell of rules that are there twice', () => {
    const rules = [to('a', { status: ['1', '2'] }), to('a', { status: ['2', '1'] })];
    expect(warningsOf({ fallbacks: rules })).toEqual(['DUPLICATE_RULE fallbacks.1']);
  });

  it.each([
    [{}, { status: 'x' }],
    [{ status: '5xx' }, { status: ['500', 503] }],
    [{ status: '4xx' }, { status: 'rate_limit' }],
    [{ status: 429 }, { status: 'rate_limit', tenant: 't' }],
    [{ tenant: ['t', 'u'] }, { tenant: 'u' }],
  ])('tell of %j before %j, which shadows it', (earlier, later) => {
    const rules = [{ ...to('a', earlier), retry: 0 }, to('a', later)];
    expect(warningsOf({ fallbacks: rules })).toEqual(['SHADOWED_RULE fallbacks.1']);
  });

  it.each([
    [{ status: 'x' }, {}],
    [{ status: '503' }, { status: '5xx' }],
    [{ status: '5xx', tenant: 't' }, { status: '500' }],
    [{ tenant: 't' }, { tenant: ['t', 'u'] }],
    [{ status: [] }, { status: 'x' }],
    [{ tenant: '5xx' }, { tenant: '503' }],
  ])('do not call %j before %j a shadow', (earlier, later) => {
    const rules = [{ ...to('a', earlier), retry: 0 }, to('a', later)];
    expect(warningsOf({ fallbacks: rules }).join()).not.toContain('SHADOWED');
  });

  it('tell of cycles among rules that name where they start', () => {
    const providers = ['a', 'b', 'c'].map((name, i) => ({ name, weight: i === 0 ? 100 : 0 }));
    const edge = (from: string, target: string) => to(target, { current_provider: from });
    const cycle = [edge('a', 'b'), edge('b', 'c'), edge('c', 'b')];
    const { warnings } = parseRoutingPolicy({ ...base, providers, fallbacks: cycle });
    expect(warnings).toMatchObject([{ code: 'FALLBACK_CYCLE', path: 'fallbacks.2' }]);
    expect(warnings[0]?.message).toContain('b -> c -> b');
    const line = [edge('a', 'b'), edge('b', 'c'), edge('a', 'c')];
    expect(warningsOf({ providers, fallbacks: line })).toEqual(['SHADOWED_RULE fallbacks.2']);
  });

  it('tell of waits and sessions that cannot be meant', () => {
    const backoff = { base_ms: 500, max_ms: 100 };
    expect(warningsOf({ fallbacks: [{ ...to('a'), backoff }] })).toEqual([
      'BASE_ABOVE_MAX fallbacks.0.backoff',
    ]);
    expect(warningsOf({ sticky: { enabled: true, ttl: '0h' } })).toEqual([
      'STICKY_WITHOUT_TIME sticky.ttl',
    ]);
  });

  it('are at most 200, also for a thousand rules', () => {
    const fallbacks = Array.from({ length: 1000 }, (_, i) => to('a', { status: `s${i % 7}` }));
    expect(warningsOf({ fallbacks })).toHaveLength(200);
  });
});

describe('conditions', () => {
  const matches = (when: object, context: Record<string, unknown>) => {
    const [rule] = parseRoutingPolicy({ ...base, fallbacks: [{ when, to: 'a' }] }).rules;
    return rule?.matches(context, context['status'] as string | undefined);
  };

  it.each([
    [{}, {}, true],
    [{ tenant: 't' }, { tenant: 't' }, true],
    [{ tenant: 't' }, {}, false],
    [{ tenant: ['t', 'u'] }, { tenant: 'u' }, true],
    [{ tenant: 't', region: 'eu' }, { tenant: 't' }, false],
    [{ tenant: 't', region: 'eu' }, { tenant: 't', region: 'eu' }, true],
    [{ size: 5 }, { size: '5' }, true],
    [{ size: '5' }, { size: 5 }, true],
    [{ flag: true }, { flag: 'true' }, true],
    [{ tenant: 't' }, { tenant: ['t'] }, false],
    [{ toString: 'x' }, {}, false],
    [{ tenant: '5xx' }, { tenant: '503' }, false],
    [{ status: '5xx' }, { status: '503' }, true],
    [{ status: '4xx' }, { status: '404' }, true],
    [{ status: '4xx' }, { status: '5044' }, false],
    [{ status: '3xx' }, { status: '301' }, false],
    [{ status: '5xx' }, { status: '5x1' }, false],
    [{ status: 'timeout' }, {}, false],
  ])('%j on %j: %s', (when, context, expected) => {
    expect(matches(when, context)).toBe(expected);
  });
});

describe('the types', () => {
  it('come from the table', () => {
    expectTypeOf<RoutingPolicyDocument['version']>().toEqualTypeOf<string>();
    expectTypeOf<RoutingPolicyDocument['timeout_ms']>().toEqualTypeOf<number | undefined>();
    type Rule = NonNullable<RoutingPolicyDocument['fallbacks']>[number];
    expectTypeOf<Rule['to']>().toEqualTypeOf<string>();
    expectTypeOf<NonNullable<Rule['backoff']>['strategy']>().toEqualTypeOf<
      'exponential' | 'linear' | 'fixed' | undefined
    >();
    expectTypeOf(defineRoutingPolicy).parameter(0).toEqualTypeOf<RoutingPolicyDocument>();
    expectTypeOf<{ providers: [] }>().not.toExtend<RoutingPolicyDocument>();
  });
});
