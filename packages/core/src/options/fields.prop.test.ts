import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Fault } from '../errors.ts';
import { readFields } from './fields.ts';
import { policyFields } from '../policy/policy-fields.ts';

const names = Object.keys(policyFields);
const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
});
const data = fc.oneof(
  anything,
  fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), anything),
);

function read(value: unknown) {
  const faults: Fault[] = [];
  return { values: readFields(value, policyFields, names, '', faults), faults };
}

describe('reading fields', () => {
  it('is total, and says something about every field that it does not keep', () => {
    fc.assert(
      fc.property(data, (value) => {
        const { values, faults } = read(value);
        for (const fault of faults) expect(fault.message).toMatch(/\.$|\?$/);
        for (const name of Object.keys(Object(value) as object)) {
          const written = (value as Record<string, unknown>)[name];
          const known = name in values || faults.some((fault) => fault.path.startsWith(name));
          expect(known || written === undefined || faults[0]?.path === '').toBe(true);
        }
      }),
    );
  });

  it('comes to the same again with what it read', () => {
    fc.assert(
      fc.property(data, (value) => {
        const once = read(value).values;
        expect(read(once)).toEqual({ values: once, faults: [] });
      }),
    );
  });

  it('changes nothing outside: neither what it reads nor any prototype', () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    fc.assert(
      fc.property(data, (value) => {
        const copy = JSON.stringify(value, (_, part: unknown) =>
          typeof part === 'bigint' ? String(part) : part,
        );
        read(value);
        expect(
          JSON.stringify(value, (_, part: unknown) =>
            typeof part === 'bigint' ? String(part) : part,
          ),
        ).toBe(copy);
      }),
    );
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  });
});
