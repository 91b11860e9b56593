import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { delayFor } from '../policy/backoff.ts';
import { auditStats, createAuditStats } from './audit-stats.ts';
import { madeTrail } from './made-trail.test.ts';
import { simulateSuggestion, suggestPolicy } from './suggest.ts';

const policies = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 12 }),
  base: fc.integer({ min: 0, max: 5000 }),
  cap: fc.integer({ min: 0, max: 60_000 }),
  multiplier: fc.double({ min: 1, max: 4, noNaN: true }),
  jitter: fc.constantFrom('none', 'full', 'equal', 'up', 'around', 'add', 'decorrelated'),
} as const);

const trails = fc
  .record({
    policy: policies,
    work: fc.integer({ min: 0, max: 80 }),
    fails: fc.double({ min: 0, max: 1, noNaN: true }),
    outageMs: fc.integer({ min: 0, max: 20_000 }),
    successes: fc.boolean(),
    strict: fc.boolean(),
  })
  .map(({ fails, outageMs, ...made }) =>
    madeTrail({
      ...made,
      works: (_, waitedMs, random) => waitedMs >= outageMs && random >= fails,
    }),
  );

describe('statistics', () => {
  it('do not depend on the order of the events', async () => {
    await fc.assert(
      fc.asyncProperty(trails, fc.infiniteStream(fc.nat()), async (events, order) => {
        const shuffled = events
          .map((event) => ({ event, place: order.next().value as number }))
          .toSorted((a, b) => a.place - b.place)
          .map(({ event }) => event);
        const rounded = async (list: readonly unknown[]) =>
          JSON.stringify(await auditStats(list), (_, value: unknown) =>
            // Sums of fractions may differ in their last digits.
            typeof value === 'number' ? Number(value.toPrecision(9)) : value,
          );
        expect(await rounded(shuffled)).toBe(await rounded(events));
      }),
    );
  });

  it('add up: shares lie between 0 and 1, and every retry is somewhere in the load', async () => {
    await fc.assert(
      fc.asyncProperty(trails, async (events) => {
        for (const stats of (await auditStats(events)).categories) {
          for (const share of [stats.successRate, stats.recoveryRate]) {
            if (share === null) continue;
            expect(share).toBeGreaterThanOrEqual(0);
            expect(share).toBeLessThanOrEqual(1);
          }
          expect(stats.load.reduce((a, b) => a + b, 0)).toBe(stats.retries);
          expect(stats.byAttempt.reduce((sum, row) => sum + row.failed, 0)).toBe(stats.failures);
          for (const { executed, failed, helped } of stats.byAttempt) {
            if (executed !== null) expect(executed).toBeGreaterThanOrEqual(failed + helped);
          }
        }
      }),
    );
  });

  it('take anything for an event without failing', () => {
    fc.assert(
      fc.property(fc.array(fc.anything({ withNullPrototype: true })), (junk) => {
        const fold = createAuditStats();
        for (const event of junk) fold.add(event);
        for (const type of ['retry_attempt', 'retry_exhausted', 'policy_registered']) {
          const [a, b, c, d] = junk;
          fold.add({
            event_type: type,
            timestamp: '2026-01-01T00:00:00Z',
            retry_category: a,
            attempt_number: b,
            delay_seconds: c,
            redrive: d,
            definition: a,
          });
        }
        expect(fold.report().events).toBe(junk.length + 3);
      }),
    );
  });
});

describe('suggestions', () => {
  it('never wait less than what was measured to help, and can be simulated', async () => {
    await fc.assert(
      fc.asyncProperty(trails, async (events) => {
        for (const stats of (await auditStats(events)).categories) {
          const suggestion = suggestPolicy(stats);
          const { suggested, present } = suggestion;
          if (!suggested) continue;
          expect(suggested.fingerprint).not.toBe(present.fingerprint);
          expect(suggested.maxAttempts).toBeLessThanOrEqual(present.maxAttempts + 10);
          const useful = stats.byAttempt.filter(
            ({ attempt, executed, helped }) =>
              attempt > 1 && helped >= 0.01 * (executed ?? Infinity) && (executed ?? 0) >= 30,
          );
          let waitMs = 0;
          let previousMs = 0;
          for (let attempt = 1; attempt < suggested.maxAttempts; attempt++) {
            previousMs = delayFor(suggested, { attempt, previousMs });
            waitMs += previousMs;
          }
          // Means of a few dozen random waits.
          expect(waitMs * 1.5 + 50).toBeGreaterThan(useful.at(-1)?.waitedMs ?? 0);
          expect(simulateSuggestion(suggestion, stats).suggested?.endedBy).toBeDefined();
        }
      }),
      { numRuns: 60 },
    );
  });
});
