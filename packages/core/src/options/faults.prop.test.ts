import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nearest } from './faults.ts';
import { policyFields } from '../policy/policy-fields.ts';

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

  it('is at most two steps away, and fewer than half the letters of a short word', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 7 });
    fc.assert(
      fc.property(word, word, (one, two) => {
        const near = steps(one, two) < Math.min(3, Math.ceil(one.length / 2));
        expect(nearest(one, [two])).toBe(near ? two : undefined);
      }),
      { numRuns: 1000 },
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

/** How many slips lead from one word to another, each at another place. */
function steps(one: string, two: string): number {
  if (one === '' || two === '') return one.length + two.length;
  if (one.at(-1) === two.at(-1)) return steps(one.slice(0, -1), two.slice(0, -1));
  const swapped = one.slice(-2) === two.slice(-2).split('').toReversed().join('');
  return (
    1 +
    Math.min(
      steps(one.slice(0, -1), two),
      steps(one, two.slice(0, -1)),
      steps(one.slice(0, -1), two.slice(0, -1)),
      swapped ? steps(one.slice(0, -2), two.slice(0, -2)) : Infinity,
    )
  );
}
