import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRoutingPolicy } from '../packages/core/src/routing/routing-policy.ts';
import { describeRoutingFields, routingSchema, routingTables } from './routing-reference.ts';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const descriptions = describeRoutingFields(read('packages/core/src/routing/routing-fields.ts'));
const validate = new Ajv2020({ strict: false }).compile(routingSchema(descriptions));

describe('what is derived from the tables of routing fields', () => {
  it('is up to date: the schema and the reference page', () => {
    const hint = 'run `npm run generate`';
    expect(JSON.parse(read('packages/core/policy.schema.json')), hint).toEqual(
      JSON.parse(JSON.stringify(routingSchema(descriptions))),
    );
    expect(read('docs/reference/routing-policy.md'), hint).toContain(routingTables(descriptions));
  });

  it('needs a description of every field', () => {
    expect(() => describeRoutingFields('')).toThrow('has no description');
  });
});

describe('the schema and parseRoutingPolicy', () => {
  const folder = 'packages/core/src/routing/policies/';
  it.each(readdirSync(new URL(folder, root)))('agree on %s', (name) => {
    const data: unknown = JSON.parse(read(folder + name));
    expect(validate(data)).toBe(name !== 'broken.json');
    expect(parses(data)).toBe(name !== 'broken.json');
  });

  /** Mostly values that fit, so that whole policies are valid often enough. */
  const odd = fc.constantFrom(-1, 0.5, 101, 1e9, '', 'A', 'x y', true, null, [], {}, '1h');
  const or = <T>(good: fc.Arbitrary<T>) =>
    fc.oneof({ arbitrary: good, weight: 150 }, { arbitrary: odd, weight: 1 });
  const record = (fields: Record<string, fc.Arbitrary<unknown>>, required: string[] = []) =>
    or(
      fc
        .tuple(
          fc.record(fields, { requiredKeys: required as never[], noNullPrototype: true }),
          fc.nat(100),
        )
        .map(([data, chance]) => (chance === 0 ? { ...data, surplus: 1 } : data)),
    );
  const name = or(fc.constantFrom('a', 'b', 'c_1'));
  const value = or(fc.constantFrom('5xx', 'timeout', 429, true));
  const backoff = record({
    strategy: or(fc.constantFrom('exponential', 'linear', 'fixed')),
    base_ms: or(fc.integer({ min: 1, max: 10_000 })),
    max_ms: or(fc.integer({ min: 1, max: 60_000 })),
    jitter: or(fc.boolean()),
  });
  const rule = record(
    {
      when: or(
        fc.dictionary(
          or(fc.constantFrom('status', 'tenant')).map(String),
          fc.oneof(value, fc.array(value)),
        ),
      ),
      to: name,
      retry: or(fc.integer({ min: 0, max: 10 })),
      backoff,
    },
    ['when', 'to'],
  );
  const document = record(
    {
      $schema: fc.constant('policy.schema.json'),
      version: or(fc.constantFrom('1.0', '12.3')),
      providers: or(
        fc.uniqueArray(
          record(
            {
              name,
              weight: or(fc.integer({ min: 0, max: 100 })),
              priority: or(fc.integer({ min: -5, max: 5 })),
            },
            ['name', 'weight'],
          ),
          // The schema cannot tell that a name is there twice.
          { selector: (each) => (each as { name?: unknown } | null)?.name, maxLength: 3 },
        ),
      ),
      weights: or(
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), or(fc.integer({ min: 0, max: 100 }))),
      ),
      fallbacks: or(fc.array(rule, { maxLength: 3 })),
      fallback: record({ provider: name, conditions: or(fc.array(value)) }, ['provider']),
      sticky: record({
        enabled: or(fc.boolean()),
        session_key: or(fc.constantFrom('user')),
        ttl: or(fc.constantFrom('5m', '12345678s', '5s', '1h')),
        ttl_seconds: or(fc.integer({ min: 1, max: 86_400 })),
      }),
      circuit_breaker: record({
        enabled: or(fc.boolean()),
        failure_threshold: or(fc.integer({ min: 1, max: 9 })),
        success_threshold: or(fc.integer({ min: 1, max: 9 })),
        timeout_ms: or(fc.integer({ min: 1, max: 100_000 })),
        half_open_max_calls: or(fc.integer({ min: 1, max: 1000 })),
      }),
      timeout_ms: or(fc.integer({ min: 1, max: 300_000 })),
      metadata: fc.jsonValue(),
    },
    ['version', 'providers'],
  );

  it('refuse the same random policies', () => {
    const counts = { valid: 0, invalid: 0 };
    fc.assert(
      fc.property(document, (data) => {
        const isValid = parses(data);
        counts[isValid ? 'valid' : 'invalid'] += 1;
        expect(validate(data), JSON.stringify(data)).toBe(isValid);
      }),
      { numRuns: 5000 },
    );
    expect(counts.valid).toBeGreaterThan(300);
    expect(counts.invalid).toBeGreaterThan(300);
  });
});

function parses(data: unknown): boolean {
  try {
    parseRoutingPolicy(data);
    return true;
  } catch {
    return false;
  }
}
