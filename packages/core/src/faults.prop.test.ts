import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nearest } from './faults.ts';
import { policyFields } from './policy-fields.ts';

const fieldNames = Object.keys(policyFields);
const long = fieldNames.filter((name) => name.length >= 5);
const letter = fc.constantFrom('a', 'e', 'm', 'o', 's', 't', 'z');

describe('the nearest word', () => {
  it('is one of the options or none, whatever is asked', () => {
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.string()), (word, options) => {
        const near = nearest(word, options);
        expect(near === undefined || options.includes(near)).toBe(true);
      }),
    );
  });

  it('finds every field after one slip: a letter missing, added, changed or swapped', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...long),
        fc.nat(),
        letter,
        fc.constantFrom('missing', 'added', 'changed', 'swapped'),
        (name, position, other, slip) => {
          const at = position % (name.length - 1);
          const [head, one, two, tail] = [
            name.slice(0, at),
            name.charAt(at),
            name.charAt(at + 1),
            name.slice(at + 2),
          ];
          const slips = {
            missing: head + two + tail,
            added: head + one + other + two + tail,
            changed: head + other + two + tail,
            swapped: head + two + one + tail,
          };
          expect(nearest(slips[slip], fieldNames)).toBe(name);
        },
      ),
    );
  });

  it('does not care for case, or for how words are joined', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...fieldNames),
        fc.constantFrom('_', '-', ''),
        fc.boolean(),
        (name, joint, capitals) => {
          const joined = name.replace(/[A-Z]/g, (capital) => joint + capital.toLowerCase());
          expect(nearest(capitals ? joined.toUpperCase() : joined, fieldNames)).toBe(name);
        },
      ),
    );
  });

  it('is quick even for words of a megabyte', () => {
    expect(nearest('maxAttempts'.repeat(100_000), fieldNames)).toBeUndefined();
  });
});
