import { describe, expect, it } from 'vitest';
import { seededRandom, unitRandom } from '../policy/random.ts';
import { isRetryDelayElapsed } from './elapsed.ts';

const SYSTEM_TIME = '2026-01-25T21:20:00.000Z';

type Entity = Readonly<Record<string, unknown>>;

/**
 * The criterion from the text of its specification alone: its algorithm, its handling of absent data and its
 * recovery from errors, read literally where the text leaves something open. `random` is the random service.
 * Its delays are seconds with a fraction, or where that point is settled whole ms.
 */
function oracle(entity: Entity, random: number, inWholeMs = false): boolean {
  const second = inWholeMs ? 1000 : 1;
  const given = (name: string, missing: unknown): unknown => entity[name] ?? missing;
  // Missing lastAttemptTime defaults to false evaluation. Missing currentTime uses system time.
  const lastAttemptTime = given('lastAttemptTime', undefined);
  const currentTime = given('currentTime', SYSTEM_TIME);
  if (lastAttemptTime === undefined) return false;
  // INVALID_TIME: time format or value validation errors. Default to false evaluation on timing errors.
  const last = isoTimestamp(lastAttemptTime);
  const current = isoTimestamp(currentTime);
  if (Number.isNaN(last) || Number.isNaN(current)) return false;
  const timeSinceLastAttempt = (current - last) / (1000 / second);

  // Missing retryDelaySeconds defaults to 60 seconds. Use default delay for invalid retryDelaySeconds.
  const delay = given('retryDelaySeconds', 60);
  const retryDelaySeconds = typeof delay === 'number' && delay >= 0 ? delay : 60;
  // Missing attemptCount defaults to 1. The other defaults are the configuration's.
  const attemptCount = given('attemptCount', 1);
  const backoffMultiplier = given('backoffMultiplier', 2);
  const maxDelaySeconds = given('maxDelaySeconds', 3600);

  let calculatedDelay: number;
  if (given('exponentialBackoff', true) === true) {
    const numbers = [attemptCount, backoffMultiplier, maxDelaySeconds];
    // CALCULATION_ERROR: delay calculation failures.
    if (!numbers.every((one) => typeof one === 'number')) return false;
    const [attempt, multiplier, max] = numbers as [number, number, number];
    calculatedDelay = retryDelaySeconds * second * multiplier ** (attempt - 1);
    // OVERFLOW_ERROR: delay calculation overflow.
    if (!Number.isFinite(calculatedDelay)) return false;
    if (calculatedDelay > max * second) calculatedDelay = max * second;
  } else calculatedDelay = retryDelaySeconds * second;

  if (given('jitterEnabled', true) === true) {
    const jitterAmount = random * (calculatedDelay * 0.1);
    calculatedDelay = calculatedDelay + jitterAmount;
  }
  return timeSinceLastAttempt >= (inWholeMs ? Math.ceil(calculatedDelay) : calculatedDelay);
}

function isoTimestamp(value: unknown): number {
  if (typeof value !== 'string') return Number.NaN;
  // A timestamp is a point in time, so it names its zone.
  const match = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?Z$/.exec(value);
  const ms = match ? Date.parse(value) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(match![1]!) ? ms : Number.NaN;
}

const whole = (value: unknown): value is number => Number.isInteger(value);
const positive = (value: unknown): boolean =>
  typeof value === 'number' && Number.isFinite(value) && value > 0;
const missing = (value: unknown): boolean => value === undefined || value === null;
const zoneless = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/;

/**
 * The points on which the text is open or contradicts itself, and how each was settled: as a change of the
 * entity into one that both read alike.
 */
const settled: Readonly<Record<string, (entity: Entity) => Entity>> = {
  'a fraction of a second is an invalid retryDelaySeconds: the default': (entity) => {
    const { retryDelaySeconds: delay } = entity;
    return typeof delay === 'number' && !whole(delay)
      ? { ...entity, retryDelaySeconds: 60 }
      : entity;
  },
  'an attemptCount that is no whole number from 1 on is 1': (entity) => {
    const { attemptCount: count } = entity;
    return missing(count) || (whole(count) && count >= 1) ? entity : { ...entity, attemptCount: 1 };
  },
  'exponentialBackoff that is no boolean is the configured one': (entity) =>
    typeof entity['exponentialBackoff'] === 'boolean' || missing(entity['exponentialBackoff'])
      ? entity
      : { ...entity, exponentialBackoff: true },
  'jitterEnabled that is no boolean is the configured one': (entity) =>
    typeof entity['jitterEnabled'] === 'boolean' || missing(entity['jitterEnabled'])
      ? entity
      : { ...entity, jitterEnabled: true },
  'a multiplier that is not positive is the default': (entity) =>
    missing(entity['backoffMultiplier']) || positive(entity['backoffMultiplier'])
      ? entity
      : { ...entity, backoffMultiplier: 2 },
  'a cap that is not positive is the default': (entity) =>
    missing(entity['maxDelaySeconds']) || positive(entity['maxDelaySeconds'])
      ? entity
      : { ...entity, maxDelaySeconds: 3600 },
  'a time without a zone is UTC': (entity) => {
    const zoned = (value: unknown): unknown =>
      typeof value === 'string' && zoneless.test(value) ? `${value}Z` : value;
    const { lastAttemptTime, currentTime } = entity;
    return {
      ...entity,
      lastAttemptTime: zoned(lastAttemptTime),
      currentTime: zoned(currentTime),
    };
  },
  'zero delay is over at once, whatever overflows': (entity) =>
    entity['retryDelaySeconds'] === 0 ? { ...entity, exponentialBackoff: false } : entity,
  // The last, since it looks at numbers that the others have settled.
  'an overflow is the cap': (entity) => {
    const { retryDelaySeconds, attemptCount, backoffMultiplier, maxDelaySeconds } = entity;
    const base = whole(retryDelaySeconds) && retryDelaySeconds >= 0 ? retryDelaySeconds : 60;
    const power = Number(backoffMultiplier ?? 2) ** (Number(attemptCount ?? 1) - 1);
    const overflows = base > 0 && base * 1000 * power === Infinity;
    return overflows && (entity['exponentialBackoff'] ?? true) === true
      ? { ...entity, exponentialBackoff: false, retryDelaySeconds: maxDelaySeconds ?? 3600 }
      : entity;
  },
};
const JITTER = 'jitter is the same however often it is asked for';
const ROUNDING = 'the delay is whole ms, rounded up';
const names = [...Object.keys(settled), JITTER, ROUNDING];

/** The oracle with these points settled. */
function settledOracle(entity: Entity, points: readonly string[], random: number): boolean {
  const changed = points.reduce((one, name) => settled[name]?.(one) ?? one, entity);
  const draw = points.includes(JITTER) ? ownDraw(entity) : random;
  return oracle(changed, draw, points.includes(ROUNDING));
}

/** The random number that belongs to the entity and its attempt. */
function ownDraw({ id, attemptCount: count }: Entity): number {
  return unitRandom(0, id as string, whole(count) && count >= 1 ? count : 1);
}

const T0 = Date.parse('2026-01-25T21:15:00.000Z');

/** Entities as they come: most in order, some with one odd field, a few with many. */
function entities(seed: number): () => Entity {
  const random = seededRandom(seed);
  const pick = <T>(...of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const mostly = (usual: () => unknown, ...odd: readonly unknown[]): unknown =>
    random() < 0.93 ? usual() : pick(null, undefined, ...odd);
  const oddities = ['3', true, {}, -1, 0, 1.5, 2.25, Number.NaN];
  let count = 0;
  return () => {
    const retryDelaySeconds = mostly(() => pick(0, 1, 5, 30, 60, 61, 300, 4000), ...oddities);
    const attemptCount = mostly(() => pick(1, 1, 2, 3, 4, 5, 8, 13), 5000, ...oddities);
    const backoffMultiplier = mostly(() => pick(1, 1.5, 2, 2, 3, 0.5, 1.1), ...oddities);
    const maxDelaySeconds = mostly(() => pick(1, 60, 100, 3600, 86_400), ...oddities);
    const exponentialBackoff = mostly(() => random() < 0.7, 'true', 'false', 1, 0, {});
    const jitterEnabled = mostly(() => random() < 0.5, 'true', 'false', 1, 0, {});
    // Near the delay that is probable, and often at it to the ms.
    const base = Number(retryDelaySeconds ?? 60) || 60;
    const grown = base * Number(backoffMultiplier ?? 2) ** (Number(attemptCount ?? 1) - 1);
    const probable = Math.min(exponentialBackoff === false ? base : grown, 3600);
    const near = probable > 0 ? probable : 60;
    const factor = pick(1, 1, 1.05, 0.5, 0.99, 1.02, 1.08, 1.2, 3, -0.5);
    const elapsedMs = Math.round(near * 1000 * factor) + pick(0, 0, -1, 1);
    const time = (ms: number): unknown =>
      mostly(
        () => new Date(ms).toISOString(),
        new Date(ms).toISOString().slice(0, -1),
        'noon',
        '2026-02-30T00:00:00Z',
        ms,
      );
    return {
      id: `entity-${++count}`,
      lastAttemptTime: time(T0),
      currentTime: time(T0 + elapsedMs),
      retryDelaySeconds,
      attemptCount,
      exponentialBackoff,
      backoffMultiplier,
      maxDelaySeconds,
      jitterEnabled,
    };
  };
}

describe('isRetryDelayElapsed and an oracle from the text of the specification', () => {
  it('agree on 100 000 entities but for the settled points', () => {
    const nowMs = (): number => Date.parse(SYSTEM_TIME);
    const next = entities(1);
    const random = seededRandom(2);
    const counts: Record<string, number> = { agreed: 0, matched: 0, 'several points': 0 };
    for (const name of names) counts[name] = 0;
    for (let i = 0; i < 100_000; i++) {
      const entity = next();
      const draw = random();
      const { matches } = isRetryDelayElapsed(entity, null, { nowMs });
      if (matches) counts['matched']! += 1;
      // With every point settled they agree, always.
      if (settledOracle(entity, names, draw) !== matches) {
        throw new Error(`They disagree on ${JSON.stringify(entity)}`);
      }
      if (oracle(entity, draw) === matches) {
        counts['agreed']! += 1;
        continue;
      }
      // The reason is the point without which they disagree.
      const reasons = names.filter((name) => {
        const others = names.filter((one) => one !== name);
        return settledOracle(entity, others, draw) !== matches;
      });
      counts[reasons.length === 1 ? reasons[0]! : 'several points']! += 1;
    }
    expect(counts).toEqual({
      agreed: 90_712,
      matched: 54_982,
      'a fraction of a second is an invalid retryDelaySeconds: the default': 392,
      'an attemptCount that is no whole number from 1 on is 1': 1013,
      'exponentialBackoff that is no boolean is the configured one': 893,
      'jitterEnabled that is no boolean is the configured one': 522,
      'a multiplier that is not positive is the default': 849,
      'a cap that is not positive is the default': 720,
      'a time without a zone is UTC': 1195,
      'zero delay is over at once, whatever overflows': 14,
      'an overflow is the cap': 105,
      'jitter is the same however often it is asked for': 2532,
      'the delay is whole ms, rounded up': 4,
      'several points': 1049,
    });
  });
});
