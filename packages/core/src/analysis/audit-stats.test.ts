import { describe, expect, it } from 'vitest';
import type { AuditEvent } from '../audit/audit-events.ts';
import { definePolicy } from '../policy/policy.ts';
import { auditStats, createAuditStats } from './audit-stats.ts';
import { madeTrail, START_MS } from './made-trail.test.ts';

let clockMs = START_MS;

function event(type: string, fields: object = {}): AuditEvent {
  clockMs += 1000;
  return {
    event_type: type,
    retry_category: 'API',
    operation: 'get',
    attempt_number: 1,
    max_attempts: 3,
    delay_seconds: 1,
    exception_type: 'Error',
    timestamp: new Date(clockMs).toISOString(),
    ...fields,
  };
}

async function one(events: readonly unknown[], options = {}) {
  const { categories } = await auditStats(events, options);
  expect(categories).toHaveLength(1);
  return categories[0]!;
}

describe('statistics of a trail', () => {
  it('count attempts, retries, and how work ended', async () => {
    const stats = await one([
      event('retry_succeeded'),
      event('retry_attempt'),
      event('retry_succeeded', { attempt_number: 2 }),
      event('retry_attempt'),
      event('retry_attempt', { attempt_number: 2 }),
      event('retry_exhausted', {
        attempt_number: undefined,
        total_attempts: 3,
        final_exception_type: 'Late',
      }),
      event('retry_abandoned', { reason: 'non_retryable' }),
    ]);
    expect(stats).toMatchObject({
      attempts: 7,
      failures: 5,
      retries: 3,
      succeeded: 2,
      successRate: 0.5,
      recoveryRate: 0.5,
      meanAttempts: 7 / 4,
      meanAttemptsOf: 'all',
      exhausted: 1,
      ends: [
        { reason: 'exhausted', count: 1 },
        { reason: 'non_retryable', count: 1 },
      ],
      errors: [
        { type: 'Error', count: 4 },
        { type: 'Late', count: 1 },
      ],
      maxAttempts: 3,
      policy: null,
    });
    expect(stats.byAttempt).toEqual([
      { attempt: 1, executed: 4, failed: 3, helped: 0, meanDelayMs: 1000, waitedMs: 0 },
      { attempt: 2, executed: 2, failed: 1, helped: 1, meanDelayMs: 1000, waitedMs: 1000 },
      { attempt: 3, executed: 1, failed: 1, helped: 0, meanDelayMs: 0, waitedMs: 2000 },
    ]);
  });

  it('do not know the success rate where successes are not written, but what recovered', async () => {
    const works = (attempt: number) => attempt === 2;
    const policy = { maxAttempts: 3, base: 100, jitter: 'none' } as const;
    const stats = await one(madeTrail({ policy, work: 10, works }));
    expect(stats).toMatchObject({
      succeeded: null,
      successRate: null,
      recoveryRate: 1,
      meanAttempts: 2,
      meanAttemptsOf: 'failed',
      waiting: 1,
      recoveredWithinMs: { p50: 100, p90: 100, p99: 100 },
    });
    expect(stats.byAttempt[0]!.executed).toBeNull();
    expect(stats.policy).toEqual(definePolicy(policy));
  });

  it('take what is not due yet for waiting, not for recovered', async () => {
    const far = { delay_seconds: 3600 };
    const stats = await one([
      event('retry_attempt', far),
      event('retry_attempt', far),
      event('retry_postponed'),
    ]);
    expect(stats).toMatchObject({
      waiting: 2,
      recoveryRate: null,
      recoveredWithinMs: null,
      postponed: 1,
    });
    expect(stats.byAttempt).toHaveLength(1);
  });

  it('take a message that came back to its broker for a failure, not for a success', async () => {
    const queue = { operation: 'queue:orders' };
    const subject = { operation: 'anything', redrive: { lane: 'nats:orders' } };
    expect(
      await one([
        event('retry_succeeded', subject),
        event('retry_exhausted', { ...subject, total_attempts: 1 }),
      ]),
    ).toMatchObject({ succeeded: 0, successRate: 0 });
    const second = { ...queue, attempt_number: 2 };
    const stats = await one([
      event('retry_attempt', queue),
      event('retry_succeeded', second),
      event('retry_attempt', second),
      event('retry_rearmed', { ...queue, attempt_number: 3 }),
      event('retry_exhausted', { ...queue, total_attempts: 3 }),
      event('retry_attempt', queue),
      event('retry_succeeded', second),
    ]);
    expect(stats).toMatchObject({ succeeded: 1, successRate: 0.5 });
    expect(stats.byAttempt.map(({ executed }) => executed)).toEqual([2, 2, 1]);
  });

  it('count no failure twice for work that expired while it waited', async () => {
    const stats = await one([
      event('retry_attempt', { delay_seconds: 0 }),
      event('retry_abandoned', { reason: 'expired' }),
      event('retry_attempt', { delay_seconds: 0 }),
      event('retry_abandoned', { reason: 'circuit_open', attempt_number: 2 }),
    ]);
    expect(stats).toMatchObject({ failures: 2, recoveryRate: 0, meanAttempts: 1 });
    expect(stats.byAttempt).toHaveLength(1);
  });

  it('are per category, or per operation', async () => {
    const events = [
      event('retry_attempt'),
      event('retry_attempt', { operation: 'put' }),
      event('retry_attempt', { retry_category: 'KV' }),
    ];
    const byCategory = await auditStats(events);
    expect(byCategory.categories.map(({ category, retries }) => [category, retries])).toEqual([
      ['API', 2],
      ['KV', 1],
    ]);
    const { categories } = await auditStats(events, { by: 'operation' });
    expect(categories.map(({ category, retries }) => [category, retries])).toEqual([
      ['get', 2],
      ['put', 1],
    ]);
  });

  it('measure retries per minute over the trail, and the peak', async () => {
    clockMs = START_MS;
    const events = Array.from({ length: 120 }, () => event('retry_attempt'));
    // Two minutes of silence.
    clockMs += 120_000;
    const { categories, stepMs, fromMs, toMs } = await auditStats([
      ...events,
      event('operator_action'),
    ]);
    expect(stepMs).toBe(1000);
    expect(toMs! - fromMs!).toBe(240_000);
    expect(categories[0]).toMatchObject({ retriesPerMinute: 30, peakRetriesPerMinute: 60 });
    expect(categories[0]!.load).toHaveLength(241);
  });

  it('keep counts in their place when the steps become wider', async () => {
    clockMs = START_MS;
    const events = [event('retry_attempt'), event('retry_attempt')];
    clockMs += 1000 * 1000;
    events.push(event('retry_attempt'));
    const { categories, loadFromMs, stepMs } = await auditStats(events);
    expect(stepMs).toBe(4000);
    expect(loadFromMs).toBeLessThanOrEqual(START_MS + 1000);
    const { load } = categories[0]!;
    expect(load).toHaveLength(251);
    expect([load[0], load.at(-1)]).toEqual([2, 1]);
  });

  it('of a moment are per minute all the same', async () => {
    expect(await one([event('retry_attempt')])).toMatchObject({
      retriesPerMinute: 1,
      peakRetriesPerMinute: 1,
    });
  });

  it('leave out what lies before or after the time asked for, but take its policies', async () => {
    const policy = { maxAttempts: 3, base: 100, jitter: 'none' } as const;
    const events = madeTrail({ policy, work: 10, works: () => false });
    const fromMs = START_MS + 5000;
    const stats = await one(events, { fromMs, toMs: fromMs + 2000 });
    expect(stats).toMatchObject({ exhausted: 2, retries: 4 });
    expect(stats.policy?.fingerprint).toBe(definePolicy(policy).fingerprint);
  });

  it('tell of what cannot be read, and of what was dropped', async () => {
    const odd = [
      undefined,
      7,
      {},
      event('retry_attempt', { timestamp: 'yesterday' }),
      event('retry_attempt', { attempt_number: 0 }),
      event('retry_attempt', { attempt_number: -1 }),
      event('retry_attempt', { attempt_number: '1' }),
      event('retry_attempt', { retry_category: null }),
      { ...event('policy_registered'), policy: 'x', definition: { maxAttempts: 0 } },
      { ...event('policy_registered'), policy: 'y', definition: {} },
    ];
    const getter = {
      get base() {
        throw new RangeError('no');
      },
    };
    odd.push({ ...event('policy_registered'), policy: 'z', definition: getter });
    const dropped = [12, -3, 'many'].map((count) => event('events_dropped', { count }));
    const report = await auditStats([...odd, ...dropped]);
    expect(report).toMatchObject({ events: 14, unreadable: 11, dropped: 12 });
    expect(await auditStats([])).toMatchObject({ events: 0, fromMs: null, categories: [] });
  });

  it('take a wait that is none for no wait', async () => {
    const stats = await one([
      event('retry_attempt', { delay_seconds: -5 }),
      event('retry_attempt', { delay_seconds: 1e300 }),
      event('retry_postponed'),
    ]);
    expect(stats).toMatchObject({ waiting: 0, byAttempt: [{ meanDelayMs: 0 }, { helped: 2 }] });
  });

  it('know the policies that are handed in', async () => {
    const policy = definePolicy({ maxAttempts: 7 });
    const decided = event('retry_attempt', { redrive: { policy: policy.fingerprint } });
    expect((await one([decided], { policies: [policy] })).policy).toBe(policy);
  });

  it('count the attempts after the sixty-fourth as that one', async () => {
    const stats = await one([
      event('retry_attempt', { attempt_number: 64 }),
      event('retry_attempt', { attempt_number: 1e9, max_attempts: 2 ** 53 - 1 }),
    ]);
    expect(stats.byAttempt.at(-1)).toMatchObject({ attempt: 64, failed: 2 });
    expect(stats.maxAttempts).toBe(1e9);
  });
});

describe('memory', () => {
  it('is bounded, whatever categories, errors and times there are', () => {
    const fold = createAuditStats();
    for (let i = 0; i < 3000; i++) {
      fold.add(
        event('retry_attempt', {
          retry_category: `c${i}`,
          exception_type: `E${i}`,
          timestamp: new Date(START_MS + i * 3_600_000).toISOString(),
        }),
      );
      fold.add(event('retry_attempt', { retry_category: '__proto__', exception_type: `E${i}` }));
    }
    const { categories, stepMs } = fold.report();
    expect(categories).toHaveLength(1001);
    expect(categories.find(({ category }) => category === '(other)')?.retries).toBe(2001);
    const proto = categories.find(({ category }) => category === '__proto__')!;
    expect(proto.retries).toBe(3000);
    expect(proto.errors).toHaveLength(20);
    expect(proto.errors[0]).toEqual({ type: '(other)', count: 3000 - 64 });
    expect(proto.load.length).toBeLessThanOrEqual(256);
    expect(stepMs).toBe(1000 * 2 ** 16);
    expect(categories.every(({ load }) => load.length === proto.load.length)).toBe(true);
  });

  it('holds a hundred thousand waits at most, and ten thousand policies', () => {
    const fold = createAuditStats();
    for (let i = 0; i < 250_000; i++) {
      fold.add({
        event_type: 'retry_attempt',
        retry_category: 'API',
        attempt_number: 1,
        delay_seconds: 1e6,
        timestamp: '2026-01-01T00:00:00.000Z',
      });
    }
    const [stats] = fold.report().categories;
    expect(stats!.retries).toBe(250_000);
    expect(stats!.waiting).toBeGreaterThanOrEqual(100_000);
    expect(stats!.waiting).toBeLessThan(250_000);

    const many = createAuditStats();
    const policies = [1, 10_001].map((maxAttempts) => definePolicy({ maxAttempts }));
    const timestamp = '2026-01-01T00:00:00.000Z';
    for (let maxAttempts = 1; maxAttempts <= 10_001; maxAttempts++) {
      const definition = definePolicy({ maxAttempts });
      many.add({
        event_type: 'policy_registered',
        policy: definition.fingerprint,
        definition,
        timestamp,
      });
    }
    for (const { fingerprint, maxAttempts } of policies) {
      const redrive = { policy: fingerprint };
      many.add(event('retry_attempt', { retry_category: `${maxAttempts}`, redrive }));
    }
    const found = many
      .report()
      .categories.map(({ category, policy }) => [category, policy === null]);
    expect(found).toEqual([
      ['1', false],
      ['10001', true],
    ]);
  });

  it('holds only what waits', () => {
    const fold = createAuditStats();
    for (let i = 0; i < 200_000; i++) {
      fold.add({
        event_type: 'retry_attempt',
        retry_category: 'API',
        attempt_number: 1,
        delay_seconds: 1,
        timestamp: new Date(START_MS + i * 10).toISOString(),
      });
    }
    const [stats] = fold.report().categories;
    // Those of the last second.
    expect(stats).toMatchObject({ retries: 200_000, waiting: 100 });
  });
});
