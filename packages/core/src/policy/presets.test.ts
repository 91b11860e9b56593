import { describe, expect, expectTypeOf, it } from 'vitest';
import { delayFor } from './backoff.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import { presets } from './presets.ts';

const { categories } = presets;
const CRITERION_HAS_NO_LIMIT = 1_000_000_000;

describe('the presets, row by row', () => {
  it.each([
    ['default', 4, 200, 30_000, 2, { jitter: 'full' }],
    ['scheduler', 4, 2000, 60_000, 2, { jitter: 'add', jitterAdd: 1000 }],
    ['notification.critical', 11, 10_000, 300_000, 2, { jitter: 'up', jitterRatio: 0.3 }],
    ['notification.high', 9, 30_000, 900_000, 2, { jitter: 'up', jitterRatio: 0.3 }],
    ['notification.medium', 6, 120_000, 3_600_000, 2, { jitter: 'up', jitterRatio: 0.3 }],
    ['notification.low', 4, 300_000, 7_200_000, 2, { jitter: 'up', jitterRatio: 0.3 }],
    ['criterion', CRITERION_HAS_NO_LIMIT, 60_000, 3_600_000, 2, { jitter: 'up', jitterRatio: 0.1 }],
    ['fallback', 2, 100, 5000, 2, { jitter: 'up', jitterRatio: 0.1, hardCap: true }],
  ] as const)(
    '%s: %d attempts, base %d, cap %d, times %d, %o',
    (name, maxAttempts, base, cap, multiplier, jitter) => {
      expect(presets[name]).toMatchObject({
        strategy: 'exponential',
        maxAttempts,
        base,
        cap,
        multiplier,
        hardCap: false,
        ...jitter,
      });
    },
  );

  it.each([
    ['default', 60_000, ['transient', 'unknown']],
    ['scheduler', 86_400_000, ['transient']],
    ['notification.critical', 86_400_000, ['transient', 'unknown']],
    ['notification.high', 86_400_000, ['transient', 'unknown']],
    ['notification.medium', 86_400_000, ['transient', 'unknown']],
    ['notification.low', 86_400_000, ['transient', 'unknown']],
    ['criterion', 86_400_000, ['transient']],
    ['fallback', 60_000, ['transient', 'unknown']],
  ] as const)(
    '%s waits up to %d ms for a server, and retries %o',
    (name, maxRetryAfter, retryOn) => {
      expect(presets[name]).toMatchObject({ maxRetryAfter, retryOn, maxUncounted: 10 });
    },
  );

  it('has no other row', () => {
    expect(Object.keys(presets)).toEqual([
      'default',
      'scheduler',
      'notification.critical',
      'notification.high',
      'notification.medium',
      'notification.low',
      'criterion',
      'fallback',
      'category',
      'categories',
    ]);
  });

  it.each([
    ['default', '092c3cca06e746c5'],
    ['scheduler', 'c02f4bca38c02647'],
    ['notification.critical', '3162b01d50c3eb37'],
    ['notification.high', '7faf0fc0b89a805d'],
    ['notification.medium', '2d7d3e4004be6ee8'],
    ['notification.low', '89200f5eb148aa93'],
    ['criterion', '689cd41867ec56d6'],
    ['fallback', '66eb35252f00222a'],
  ] as const)('%s has the fingerprint %s for ever', (name, fingerprint) => {
    expect(presets[name].fingerprint).toBe(fingerprint);
  });

  it('default is what one gets without a policy', () => {
    expect(presets.default).toEqual(definePolicy());
  });

  it('cannot be changed by anyone', () => {
    expect(Object.isFrozen(presets)).toBe(true);
    expect(Object.isFrozen(categories)).toBe(true);
    for (const policy of [presets.default, categories.KV_GET]) {
      expect(Object.isFrozen(policy)).toBe(true);
      expect(Object.isFrozen(policy.retryOn)).toBe(true);
    }
  });
});

describe('the 17 categories, row by row', () => {
  const rows = [
    ['NATS_CONNECT', 5, 1, 30],
    ['NATS_PUBLISH', 3, 0.5, 10],
    ['NATS_SUBSCRIBE', 3, 0.5, 10],
    ['KV_GET', 3, 0.5, 10],
    ['KV_PUT', 3, 0.5, 10],
    ['NATS_STREAM_CREATE', 2, 2, 60],
    ['EXECUTION_INTENT', 2, 2, 60],
    ['EXECUTION_CONTAINMENT', 2, 2, 60],
    ['APPROVAL_GRANT', 2, 2, 60],
    ['KV_CREATE', 2, 1, 30],
    ['KV_DELETE', 2, 1, 30],
    ['REPLAY_VALIDATION', 2, 1, 30],
    ['EXECUTION_EXPIRATION', 1, 1, 30],
    ['REPLAY_PROCESSING', 1, 1, 30],
    ['APPROVAL_CHECK', 3, 1, 30],
    ['API_REQUEST', 3, 1, 30],
    ['API_VALIDATION', 2, 0.5, 10],
  ] as const;

  it.each(rows)('%s: %d attempts, base %d s, cap %d s', (name, maxAttempts, base, cap) => {
    expect(categories[name]).toMatchObject({
      strategy: 'exponential',
      maxAttempts,
      base: base * 1000,
      cap: cap * 1000,
      multiplier: 2,
      jitter: 'around',
      jitterRatio: 0.1,
      hardCap: false,
      retryOn: ['any'],
      neverOn: [],
    });
  });

  it('are 17, and no other', () => {
    expect(Object.keys(categories).sort()).toEqual(rows.map(([name]) => name).sort());
    expect(rows).toHaveLength(17);
  });

  it('give the delay of the document: base 0.5 s, after attempt 2, around 1 s', () => {
    const delays = [0, 0.5, 0.9999].map((random) =>
      delayFor(categories.NATS_PUBLISH, { attempt: 2, random }),
    );
    expect(delays).toEqual([900, 1000, 1099]);
  });

  it('are typed by name', () => {
    expectTypeOf<keyof typeof categories>().toEqualTypeOf<(typeof rows)[number][0]>();
    expectTypeOf(categories.KV_GET).toEqualTypeOf<DefinedPolicy>();
  });
});
