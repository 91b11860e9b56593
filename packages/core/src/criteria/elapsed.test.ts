import { describe, expect, it } from 'vitest';
import { isRetryDelayElapsed } from './elapsed.ts';
import type { CriterionOptions, RetryDelayInput } from './entity.ts';
import { isMaxRetriesExceeded } from './limits.ts';

const T0 = Date.parse('2025-06-01T12:00:00.000Z');
const at = (offsetMs: number): string => new Date(T0 + offsetMs).toISOString();

/** A fixed delay of 60 s with nothing added; each test changes what it is about. */
const plain = {
  lastAttemptTime: at(0),
  currentTime: at(60_000),
  retryDelaySeconds: 60,
  attemptCount: 1,
  exponentialBackoff: false,
  jitterEnabled: false,
} satisfies RetryDelayInput;
const backoff = { ...plain, exponentialBackoff: true } satisfies RetryDelayInput;
const random = (unit: number): CriterionOptions => ({ random: () => unit });
const codes = (found: readonly { code: string }[]): string[] => found.map(({ code }) => code);

describe('missing and odd data, from the top down', () => {
  it.each([undefined, null])('answers DATA_UNAVAILABLE without lastAttemptTime (%s)', (missing) => {
    const result = isRetryDelayElapsed({ ...plain, lastAttemptTime: missing });
    expect(result).toEqual({
      matches: false,
      reason: 'TIMING_ERROR',
      delayMs: null,
      elapsedMs: null,
      dueAtMs: null,
      errors: [{ code: 'DATA_UNAVAILABLE', message: 'lastAttemptTime is missing' }],
      warnings: [],
    });
  });

  it('puts a missing lastAttemptTime before a currentTime that does not parse', () => {
    const result = isRetryDelayElapsed({ currentTime: 'noon' });
    expect(codes(result.errors)).toEqual(['DATA_UNAVAILABLE']);
  });

  it.each([
    'yesterday',
    '',
    '2025-06-01',
    '2025-02-30T00:00:00Z',
    T0,
    String(T0),
    true,
    {},
    [at(0)],
    new Date(Number.NaN),
  ])('answers INVALID_TIME for a time that does not parse: %j', (time) => {
    for (const field of ['lastAttemptTime', 'currentTime']) {
      const result = isRetryDelayElapsed({ ...plain, [field]: time });
      expect(result).toMatchObject({ matches: false, reason: 'TIMING_ERROR', delayMs: null });
      expect(codes(result.errors)).toEqual(['INVALID_TIME']);
      expect(result.errors[0]?.message).toContain(`${field} must be an ISO-8601 date and time`);
      expect(result.warnings).toEqual([]);
    }
  });

  it('asks the clock where currentTime is missing, in whole ms', () => {
    const { currentTime: _, ...entity } = plain;
    const soon = isRetryDelayElapsed(entity, {}, { nowMs: () => T0 + 59_999.9 });
    expect(soon).toMatchObject({ matches: false, elapsedMs: 59_999, errors: [], warnings: [] });
    const due = isRetryDelayElapsed(
      { ...entity, currentTime: null },
      {},
      { nowMs: () => T0 + 6e4 },
    );
    expect(due.matches).toBe(true);
  });

  it('asks the clock of the system where no other is given', () => {
    const past = isRetryDelayElapsed({ ...plain, currentTime: undefined });
    expect(past.matches).toBe(true);
    const future = { ...plain, lastAttemptTime: '9999-01-01T00:00:00Z', currentTime: undefined };
    expect(isRetryDelayElapsed(future)).toMatchObject({ matches: false, errors: [] });
  });

  it('does not ask the clock when currentTime is there', () => {
    const nowMs = (): never => {
      throw new Error('asked');
    };
    expect(isRetryDelayElapsed(plain, {}, { nowMs })).toMatchObject({ matches: true, errors: [] });
  });

  it('tries a failing clock once more', () => {
    const failures = [Number.NaN, Number.POSITIVE_INFINITY, new Error('no clock')];
    for (const failure of failures) {
      let calls = 0;
      const nowMs = (): number => {
        calls += 1;
        if (calls > 1) return T0 + 60_000;
        if (failure instanceof Error) throw failure;
        return failure;
      };
      const result = isRetryDelayElapsed({ ...plain, currentTime: undefined }, {}, { nowMs });
      expect(result).toMatchObject({ matches: true, errors: [], warnings: [] });
      expect(calls).toBe(2);
    }
  });

  it('answers CALCULATION_ERROR when the clock fails twice, and asks no third time', () => {
    let calls = 0;
    const nowMs = (): number => {
      calls += 1;
      if (calls === 1) throw new Error('no clock');
      return Number.NaN;
    };
    const result = isRetryDelayElapsed({ ...plain, currentTime: undefined }, {}, { nowMs });
    expect(result).toMatchObject({ matches: false, reason: 'TIMING_ERROR', elapsedMs: null });
    expect(codes(result.errors)).toEqual(['CALCULATION_ERROR']);
    expect(result.errors[0]?.message).toBe('The clock failed twice');
    expect(result.warnings).toEqual([]);
    expect(calls).toBe(2);
  });

  it('answers false and names the skew when lastAttemptTime is after currentTime', () => {
    const result = isRetryDelayElapsed({ ...plain, currentTime: at(-1500) });
    expect(result).toEqual({
      matches: false,
      reason: 'TIMING_ERROR',
      delayMs: 60_000,
      elapsedMs: -1500,
      dueAtMs: T0 + 60_000,
      errors: [],
      warnings: [
        { code: 'CLOCK_SKEW', message: 'lastAttemptTime is 1500 ms after the current time' },
      ],
    });
  });

  it('answers false on a skew with zero delay too', () => {
    const entity = { ...plain, retryDelaySeconds: 0, currentTime: at(-1) };
    const result = isRetryDelayElapsed(entity);
    expect(result).toMatchObject({ matches: false, delayMs: 0, errors: [] });
    expect(codes(result.warnings)).toEqual(['CLOCK_SKEW']);
  });

  it('puts the skew before a delay that cannot be worked out', () => {
    const entity = { ...plain, retryDelaySeconds: 1e308, currentTime: at(-1) };
    const result = isRetryDelayElapsed(entity);
    expect(result).toMatchObject({ matches: false, delayMs: null, dueAtMs: null, errors: [] });
  });

  it.each([
    undefined,
    null,
    -1,
    0.5,
    2.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '60',
    true,
    {},
    [60],
  ])('uses the default delay and warns when retryDelaySeconds is %j', (retryDelaySeconds) => {
    const result = isRetryDelayElapsed({ ...plain, retryDelaySeconds });
    expect(result).toMatchObject({ matches: true, delayMs: 60_000, errors: [] });
    expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
    expect(result.warnings[0]?.message).toContain('retryDelaySeconds');
    const other = { defaultRetryDelaySeconds: 7 };
    expect(isRetryDelayElapsed({ ...plain, retryDelaySeconds }, other).delayMs).toBe(7000);
  });

  it.each([
    [{}, ''],
    [Object.create(null), ''],
    [undefined, ': there is no entity'],
    [null, ': there is no entity'],
    [[{ lastAttemptTime: 'x' }], ': the entity is a list, not an object'],
    [17, ': the entity is 17, not an object'],
    ['s3cret', ': the entity is a text of length 6, not an object'],
  ])('says of %j why the last attempt is missing', (entity, why) => {
    const message = `lastAttemptTime is missing${why}`;
    expect(isRetryDelayElapsed(entity).errors).toEqual([{ code: 'DATA_UNAVAILABLE', message }]);
    expect(isMaxRetriesExceeded(entity).errors[0]?.message).toBe(`attemptCount is missing${why}`);
  });

  it('tells a number, a text like a number, and of other texts only their length', () => {
    const warningFor = (retryDelaySeconds: unknown): string | undefined =>
      isRetryDelayElapsed({ ...plain, retryDelaySeconds }).warnings[0]?.message;
    expect(warningFor(-5)).toBe(
      'retryDelaySeconds must be a whole number, 0 or more, not -5; 60 is used',
    );
    expect(warningFor('s3cret')).toBe(
      'retryDelaySeconds must be a whole number, 0 or more, not a text of length 6; 60 is used',
    );
    expect(warningFor('60')).toBe(
      'retryDelaySeconds must be a whole number, 0 or more, not the text "60"; 60 is used',
    );
    expect(warningFor('1'.repeat(41))).toContain('a text of length 41;');
    expect(warningFor(true)).toContain('not true;');
    expect(warningFor({})).toContain('not a value of type object;');
    expect(warningFor(null)).toBe('retryDelaySeconds is missing; 60 is used');
  });

  it.each([0, -2, Number.NaN, Number.POSITIVE_INFINITY, '3', false, {}])(
    'uses the default multiplier and warns when it is %j',
    (backoffMultiplier) => {
      const entity = { ...backoff, attemptCount: 3, backoffMultiplier };
      const result = isRetryDelayElapsed(entity);
      expect(result).toMatchObject({ delayMs: 240_000, errors: [] });
      expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
      expect(result.warnings[0]?.message).toContain('backoffMultiplier');
      expect(isRetryDelayElapsed(entity, { defaultBackoffMultiplier: 3 }).delayMs).toBe(540_000);
    },
  );

  it.each([0, -2, Number.NaN, Number.POSITIVE_INFINITY, '3', false, {}])(
    'uses the default cap and warns when it is %j',
    (maxDelaySeconds) => {
      const entity = { ...backoff, attemptCount: 30, maxDelaySeconds };
      const result = isRetryDelayElapsed(entity);
      expect(result).toMatchObject({ delayMs: 3_600_000, errors: [] });
      expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
      expect(result.warnings[0]?.message).toContain('maxDelaySeconds');
      expect(isRetryDelayElapsed(entity, { defaultMaxDelaySeconds: 90 }).delayMs).toBe(90_000);
    },
  );

  it('takes a missing multiplier or cap from the configuration without a warning', () => {
    const entity = { ...backoff, backoffMultiplier: null, attemptCount: 30 };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ delayMs: 3_600_000, warnings: [] });
  });

  it.each([undefined, null])('takes a missing attemptCount (%j) for 1', (attemptCount) => {
    const result = isRetryDelayElapsed({ ...backoff, attemptCount });
    expect(result).toMatchObject({ delayMs: 60_000, errors: [], warnings: [] });
  });

  it.each([0, -7, 0.9, 3.9, Number.NEGATIVE_INFINITY, Infinity, '3', Number.NaN, true, {}])(
    'takes an attemptCount that is no whole number from 1 for 1 and warns: %j',
    (attemptCount) => {
      const result = isRetryDelayElapsed({ ...backoff, attemptCount });
      expect(result).toMatchObject({ delayMs: 60_000, errors: [] });
      expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
      expect(result.warnings[0]?.message).toContain('attemptCount must be a whole number, 1 or');
    },
  );

  it('takes an attemptCount past what a number can count for the last that it can', () => {
    const entity = { ...backoff, attemptCount: 1e300, backoffMultiplier: 1 };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ delayMs: 60_000, warnings: [] });
  });

  it.each([plain, backoff, { ...backoff, jitterEnabled: true, attemptCount: 1e9 }])(
    'answers true at once for zero delay: %j',
    (entity) => {
      const result = isRetryDelayElapsed({ ...entity, retryDelaySeconds: 0, currentTime: at(0) });
      expect(result).toMatchObject({ matches: true, delayMs: 0, dueAtMs: T0 });
      expect(result.reason).toBe(
        entity.exponentialBackoff ? 'BACKOFF_ELAPSED' : 'FIXED_DELAY_ELAPSED',
      );
      expect(result).toMatchObject({ errors: [], warnings: [] });
    },
  );

  it('uses the cap, with OVERFLOW_ERROR among the warnings, when the power overflows', () => {
    const entity = { ...backoff, attemptCount: 2000 };
    const early = isRetryDelayElapsed(entity);
    expect(early).toMatchObject({ matches: false, reason: 'BACKOFF_WAIT', delayMs: 3_600_000 });
    expect(early.errors).toEqual([]);
    expect(codes(early.warnings)).toEqual(['OVERFLOW_ERROR']);
    const late = isRetryDelayElapsed({ ...entity, currentTime: at(3_600_000) });
    expect(late).toMatchObject({ matches: true, reason: 'MAXIMUM_DELAY_ELAPSED' });
    expect(codes(late.warnings)).toEqual(['OVERFLOW_ERROR']);
  });

  it('does the same when the power is finite and only its product with the delay overflows', () => {
    const result = isRetryDelayElapsed({ ...backoff, attemptCount: 1024 });
    expect(result).toMatchObject({ delayMs: 3_600_000, errors: [] });
    expect(codes(result.warnings)).toEqual(['OVERFLOW_ERROR']);
  });

  it('does not warn of an overflow while the raw delay is still a number', () => {
    const result = isRetryDelayElapsed({ ...backoff, attemptCount: 1000 });
    expect(result).toMatchObject({ delayMs: 3_600_000, errors: [], warnings: [] });
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 'none', null])(
    'answers OVERFLOW_ERROR when there is no usable cap, the configured one being %j',
    (cap) => {
      const config = { defaultMaxDelaySeconds: cap as number };
      const result = isRetryDelayElapsed({ ...backoff, attemptCount: 2000 }, config);
      expect(result).toMatchObject({ matches: false, reason: 'TIMING_ERROR', delayMs: null });
      expect(result).toMatchObject({ dueAtMs: null, elapsedMs: 60_000 });
      expect(codes(result.errors)).toEqual(['OVERFLOW_ERROR']);
      expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
    },
  );

  it('answers OVERFLOW_ERROR when the cap itself overflows in ms', () => {
    const entity = { ...backoff, attemptCount: 2000, maxDelaySeconds: 1e307 };
    expect(codes(isRetryDelayElapsed(entity).errors)).toEqual(['OVERFLOW_ERROR']);
  });

  it('goes without a cap, and warns, when none is usable and nothing overflows', () => {
    const result = isRetryDelayElapsed(
      { ...backoff, attemptCount: 11 },
      { defaultMaxDelaySeconds: -1 },
    );
    expect(result).toMatchObject({ delayMs: 60_000 * 1024, reason: 'BACKOFF_WAIT', errors: [] });
    expect(result.warnings[0]?.message).toBe(
      'defaultMaxDelaySeconds must be a whole number, 1 or more, not -1; no cap is used',
    );
    expect(codes(result.warnings)).toEqual(['DEFAULT_USED']);
  });

  it.each([
    ['gives 1', () => 1],
    ['gives a negative number', () => -0.1],
    ['gives NaN', () => Number.NaN],
    ['gives a text', () => '0.5' as never],
    ['gives nothing', () => undefined as never],
    [
      'throws',
      (): never => {
        throw new Error('no entropy');
      },
    ],
  ])('adds no jitter and warns when the random source %s', (_name, source) => {
    const result = isRetryDelayElapsed({ ...plain, jitterEnabled: true }, {}, { random: source });
    expect(result).toMatchObject({ matches: true, reason: 'FIXED_DELAY_ELAPSED', delayMs: 60_000 });
    expect(result.errors).toEqual([]);
    expect(codes(result.warnings)).toEqual(['RANDOM_FAILED']);
  });

  it.each([
    ['a fixed delay overflows in ms', { ...plain, retryDelaySeconds: 1e306 }],
    [
      'an overflow meets an underflow',
      { ...backoff, retryDelaySeconds: 1e306, backoffMultiplier: 0.5, attemptCount: 1e9 },
    ],
  ])('answers CALCULATION_ERROR when the delay is not finite: %s', (_name, entity) => {
    const result = isRetryDelayElapsed(entity);
    expect(result).toMatchObject({ matches: false, reason: 'TIMING_ERROR', delayMs: null });
    expect(result.errors).toEqual([
      { code: 'CALCULATION_ERROR', message: 'The delay is not a finite number of ms' },
    ]);
    expect(result.warnings).toEqual([]);
  });

  it('answers CALCULATION_ERROR when jitter pushes a delay past what a number holds', () => {
    const entity = { ...plain, jitterEnabled: true, retryDelaySeconds: 1.79e305 };
    expect(isRetryDelayElapsed(entity, {}, random(0)).errors).toEqual([]);
    expect(codes(isRetryDelayElapsed(entity, {}, random(0.9)).errors)).toEqual([
      'CALCULATION_ERROR',
    ]);
  });

  it.each([
    ['an error', new Error('locked'), 'locked'],
    ['a long error', new Error('x'.repeat(5000)), 'x'.repeat(200)],
    ['no error', 'locked', 'a value of type string was thrown'],
    [
      'an error that cannot be read',
      Object.defineProperty(new Error(), 'message', {
        get: () => {
          throw new Error('nested');
        },
      }),
      'the error cannot be read',
    ],
  ])('answers CALCULATION_ERROR when the calculation throws %s', (_name, thrown, text) => {
    const entity = {
      ...plain,
      get retryDelaySeconds(): number {
        throw thrown;
      },
    };
    const result = isRetryDelayElapsed(entity);
    expect(result).toMatchObject({ matches: false, reason: 'TIMING_ERROR', delayMs: null });
    expect(codes(result.errors)).toEqual(['CALCULATION_ERROR']);
    expect(result.errors[0]?.message).toBe(text);
  });

  it('answers EVALUATION_TIMEOUT when it took longer than responseTimeoutMs', () => {
    const took = (ms: number): CriterionOptions => {
      const readings = [1000, 1000 + ms];
      return { monotonicMs: () => readings.shift() ?? Number.NaN };
    };
    expect(isRetryDelayElapsed(plain, {}, took(2000))).toMatchObject({ matches: true, errors: [] });
    const late = isRetryDelayElapsed(plain, {}, took(2000.5));
    expect(late).toMatchObject({ matches: false, reason: 'TIMING_ERROR', delayMs: 60_000 });
    expect(codes(late.errors)).toEqual(['EVALUATION_TIMEOUT']);
    expect(late.errors[0]?.message).toBe('The evaluation took 2001 ms, more than 2000 ms');
    expect(late.warnings).toEqual([]);
    const strict = isRetryDelayElapsed(plain, { responseTimeoutMs: 5 }, took(6));
    expect(codes(strict.errors)).toEqual(['EVALUATION_TIMEOUT']);
    const waiting = { ...plain, currentTime: at(1) };
    expect(codes(isRetryDelayElapsed(waiting, {}, took(9999)).errors)).toEqual([
      'EVALUATION_TIMEOUT',
    ]);
  });

  it('lets an earlier row stand before the timeout', () => {
    let ms = 0;
    const slow = { monotonicMs: () => (ms += 9999) };
    expect(codes(isRetryDelayElapsed({}, {}, slow).errors)).toEqual(['DATA_UNAVAILABLE']);
    expect(isRetryDelayElapsed({ ...plain, currentTime: at(-1) }, {}, slow).errors).toEqual([]);
  });

  it('answers CALCULATION_ERROR when the monotonic clock fails twice', () => {
    const result = isRetryDelayElapsed(plain, {}, { monotonicMs: () => Number.NaN });
    expect(result).toMatchObject({ matches: false, delayMs: 60_000 });
    expect(codes(result.errors)).toEqual(['CALCULATION_ERROR']);
  });
});

describe('times', () => {
  it('may be Date objects', () => {
    const entity = { ...plain, lastAttemptTime: new Date(T0), currentTime: new Date(T0 + 60_000) };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ matches: true, warnings: [] });
  });

  it('are not taken from what a Date was made to say', () => {
    class Lying extends Date {
      override getTime(): number {
        return 0;
      }
    }
    expect(isRetryDelayElapsed({ ...plain, lastAttemptTime: new Lying(T0) }).elapsedMs).toBe(
      60_000,
    );
  });

  it('without a zone are UTC, with a warning each', () => {
    const entity = {
      ...plain,
      lastAttemptTime: '2025-06-01T12:00:00',
      currentTime: '2025-06-01T12:01',
    };
    expect(isRetryDelayElapsed(entity)).toMatchObject({
      matches: true,
      elapsedMs: 60_000,
      warnings: [
        { code: 'ZONE_MISSING', message: 'lastAttemptTime names no zone and is read as UTC' },
        { code: 'ZONE_MISSING', message: 'currentTime names no zone and is read as UTC' },
      ],
    });
  });

  it.each([null, undefined, 5, 'entity', Symbol('entity'), []])(
    'are missing in what is no entity: %s',
    (input) => {
      const result = isRetryDelayElapsed(input, null, null);
      expect(codes(result.errors)).toEqual(['DATA_UNAVAILABLE']);
    },
  );
});
