import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePolicy } from '../packages/core/src/policy/policy.ts';
import { policyFields } from '../packages/core/src/policy/policy-fields.ts';
import { describeFields, policySchema, policyTable } from './policy-reference.ts';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const descriptions = describeFields(read('packages/core/src/policy/policy-fields.ts'));

describe('what is derived from the table of policy fields', () => {
  it('is up to date: the schema and the reference page', () => {
    const hint = 'run `npm run generate`';
    expect(JSON.parse(read('packages/core/retry-policy.schema.json')), hint).toEqual(
      JSON.parse(JSON.stringify(policySchema(descriptions))),
    );
    expect(read('docs/reference/policy.md'), hint).toContain(policyTable(descriptions));
  });

  it('has a description of every field', () => {
    expect(Object.keys(descriptions)).toEqual(expect.arrayContaining(Object.keys(policyFields)));
    expect(() => describeFields('export const policyFields = {}')).toThrow('has no description');
  });
});

describe('the schema and definePolicy', () => {
  const validate = new Ajv2020({ strict: false }).compile(policySchema(descriptions));
  const value = fc.oneof(
    fc.constantFrom('1s', '250ms', '0s', '5 s', 'soon', -1, 0, 1, 2.5, 1e12, 1e13, true, null),
    fc.constantFrom('full', 'none', 'decorrelated', 'exponential', 'schedule', 'fixed', 'ful'),
    fc.constantFrom([], ['1s', 5], [1, 'x'], ['transient', 'E'], ['']),
  );
  const name = fc.constantFrom(...Object.keys(policyFields), 'retries');
  const override = fc.dictionary(fc.constantFrom('base', 'cap', 'jitter', 'deadline'), value);
  const policy = fc
    .tuple(
      fc.dictionary(name, value, { maxKeys: 4 }),
      fc.option(fc.dictionary(fc.constantFrom('429', 'transient', 'E'), override, { maxKeys: 2 })),
    )
    .map(([fields, overrides]) => (overrides ? { ...fields, overrides } : fields));

  it('refuse the same, but for what only the words of a policy can tell', () => {
    let refused = 0;
    fc.assert(
      fc.property(policy, (data) => {
        const isDefined = defines(data);
        if (!isDefined) refused += 1;
        // Where fields of a policy and an override meet, the schema lets more pass.
        const allowed = isDefined ? [true] : 'overrides' in data ? [true, false] : [false];
        expect(allowed, JSON.stringify(data)).toContain(validate(data));
      }),
      { numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(100);
  });
});

function defines(data: unknown): boolean {
  try {
    parsePolicy(data);
    return true;
  } catch {
    return false;
  }
}
