import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify } from './classify.ts';
import type { ClassifyRule } from './classify-text.ts';
import { failureClasses } from './failure.ts';

const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
  stringUnit: 'grapheme',
});
const texts = fc.oneof(fc.string(), fc.constantFrom('timeout', 'forbidden', 'ECONNRESET', 'Error'));
const scalar = fc.oneof(anything, texts, fc.constantFrom(0, 14, 404, 429, 503, -1));
const { error } = fc.letrec<{ error: unknown }>((tie) => ({
  error: fc.oneof(
    { maxDepth: 4 },
    anything,
    fc
      .tuple(
        fc.boolean(),
        fc.record(
          {
            message: texts,
            name: fc.oneof(texts, anything),
            code: scalar,
            status: scalar,
            statusCode: scalar,
            class: fc.oneof(fc.constantFrom(...failureClasses), anything),
            names: scalar,
            retryAfterMs: fc.oneof(fc.double(), anything),
            headers: anything,
            response: anything,
            metadata: anything,
            details: scalar,
            notExecuted: fc.oneof(fc.boolean(), anything),
            counted: fc.oneof(fc.boolean(), anything),
            cause: tie('error'),
            errors: fc.oneof(fc.array(tie('error'), { maxLength: 20 }), anything),
          },
          { requiredKeys: [] },
        ),
      )
      .map(([isError, fields]) => {
        const target: object = isError ? new Error('boom') : {};
        for (const [key, value] of Object.entries(fields)) {
          Object.defineProperty(target, key, { value, configurable: true });
        }
        return target;
      }),
  ),
}));
const rules = fc.array(
  fc.record(
    {
      codes: fc.array(texts),
      names: fc.array(texts),
      statuses: fc.array(fc.constantFrom(404, 503)),
      words: fc.array(texts),
      class: fc.constantFrom(...failureClasses),
      code: texts,
      counted: fc.constant(false as const),
    },
    { requiredKeys: ['class'] },
  ),
) as fc.Arbitrary<ClassifyRule[]>;

describe('classify, whatever was thrown', () => {
  it('gives a failure whose fields are what they should be, or absent', () => {
    fc.assert(
      fc.property(error, rules, fc.double(), (value, given, nowMs) => {
        const failure = classify(value, { rules: given, nowMs });
        expect(failureClasses).toContain(failure.class);
        for (const [key, field] of Object.entries(failure)) {
          expect({ key, field, fits: fields[key as keyof typeof fields](field) }).toMatchObject({
            fits: true,
          });
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('says the same each time', () => {
    fc.assert(
      fc.property(error, (value) => {
        const failure = classify(value);
        expect(classify(value)).toEqual(failure);
      }),
      { numRuns: 500 },
    );
  });

  it('survives traps that throw now and then', () => {
    fc.assert(
      fc.property(error, fc.infiniteStream(fc.boolean()), (value, faults) => {
        const proxied = flaky(value, () => faults.next().value === true);
        expect(failureClasses).toContain(classify(proxied).class);
      }),
    );
  });

  it('lets the first matching rule have the last word on the class', () => {
    fc.assert(
      fc.property(texts, fc.constantFrom(...failureClasses), rules, (code, name, others) => {
        const first: ClassifyRule = { codes: [code], class: name };
        expect(classify({ code }, { rules: [first, ...others] }).class).toBe(name);
      }),
    );
  });
});

const isText = (value: unknown) => typeof value === 'string';
const fields = {
  class: isText,
  code: isText,
  message: (value: unknown) => typeof value === 'string' && value.length <= 1024,
  names: (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isText),
  status: (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 100 && Number(value) < 600,
  retryAfterMs: (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 3.2e12,
  notExecuted: (value: unknown) => value === true,
  counted: (value: unknown) => value === false,
};

function flaky(value: unknown, fails: () => boolean): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const check = () => {
    if (fails()) throw new Error('trap');
  };
  return new Proxy(Array.isArray(value) ? [...(value as unknown[])] : { ...value }, {
    get(target, key) {
      check();
      return flaky(Reflect.get(target, key), fails);
    },
    getPrototypeOf(target) {
      check();
      return Reflect.getPrototypeOf(target);
    },
    ownKeys(target) {
      check();
      return Reflect.ownKeys(target);
    },
  });
}
