import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRetryDelayElapsed } from './elapsed.ts';
import type { CriterionName } from './evaluate.ts';
import { criterionNames, evaluateCriterion, isCriterionName } from './evaluate.ts';
import { hasRetriesAvailable, isMaxRetriesExceeded } from './limits.ts';
import { nextRetryTime } from './next.ts';

const bomb = (): never => {
  throw new Error('trap');
};
/** Every operation on it throws. */
const trap: object = new Proxy(
  {},
  { get: bomb, has: bomb, ownKeys: bomb, getPrototypeOf: bomb, getOwnPropertyDescriptor: bomb },
);
/** Each field throws, or converts itself to something that throws. */
const grenade = new Proxy({}, { get: () => ({ valueOf: bomb, toString: bomb, toJSON: bomb }) });
const revoked = ((): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
})();
function deep(): object {
  let nested: object = {};
  for (let i = 0; i < 100_000; i++) nested = { nested };
  return nested;
}
const huge = 'x'.repeat(1_000_000);

const hostile: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['undefined', undefined],
  ['a number', 5],
  ['a text', 'entity'],
  ['a symbol', Symbol('entity')],
  ['a bigint', 5n],
  ['a function', bomb],
  ['an array', [1]],
  ['a Proxy that throws', trap],
  ['a Proxy whose values throw', grenade],
  ['a Proxy that is revoked', revoked],
  ['values that throw', { lastAttemptTime: trap, attemptCount: trap, maxRetries: grenade }],
  ['deep nesting', { lastAttemptTime: deep(), attemptCount: deep() }],
  ['huge texts', { lastAttemptTime: huge, attemptCount: huge, entityId: huge }],
  [
    'a huge id',
    { lastAttemptTime: '2026-01-25T21:15:00Z', attemptCount: 1, id: huge, operationType: huge },
  ],
  ['prototype keys', JSON.parse('{"__proto__": {"lastAttemptTime": "2026-01-25T21:15:00Z"}}')],
  ['no prototype', Object.assign(Object.create(null) as object, { attemptCount: 1 })],
  ['a Date that is a Proxy', { lastAttemptTime: new Proxy(new Date(0), {}) }],
];

describe('evaluateCriterion', () => {
  it.each(hostile)('answers for %s', (_name, entity) => {
    for (const name of criterionNames) {
      for (const settings of [undefined, {}, trap, revoked]) {
        const result = evaluateCriterion(name, entity, settings, { seed: 3 });
        expect(typeof result.matches).toBe('boolean');
        const text = JSON.stringify(result);
        expect(text.length).toBeLessThan(1000);
      }
    }
  });

  it.each(hostile)('answers with options that are %s', (_name, options) => {
    const entity = { lastAttemptTime: '2026-01-25T21:15:00Z', attemptCount: 1 };
    for (const name of criterionNames) {
      expect(typeof evaluateCriterion(name, entity, null, options as object).matches).toBe(
        'boolean',
      );
    }
    const next = nextRetryTime(entity, null, options as object);
    expect('fireAtMs' in next || 'fireAfterMs' in next).toBe(true);
  });

  it.each(hostile)('has a next retry time for %s', (_name, entity) => {
    for (const settings of [undefined, {}, trap, revoked]) {
      const next = nextRetryTime(entity, settings);
      const time = 'fireAtMs' in next ? next.fireAtMs : next.fireAfterMs;
      expect(Number.isSafeInteger(time)).toBe(true);
      if ('fireAfterMs' in next) {
        expect(next.fireAfterMs).toBe(60_000);
        expect(next.warnings.length).toBeGreaterThan(0);
      }
    }
  });

  it('does not read the fields of a prototype key', () => {
    const entity = JSON.parse(
      '{"__proto__": {"lastAttemptTime": "2026-01-25T21:15:00Z"}}',
    ) as object;
    expect(isRetryDelayElapsed(entity).errors).toMatchObject([{ code: 'DATA_UNAVAILABLE' }]);
  });

  it('is the criterion of that name', () => {
    const entity = fc.record(
      {
        lastAttemptTime: fc.constantFrom('2026-01-25T21:15:00Z', 'noon'),
        attemptCount: fc.oneof(fc.nat({ max: 9 }), fc.anything()),
        maxRetries: fc.oneof(fc.nat({ max: 9 }), fc.anything()),
        retryDelaySeconds: fc.oneof(fc.nat({ max: 9 }), fc.anything()),
      },
      { requiredKeys: [] },
    );
    const options = { nowMs: () => Date.parse('2026-01-25T21:16:00Z'), key: 'k' };
    fc.assert(
      fc.property(entity, (one) => {
        expect(evaluateCriterion('isRetryDelayElapsed', one, null, options)).toEqual(
          isRetryDelayElapsed(one, null, options),
        );
        expect(evaluateCriterion('isMaxRetriesExceeded', one)).toEqual(isMaxRetriesExceeded(one));
        expect(evaluateCriterion('hasRetriesAvailable', one)).toEqual(hasRetriesAvailable(one));
      }),
    );
  });

  it('answers an unknown name with an error', () => {
    expect(evaluateCriterion('isLate' as CriterionName, {})).toEqual({
      matches: false,
      reason: 'DATA_ERROR',
      attemptCount: null,
      limit: null,
      errors: [{ code: 'DATA_UNAVAILABLE', message: 'There is no criterion of this name' }],
      warnings: [],
    });
    expect(['isRetryDelayElapsed', 'toString', null].map(isCriterionName)).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('nextRetryTime', () => {
  it('is when isRetryDelayElapsed begins to match', () => {
    const entity = fc.record({
      id: fc.string(),
      lastAttemptTime: fc.constant('2026-01-25T21:15:00Z'),
      retryDelaySeconds: fc.oneof(fc.nat({ max: 100_000 }), fc.anything()),
      attemptCount: fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.anything()),
      exponentialBackoff: fc.oneof(fc.boolean(), fc.anything()),
      jitterEnabled: fc.oneof(fc.boolean(), fc.anything()),
    });
    fc.assert(
      fc.property(entity, (one) => {
        const next = nextRetryTime(one);
        const result = isRetryDelayElapsed(one);
        if (result.dueAtMs === null) expect(next).toHaveProperty('fireAfterMs', 60_000);
        else expect(next).toHaveProperty('fireAtMs', Math.min(result.dueAtMs, 8.64e15));
      }),
      { numRuns: 500 },
    );
  });

  it('is at most the last time that a date can hold', () => {
    const last = 8_640_000_000_000_000;
    const entity = (seconds: number): object => ({
      lastAttemptTime: '1970-01-01T00:00:00Z',
      retryDelaySeconds: seconds,
      exponentialBackoff: false,
      jitterEnabled: false,
    });
    expect(nextRetryTime(entity(last / 1000))).toEqual({ fireAtMs: last, warnings: [] });
    expect(nextRetryTime(entity(last / 1000 + 1))).toEqual({
      fireAtMs: last,
      warnings: [
        {
          code: 'OVERFLOW_ERROR',
          message: `The due time is past the last one that a date can hold; ${last} is used`,
        },
      ],
    });
  });

  it('says what was wrong and which delay stands in for it', () => {
    expect(nextRetryTime({}, { profile: 'development' }).warnings).toEqual([
      {
        code: 'DATA_UNAVAILABLE',
        message: 'lastAttemptTime is missing; the default delay of 5 s is used',
      },
    ]);
    const trapped = nextRetryTime(trap, { defaultRetryDelaySeconds: 7 });
    expect(trapped).toEqual({
      fireAfterMs: 7000,
      warnings: [{ code: 'CALCULATION_ERROR', message: 'trap; the default delay of 7 s is used' }],
    });
    const unusable = nextRetryTime({}, { defaultRetryDelaySeconds: -1 });
    expect(unusable).toMatchObject({ fireAfterMs: 60_000 });
    expect(unusable.warnings.map(({ code }) => code)).toEqual(['DEFAULT_USED', 'DATA_UNAVAILABLE']);
  });
});
