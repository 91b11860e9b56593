import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRetryDelayElapsed } from './elapsed.ts';
import type { RetryDelayInput } from './entity.ts';

const MAX_MS = Date.parse('2200-01-01T00:00:00Z');
const epochMs = fc.integer({ min: 0, max: MAX_MS });
const iso = (ms: number): string => new Date(ms).toISOString();
const attempts = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 1e9 }));
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Entities that are in order, without their times. */
const entity = fc.record({
  retryDelaySeconds: fc.nat({ max: 1_000_000 }),
  attemptCount: attempts,
  exponentialBackoff: fc.boolean(),
  backoffMultiplier: fc.double({ min: 0.1, max: 20, noNaN: true }),
  maxDelaySeconds: fc.integer({ min: 1, max: 1_000_000 }),
  jitterEnabled: fc.boolean(),
  entityId: fc.option(fc.string(), { nil: undefined }),
});

const oddNumber = fc.oneof(
  fc.double(),
  fc.constantFrom(0, -0, 1, Number.MAX_VALUE, Number.MIN_VALUE, Number.MAX_SAFE_INTEGER),
);
const odd = (usual: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: usual, weight: 3 }, oddNumber, fc.anything({ withDate: true }));
const hostileEntity = fc.record(
  {
    lastAttemptTime: odd(epochMs.map(iso)),
    currentTime: odd(epochMs.map(iso)),
    retryDelaySeconds: odd(fc.nat()),
    attemptCount: odd(attempts),
    exponentialBackoff: odd(fc.boolean()),
    backoffMultiplier: odd(fc.constant(2)),
    maxDelaySeconds: odd(fc.nat()),
    jitterEnabled: odd(fc.boolean()),
    entityId: odd(fc.uuid()),
    id: fc.anything(),
    operationType: fc.anything(),
  },
  { requiredKeys: [] },
);
const hostileSettings = fc.oneof(
  fc.anything(),
  fc.record(
    {
      defaultRetryDelaySeconds: odd(fc.nat()),
      defaultBackoffMultiplier: odd(fc.constant(3)),
      defaultMaxDelaySeconds: odd(fc.nat()),
      enableExponentialBackoff: odd(fc.boolean()),
      enableJitter: odd(fc.boolean()),
      jitterPercentage: odd(fraction),
      responseTimeoutMs: odd(fc.nat()),
      sets: fc.anything(),
      profile: fc.anything(),
    },
    { requiredKeys: [] },
  ),
);
const port = fc.oneof(
  fc.anything(),
  fc.anything().map((value) => () => value),
  fc.constant(() => {
    throw new Error('port');
  }),
);
const hostilePorts = fc.oneof(
  fc.anything(),
  fc.record(
    { nowMs: port, monotonicMs: port, random: port, seed: fc.anything() },
    { requiredKeys: [] },
  ),
);

function delayAt(input: RetryDelayInput, unit: number): number {
  return isRetryDelayElapsed(input, null, { random: () => unit }).delayMs ?? Number.NaN;
}

describe('isRetryDelayElapsed', () => {
  it('answers whatever it is handed, consistently', () => {
    const input = fc.oneof(fc.anything(), hostileEntity);
    fc.assert(
      fc.property(input, hostileSettings, hostilePorts, (entityLike, settings, ports) => {
        const result = isRetryDelayElapsed(entityLike, settings as object, ports as object);
        expect(result.matches).toBe(result.reason.endsWith('_ELAPSED'));
        if (result.errors.length > 0) expect(result.reason).toBe('TIMING_ERROR');
        const { errors, warnings } = result;
        for (const { code, message } of [...errors, ...warnings]) {
          expect(code).toMatch(/^[A-Z_]+$/);
          expect(message).not.toBe('');
        }
        for (const time of [result.delayMs, result.elapsedMs, result.dueAtMs]) {
          expect(time === null || Number.isFinite(time)).toBe(true);
        }
        if (result.delayMs !== null && result.elapsedMs !== null && result.errors.length === 0) {
          const due = result.elapsedMs >= 0 && result.elapsedMs >= result.delayMs;
          expect(result.matches).toBe(due);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps matching once it matches', () => {
    const wait = fc.integer({ min: -1000, max: 2_000_000_000 });
    fc.assert(
      fc.property(entity, epochMs, wait, fc.nat(), (fields, lastMs, waitMs, moreMs) => {
        const lastAttemptTime = iso(lastMs);
        const ask = (nowMs: number): boolean =>
          isRetryDelayElapsed({ ...fields, lastAttemptTime, currentTime: iso(nowMs) }).matches;
        if (ask(lastMs + waitMs)) expect(ask(lastMs + waitMs + moreMs)).toBe(true);
      }),
    );
  });

  it('matches from dueAtMs on and not 1 ms earlier', () => {
    fc.assert(
      fc.property(entity, epochMs, (fields, lastMs) => {
        const input = { ...fields, lastAttemptTime: iso(lastMs) };
        const { delayMs, dueAtMs } = isRetryDelayElapsed(input, null, { nowMs: () => lastMs });
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(dueAtMs).toBe(lastMs + (delayMs ?? Number.NaN));
        const ask = (nowMs: number): boolean =>
          isRetryDelayElapsed(input, null, { nowMs: () => nowMs }).matches;
        expect(ask(dueAtMs ?? Number.NaN)).toBe(true);
        expect(ask((dueAtMs ?? Number.NaN) - 1)).toBe(false);
      }),
    );
  });

  it('gives the same answer to the same question', () => {
    fc.assert(
      fc.property(entity, epochMs, epochMs, fc.integer(), (fields, last, now, seed) => {
        const input = { ...fields, lastAttemptTime: iso(last), currentTime: iso(now) };
        expect(isRetryDelayElapsed(input, {}, { seed })).toEqual(
          isRetryDelayElapsed({ ...input }, null, { seed }),
        );
      }),
    );
  });

  it('waits the capped delay and a tenth more at most, for attempts up to 1e9', () => {
    fc.assert(
      fc.property(entity, fraction, (fields, unit) => {
        const input = { ...fields, lastAttemptTime: iso(0), currentTime: iso(0) };
        const { retryDelaySeconds, backoffMultiplier, attemptCount, maxDelaySeconds } = fields;
        const rawMs = retryDelaySeconds * 1000 * backoffMultiplier ** (attemptCount - 1);
        const plainMs = fields.exponentialBackoff
          ? Math.min(retryDelaySeconds === 0 ? 0 : rawMs, maxDelaySeconds * 1000)
          : retryDelaySeconds * 1000;
        const addedMs = fields.jitterEnabled ? unit * 0.1 * plainMs : 0;
        expect(delayAt(input, unit)).toBe(Math.ceil(plainMs + addedMs));
        expect(delayAt(input, unit)).toBeLessThanOrEqual(Math.ceil(plainMs * 1.1));
        expect(delayAt(input, unit)).toBeGreaterThanOrEqual(Math.ceil(plainMs));
      }),
      { numRuns: 1000 },
    );
  });

  it('waits no less after a later attempt, before jitter', () => {
    const multiplier = fc.double({ min: 1, max: 20, noNaN: true });
    fc.assert(
      fc.property(entity, multiplier, attempts, (fields, backoffMultiplier, more) => {
        const input = {
          ...fields,
          backoffMultiplier,
          lastAttemptTime: iso(0),
          currentTime: iso(0),
        };
        const later = { ...input, attemptCount: fields.attemptCount + more };
        expect(delayAt(later, 0)).toBeGreaterThanOrEqual(delayAt(input, 0));
      }),
    );
  });

  it('spreads the entities evenly over the jitter', () => {
    const input = {
      lastAttemptTime: iso(0),
      currentTime: iso(0),
      retryDelaySeconds: 1000,
      attemptCount: 1,
    };
    const buckets = Array.from({ length: 10 }, () => 0);
    for (let id = 0; id < 10_000; id++) {
      const { delayMs } = isRetryDelayElapsed({ ...input, entityId: `entity-${id}` });
      const bucket = Math.floor(((delayMs ?? Number.NaN) - 1_000_000) / 10_000);
      buckets[bucket] = (buckets[bucket] ?? Number.NaN) + 1;
    }
    // 1000 expected in each; 5 standard deviations are about 150.
    for (const size of buckets) expect(Math.abs(size - 1000)).toBeLessThan(150);
  });
});
