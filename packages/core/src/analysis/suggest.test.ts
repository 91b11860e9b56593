import { describe, expect, it } from 'vitest';
import { delayFor } from '../policy/backoff.ts';
import { auditStats } from './audit-stats.ts';
import { type MadeTrail, madeTrail } from './made-trail.test.ts';
import { simulateSuggestion, suggestPolicy } from './suggest.ts';

async function suggested(made: MadeTrail) {
  const { categories } = await auditStats(madeTrail(made));
  return { stats: categories[0]!, ...suggestPolicy(categories[0]!) };
}

describe('a suggested policy', () => {
  for (const successes of [true, false]) {
    describe(`with successes in the trail: ${successes}`, () => {
      it('ends with the last attempt that helps', async () => {
        // Half of the work recovers with the second attempt, a quarter with the third, the rest never.
        const works = (attempt: number, _: number, random: number) =>
          attempt > 1 && attempt < 4 && random < 0.5;
        const found = await suggested({
          policy: { maxAttempts: 8, base: 100 },
          work: 400,
          works,
          successes,
        });
        expect(found.verdict).toBe('change');
        expect(found.suggested).toMatchObject({ maxAttempts: 3, base: 100, cap: 30_000 });
        expect(found.changes).toEqual([{ field: 'maxAttempts', from: 8, to: 3 }]);
        expect(found.reasons).toEqual(['After attempt 3 no retry helped.']);
      });

      it('begins when the outage is over, and lasts as long as before', async () => {
        // Every outage lasts half a minute: attempts at 0.2 s, 0.6 s, ... 25.4 s are in vain, that at 51 s works.
        const policy = { maxAttempts: 10, base: 200, cap: 60_000, jitter: 'none' } as const;
        const works = (_: number, waitedMs: number) => waitedMs >= 30_000;
        const { suggested: policyFound, stats } = await suggested({
          policy,
          work: 100,
          works,
          successes,
        });
        expect(policyFound).toMatchObject({ maxAttempts: 3, base: 51_000, cap: 60_000 });
        expect(stats.recoveredWithinMs).toEqual({ p50: 51_000, p90: 51_000, p99: 51_000 });
      });

      it('has as many attempts as leave hardly anything over', async () => {
        // Three of ten attempts fail, whenever they are made: 0.3^4 is below one percent.
        const works = (_: number, _1: number, random: number) => random >= 0.3;
        const found = await suggested({
          policy: { maxAttempts: 3, base: 100 },
          work: 5000,
          works,
          successes,
        });
        expect(found.suggested?.maxAttempts).toBe(5);
        expect(found.reasons[0]).toMatch(
          /^\d+(\.\d)? % of the work is left over when its attempts are used up, and attempt 3 still helps \d+(\.\d)? % of it\.$/,
        );
      });

      it('is none where retries never help: one attempt', async () => {
        const found = await suggested({ policy: {}, work: 50, works: () => false, successes });
        expect(found.suggested?.maxAttempts).toBe(1);
        expect(found.reasons[0]).toMatch(/^None of 150 retries helped\./);
      });

      it('is the present one where every attempt helps and nothing is left over', async () => {
        const works = (attempt: number, _: number, random: number) => attempt > 1 && random >= 0.3;
        const found = await suggested({
          policy: { maxAttempts: 9, base: 100 },
          work: 400,
          works,
          successes,
        });
        expect(found).toMatchObject({ verdict: 'keep', changes: [], isMeasured: false });
        expect(found.suggested).toBeUndefined();
      });
    });
  }

  it('is unknown where too little was retried', async () => {
    const found = await suggested({ policy: {}, work: 29, works: () => false });
    expect(found.verdict).toBe('unknown');
    expect(found.reasons).toEqual([
      'Only 29 first retries are in the trail: at least 30 are needed.',
    ]);
    const more = await suggested({ policy: {}, work: 30, works: () => false });
    expect(more.verdict).toBe('change');
  });

  it('is unknown while work waits for an attempt that may help', async () => {
    // The trail ends before anybody makes the third attempt.
    const policy = { maxAttempts: 6, schedule: [10, 3_600_000], jitter: 'none' } as const;
    const events = madeTrail({ policy, work: 60, works: (attempt) => attempt === 3 });
    const begun = events.filter((event) => event['attempt_number'] !== 3);
    const { categories } = await auditStats(begun);
    expect(categories[0]).toMatchObject({ waiting: 60 });
    expect(suggestPolicy(categories[0]!)).toMatchObject({
      verdict: 'unknown',
      reasons: ['No retry up to attempt 2 helped, and work still waits for the next one.'],
    });
  });

  it('keeps later attempts while work waits for them', async () => {
    const policy = { maxAttempts: 6, schedule: [10, 10, 3_600_000], jitter: 'none' } as const;
    const works = (attempt: number, _: number, random: number) =>
      attempt === 2 ? random < 0.5 : attempt === 4;
    const { categories } = await auditStats(madeTrail({ policy, work: 200, works }));
    expect(categories[0]!.byAttempt).toHaveLength(3);
    expect(suggestPolicy(categories[0]!).verdict).toBe('keep');
  });

  it('does not drop attempts that too few reached to tell', async () => {
    // Attempt 3 was made 20 times and never helped: that shows nothing.
    const works = (attempt: number, _: number, random: number) => attempt === 2 && random > 0.05;
    const found = await suggested({ policy: { maxAttempts: 3, base: 10 }, work: 200, works });
    expect(found.verdict).toBe('keep');
  });

  it('does not add attempts where the last one hardly helps', async () => {
    const works = (attempt: number, _: number, random: number) => attempt > 1 && random < 0.03;
    const found = await suggested({ policy: { maxAttempts: 3, base: 10 }, work: 3000, works });
    expect(found.verdict).toBe('keep');
    expect(found.reasons[0]).toMatch(/more attempts are not the answer\.$/);
  });

  it('keeps what the jitter makes of a wait', async () => {
    const works = (_: number, waitedMs: number) => waitedMs >= 1000;
    for (const jitter of ['full', 'equal', 'up', 'around', 'add', 'decorrelated'] as const) {
      const policy = { maxAttempts: 12, base: 20, jitter } as const;
      const { suggested: found, stats } = await suggested({ policy, work: 300, works });
      const first = stats.byAttempt.find(({ attempt, helped, executed }) => {
        return attempt > 1 && helped >= 0.01 * executed!;
      })!;
      if (first.attempt === 2) continue;
      const mean = delayFor(found!, { attempt: 1 });
      expect(mean / first.waitedMs, jitter).toBeGreaterThan(0.95);
      expect(mean / first.waitedMs, jitter).toBeLessThan(1.3);
    }
  });

  it('is unknown where there were no attempts at all', async () => {
    const postponed = {
      event_type: 'retry_postponed',
      retry_category: 'API',
      attempt_number: 1,
      timestamp: '2026-01-01T00:00:00Z',
    };
    const { categories } = await auditStats([postponed]);
    expect(suggestPolicy(categories[0]!)).toMatchObject({
      verdict: 'unknown',
      present: { maxAttempts: 1, schedule: [0] },
      reasons: ['Only 0 first retries are in the trail: at least 30 are needed.'],
    });
  });

  it('adds one attempt where the last one always helps, and work is left over all the same', async () => {
    const policy = { maxAttempts: 2, base: 10 } as const;
    const { stats } = await suggested({ policy, work: 100, works: (attempt) => attempt === 2 });
    expect(suggestPolicy({ ...stats, exhausted: 50 }).suggested?.maxAttempts).toBe(3);
  });

  it('is made from the measured waits, where the trail does not have the policy', async () => {
    const policy = { maxAttempts: 10, base: 200, cap: 60_000, jitter: 'none' } as const;
    const works = (_: number, waitedMs: number) => waitedMs >= 3000;
    const found = await suggested({ policy, work: 100, works, strict: true });
    expect(found.isMeasured).toBe(true);
    expect(found.present).toMatchObject({
      maxAttempts: 10,
      strategy: 'schedule',
      schedule: [200, 400, 800, 1600],
    });
    // 200 + 400 + 800 + 1600 = 3000 ms: attempt 5.
    expect(found.suggested).toMatchObject({ schedule: [3000, 1600], maxAttempts: 7, cap: 3000 });
  });

  it('of a schedule drops the waits that do not help', async () => {
    const policy = { maxAttempts: 5, schedule: [10, 20, 3000, 4000], jitter: 'none' } as const;
    const works = (_: number, waitedMs: number) => waitedMs >= 3000;
    const { suggested: found } = await suggested({ policy, work: 60, works });
    expect(found).toMatchObject({ schedule: [3100, 4000], maxAttempts: 3 });
  });
});

describe('a suggestion in the simulator', () => {
  it('wastes less than the present policy in the outage that was measured', async () => {
    const policy = { maxAttempts: 10, base: 200, cap: 60_000, jitter: 'equal' } as const;
    const works = (_: number, waitedMs: number) => waitedMs >= 10_000;
    const { stats, ...found } = await suggested({ policy, work: 500, works });
    const { present, suggested: simulated } = simulateSuggestion(found, stats);
    expect(present.world.outage).toBe(stats.recoveredWithinMs!.p90);
    expect(simulated!.world).toEqual(present.world);
    expect(simulated!.succeeded).toBe(present.world.clients);
    expect(simulated!.wasted).toBeLessThan(present.wasted);
  });

  it('is played in an outage as long as the policy lasts, where nothing recovered', async () => {
    const policy = { maxAttempts: 3, base: 1000, jitter: 'none' } as const;
    const { stats, ...found } = await suggested({ policy, work: 50, works: () => false });
    expect(simulateSuggestion(found, stats).present.world.outage).toBe(3000);
  });
});
