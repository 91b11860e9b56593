import { describe, expect, it } from 'vitest';
import { delayFor } from '../policy/backoff.ts';
import { presets } from '../policy/presets.ts';
import { isRetryDelayElapsed } from './elapsed.ts';
import type { CriterionOptions, RetryDelayInput } from './entity.ts';

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

describe('the delay', () => {
  it('is not capped without exponential backoff', () => {
    const entity = { ...plain, retryDelaySeconds: 7200, maxDelaySeconds: 10 };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ delayMs: 7_200_000, warnings: [] });
  });

  it('caps before the jitter, which may exceed the cap', () => {
    const entity = { ...backoff, jitterEnabled: true, attemptCount: 20 };
    expect(isRetryDelayElapsed(entity, {}, random(0.5)).delayMs).toBe(3_780_000);
  });

  it('is whole ms, rounded up: rounding down would match up to 1 ms too early', () => {
    const third = { ...backoff, retryDelaySeconds: 1, backoffMultiplier: 1 / 3, attemptCount: 2 };
    expect(isRetryDelayElapsed({ ...third, currentTime: at(333) })).toMatchObject({
      matches: false,
      delayMs: 334,
    });
    expect(isRetryDelayElapsed({ ...third, currentTime: at(334) }).matches).toBe(true);
    const capped = { ...third, backoffMultiplier: 9, maxDelaySeconds: 0.0015 };
    expect(isRetryDelayElapsed(capped)).toMatchObject({
      delayMs: 2,
      reason: 'MAXIMUM_DELAY_ELAPSED',
    });
    const entity = { ...plain, jitterEnabled: true, retryDelaySeconds: 1 };
    expect(isRetryDelayElapsed(entity, {}, random(0.9981)).delayMs).toBe(1100);
    expect(isRetryDelayElapsed(entity, {}, random(0.0001)).delayMs).toBe(1001);
  });

  it('is that of the preset `criterion`, but for the rounding', () => {
    for (const attempt of [1, 2, 3, 6, 7, 8, 5000]) {
      for (const unit of [0, 0.25, 1 / 3, 0.999]) {
        const entity = { lastAttemptTime: at(0), retryDelaySeconds: 60, attemptCount: attempt };
        const { delayMs } = isRetryDelayElapsed(entity, null, random(unit));
        const presetMs = delayFor(presets.criterion, { attempt, random: unit });
        expect([presetMs, presetMs + 1]).toContain(delayMs);
      }
    }
  });

  it('backs off and jitters as the configuration says where the entity does not', () => {
    const entity = {
      ...plain,
      exponentialBackoff: null,
      jitterEnabled: undefined,
      attemptCount: 2,
    };
    const off = { enableExponentialBackoff: false, enableJitter: false };
    expect(isRetryDelayElapsed(entity, {}, random(0.5)).delayMs).toBe(126_000);
    expect(isRetryDelayElapsed(entity, off, random(0.5)).delayMs).toBe(60_000);
    const on = { ...entity, exponentialBackoff: true, jitterEnabled: true };
    expect(isRetryDelayElapsed(on, off, random(0.5)).delayMs).toBe(126_000);
  });

  it('warns of a switch that is not true or false and takes the configured one', () => {
    const entity = { ...plain, exponentialBackoff: 'false', jitterEnabled: 0, attemptCount: 2 };
    const result = isRetryDelayElapsed(entity, { enableJitter: false });
    expect(result).toMatchObject({ delayMs: 120_000, errors: [] });
    expect(codes(result.warnings)).toEqual(['DEFAULT_USED', 'DEFAULT_USED']);
  });

  it('warns of an odd jitter switch with zero delay too', () => {
    const result = isRetryDelayElapsed({ ...plain, retryDelaySeconds: 0, jitterEnabled: 'yes' });
    expect(result).toMatchObject({ matches: true, delayMs: 0 });
    expect(result.warnings).toEqual([
      {
        code: 'DEFAULT_USED',
        message: 'jitterEnabled must be true or false, not a text of length 3; true is used',
      },
    ]);
  });

  it('does not warn of an odd multiplier or cap that is not used', () => {
    const entity = { ...plain, backoffMultiplier: -1, maxDelaySeconds: 'x' };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ matches: true, warnings: [] });
  });

  it('does not warn of a jitterPercentage that is not used', () => {
    const broken = { jitterPercentage: 5 };
    expect(isRetryDelayElapsed(plain, broken).warnings).toEqual([]);
    const zero = { ...plain, jitterEnabled: true, retryDelaySeconds: 0 };
    expect(isRetryDelayElapsed(zero, broken).warnings).toEqual([]);
    const used = { ...plain, jitterEnabled: true };
    expect(isRetryDelayElapsed(used, { jitterPercentage: null as never }).warnings).toEqual([
      {
        code: 'DEFAULT_USED',
        message: 'jitterPercentage must be a share from 0 to 1, not null; 0.1 is used',
      },
    ]);
  });

  it('takes a cap that is a fraction of a second', () => {
    const entity = { ...backoff, maxDelaySeconds: 0.5 };
    expect(isRetryDelayElapsed(entity)).toMatchObject({ delayMs: 500, warnings: [] });
  });

  it('uses the built-in value, and warns, where a configured one is unusable', () => {
    const entity = { lastAttemptTime: at(0), currentTime: at(0), attemptCount: 2 };
    const broken = {
      defaultRetryDelaySeconds: '5',
      defaultBackoffMultiplier: 0,
      enableExponentialBackoff: 1,
      enableJitter: null,
      jitterPercentage: 10,
    };
    const result = isRetryDelayElapsed(entity, broken as object, random(0.5));
    expect(result).toMatchObject({ delayMs: 126_000, errors: [] });
    for (const name of Object.keys(broken)) {
      expect(result.warnings.filter(({ message }) => message.includes(name))).toHaveLength(1);
    }
  });

  it('takes the named set of the operation type', () => {
    const settings = { sets: { payment: { defaultRetryDelaySeconds: 5 } } };
    const entity = { ...plain, retryDelaySeconds: null };
    const delayOf = (operationType: unknown): number | null =>
      isRetryDelayElapsed({ ...entity, operationType }, settings).delayMs;
    expect(delayOf('payment')).toBe(5000);
    expect(delayOf('refund')).toBe(60_000);
    expect(delayOf({})).toBe(60_000);
  });

  it('takes the set of the context where the operation type names none', () => {
    const sets = {
      payment: { defaultRetryDelaySeconds: 5 },
      nightly: { defaultRetryDelaySeconds: 7 },
    };
    const entity = { ...plain, retryDelaySeconds: null };
    const delayOf = (operationType: unknown, context: string): number | null =>
      isRetryDelayElapsed({ ...entity, operationType }, { sets }, { context }).delayMs;
    expect(delayOf('payment', 'nightly')).toBe(5000);
    expect(delayOf('refund', 'nightly')).toBe(7000);
    expect(delayOf(undefined, 'weekly')).toBe(60_000);
    expect(delayOf('__proto__', 'constructor')).toBe(60_000);
  });

  it('does not let the entity choose the profile or the context', () => {
    const settings = { sets: { fast: { defaultRetryDelaySeconds: 1 } } };
    const entity = { ...plain, retryDelaySeconds: null, profile: 'development', context: 'fast' };
    expect(isRetryDelayElapsed(entity, settings).delayMs).toBe(60_000);
  });
});

describe('the jitter', () => {
  const jittered = { ...plain, jitterEnabled: true, retryDelaySeconds: 3600 };
  const keysOf = (entity: RetryDelayInput): [string, number][] => {
    const keys: [string, number][] = [];
    const record = (key: string, attempt: number): number => {
      keys.push([key, attempt]);
      return 0;
    };
    isRetryDelayElapsed(entity, {}, { random: record });
    return keys;
  };

  it('belongs to the entity and the attempt', () => {
    expect(keysOf({ ...jittered, entityId: 'e1', id: 'x', attemptCount: 3 })).toEqual([['e1', 3]]);
    expect(keysOf({ ...jittered, entityId: '', id: 'x' })).toEqual([['x', 1]]);
    expect(keysOf({ ...jittered, entityId: {}, id: 42 })).toEqual([['42', 1]]);
  });

  it('belongs to the last attempt where the entity has no id, however its time is written', () => {
    const key = [[`${T0}:2`, 2]];
    expect(keysOf({ ...jittered, attemptCount: 2 })).toEqual(key);
    const sameTime = { ...jittered, attemptCount: 2, lastAttemptTime: '2025-06-01T14:00+02:00' };
    expect(keysOf(sameTime)).toEqual(key);
  });

  it('is the same however often it is asked for, and another for another entity or seed', () => {
    const delayOf = (entityId: string, ports?: CriterionOptions): number | null =>
      isRetryDelayElapsed({ ...jittered, entityId }, undefined, ports).delayMs;
    expect(new Set(Array.from({ length: 100 }, () => delayOf('a')))).toHaveProperty('size', 1);
    expect(delayOf('a')).toBe(delayOf('a', { seed: 0 }));
    expect(delayOf('a')).not.toBe(delayOf('b'));
    expect(delayOf('a')).not.toBe(delayOf('a', { seed: 1 }));
  });

  it('is not drawn when it is off or has nothing to lengthen', () => {
    expect(keysOf(plain)).toEqual([]);
    expect(keysOf({ ...jittered, retryDelaySeconds: 0 })).toEqual([]);
  });

  it('starts where a delay with a fraction of a ms would be over', () => {
    const third = { ...jittered, exponentialBackoff: true, backoffMultiplier: 1 / 3 };
    const entity = { ...third, retryDelaySeconds: 1, attemptCount: 2 };
    const reasonAt = (ms: number): string =>
      isRetryDelayElapsed({ ...entity, currentTime: at(ms) }, {}, random(0.5)).reason;
    expect([333, 334, 349, 350].map(reasonAt)).toEqual([
      'BACKOFF_WAIT',
      'JITTER_WAIT',
      'JITTER_WAIT',
      'JITTER_ELAPSED',
    ]);
  });

  it('is not named where rounding up swallows it', () => {
    const entity = { ...plain, jitterEnabled: true, exponentialBackoff: true, attemptCount: 2 };
    const third = { ...entity, retryDelaySeconds: 1, backoffMultiplier: 1 / 3 };
    const result = isRetryDelayElapsed(third, {}, random(0.001));
    expect(result).toMatchObject({ delayMs: 334, reason: 'BACKOFF_ELAPSED' });
  });

  it('has the key of the options before the id of the entity', () => {
    const keys: string[] = [];
    const record = (key: string): number => {
      keys.push(key);
      return 0;
    };
    const entity = { ...jittered, entityId: 'own' };
    isRetryDelayElapsed(entity, {}, { random: record, key: 'given' });
    isRetryDelayElapsed(entity, {}, { random: record, key: '' });
    isRetryDelayElapsed(entity, {}, { random: record, key: undefined });
    expect(keys).toEqual(['given', 'own', 'own']);
  });
});

describe('the reason', () => {
  const jittered = { ...backoff, jitterEnabled: true, attemptCount: 2 };
  it.each([
    ['FIXED_DELAY_ELAPSED', plain, 60_000],
    ['BACKOFF_ELAPSED', { ...backoff, attemptCount: 2 }, 120_000],
    ['JITTER_ELAPSED', jittered, 126_000],
    ['JITTER_ELAPSED', { ...plain, jitterEnabled: true }, 63_000],
    ['MAXIMUM_DELAY_ELAPSED', { ...backoff, attemptCount: 2, maxDelaySeconds: 119 }, 119_000],
    ['MAXIMUM_DELAY_ELAPSED', { ...jittered, maxDelaySeconds: 100 }, 105_000],
    ['BACKOFF_ELAPSED', { ...backoff, attemptCount: 2, maxDelaySeconds: 120 }, 120_000],
  ])('is %s from the very ms on: %j', (reason, entity, delayMs) => {
    const due = isRetryDelayElapsed({ ...entity, currentTime: at(delayMs) }, {}, random(0.5));
    expect(due).toMatchObject({ matches: true, reason, delayMs, elapsedMs: delayMs });
    expect(due).toMatchObject({ dueAtMs: T0 + delayMs, errors: [], warnings: [] });
    const early = isRetryDelayElapsed({ ...entity, currentTime: at(delayMs - 1) }, {}, random(0.5));
    expect(early.matches).toBe(false);
  });

  it.each([
    ['TOO_SOON', plain, 59_999],
    ['TOO_SOON', { ...plain, jitterEnabled: true }, 59_999],
    ['BACKOFF_WAIT', jittered, 119_999],
    ['JITTER_WAIT', jittered, 120_000],
    ['JITTER_WAIT', { ...plain, jitterEnabled: true }, 60_000],
    ['JITTER_WAIT', { ...jittered, maxDelaySeconds: 100 }, 104_999],
  ])('is %s while waiting: %j', (reason, entity, elapsedMs) => {
    const result = isRetryDelayElapsed({ ...entity, currentTime: at(elapsedMs) }, {}, random(0.5));
    expect(result).toMatchObject({ matches: false, reason, elapsedMs, errors: [], warnings: [] });
  });

  it('names the jitter only where it lengthened the delay', () => {
    const entity = { ...plain, jitterEnabled: true };
    const undrawn = isRetryDelayElapsed(entity, {}, random(0));
    expect(undrawn).toMatchObject({ reason: 'FIXED_DELAY_ELAPSED', warnings: [] });
    expect(isRetryDelayElapsed(entity, { jitterPercentage: 0 }, random(0.9)).delayMs).toBe(60_000);
  });
});
