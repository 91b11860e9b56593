import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Policy } from '../policy/policy-fields.ts';
import { type Simulation, simulate } from './simulate.ts';
import type { World } from './simulate-world.ts';

const world: fc.Arbitrary<World> = fc.record({
  clients: fc.integer({ min: 1, max: 60 }),
  spread: fc.integer({ min: 0, max: 3000 }),
  outageStart: fc.integer({ min: 0, max: 2000 }),
  outage: fc.integer({ min: 0, max: 5000 }),
  capacity: fc.integer({ min: 1, max: 70 }),
  queue: fc.integer({ min: 0, max: 2000 }),
  latency: fc.integer({ min: 1, max: 200 }),
  horizon: fc.integer({ min: 1, max: 60_000 }),
  seed: fc.integer({ min: 0 }),
});

const policy: fc.Arbitrary<Policy> = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 12 }),
    base: fc.integer({ min: 0, max: 1000 }),
    cap: fc.integer({ min: 0, max: 5000 }),
    jitter: fc.constantFrom('none', 'up', 'around', 'add', 'full', 'equal', 'decorrelated'),
    deadline: fc.integer({ min: 1, max: 20_000 }),
    attemptTimeout: fc.integer({ min: 1, max: 1000 }),
    idempotent: fc.boolean(),
  },
  { requiredKeys: [] },
);

describe('simulate, whatever the policy and the world', () => {
  it('ends every client exactly once', () => {
    check((result) => {
      const gaveUp = sum(Object.values(result.gaveUp));
      expect(result.succeeded + gaveUp + result.unfinished).toBe(result.world.clients);
      expect(result.endedBy === 'done').toBe(result.unfinished === 0);
    });
  });

  it('accounts for every attempt', () => {
    check((result, p) => {
      const { served, down, overloaded, timedOut } = result.outcomes;
      expect(served + down + overloaded + timedOut).toBe(result.attempts);
      expect(served).toBe(result.succeeded);
      expect(result.wasted).toBe(result.attempts - served);
      expect(result.attempts).toBeLessThanOrEqual(result.world.clients * (p.maxAttempts ?? 4));
    });
  });

  it('has in its buckets what it has in its totals', () => {
    check((result) => {
      expect(sum(result.load.map((bucket) => bucket.attempts))).toBe(result.attempts);
      for (const [outcome, total] of Object.entries(result.outcomes)) {
        expect(sum(result.load.map((bucket) => bucket[outcome as 'served']))).toBe(total);
      }
      expect(result.load.map((bucket) => bucket.atMs)).toEqual(
        result.load.map((_, i) => i * result.bucketMs),
      );
      expect(result.load.at(-1)!.atMs).toBeLessThanOrEqual(result.endedMs);
    });
  });

  it('never has the service serve more in a second than it can, nor anything while it is down', () => {
    check((result) => {
      const { capacity, outageStart, outage } = result.world;
      for (const { atMs, served } of result.load) {
        expect(served).toBeLessThanOrEqual(capacity);
        if (atMs >= outageStart && atMs + 1000 <= outageStart + outage) expect(served).toBe(0);
      }
    }, 1000);
  });

  it('is the same for the same seed, and for its own world', () => {
    fc.assert(
      fc.property(policy, world, (p, w) => {
        const result = simulate(p, w);
        expect(simulate(p, w)).toEqual(result);
        expect(simulate(p, result.world)).toEqual(result);
      }),
    );
  });

  it('is plain data', () => {
    check((result) => {
      expect(JSON.parse(JSON.stringify(result))).toEqual(result);
    });
  });

  it('has a peak no lower than the peak after the outage, and no higher than all there was', () => {
    check((result) => {
      expect(result.peakAfterOutage).toBeLessThanOrEqual(result.peakPerSecond);
      expect(result.peakPerSecond).toBeLessThanOrEqual(result.attempts);
      expect(result.peakPerSecond).toBeGreaterThanOrEqual(result.attempts > 0 ? 1 : 0);
    }, 1000);
  });

  it('completes in order of percentiles, within the deadline', () => {
    check((result, p) => {
      expect(result.completionMs === null).toBe(result.succeeded === 0);
      if (!result.completionMs) return;
      const { p50, p90, p99, max } = result.completionMs;
      expect([p50, p90, p99, max].toSorted((a, b) => a - b)).toEqual([p50, p90, p99, max]);
      expect(max).toBeLessThanOrEqual(result.endedMs);
      if (p.deadline !== undefined) expect(max).toBeLessThanOrEqual(p.deadline as number);
      expect(p50).toBeGreaterThanOrEqual(result.world.latency);
    });
  });

  it('gives a lower peak with full jitter than with none, once waits are longer than the spread', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 300 }),
        fc.integer({ min: 2000, max: 10_000 }),
        fc.integer({ min: 0 }),
        (clients, base, seed) => {
          const w: World = { clients, spread: 100, outage: base / 2, capacity: 1000, seed };
          const common: Policy = { base, strategy: 'fixed' };
          const none = simulate({ ...common, jitter: 'none' }, w);
          const full = simulate({ ...common, jitter: 'full' }, w);
          expect(none.peakAfterOutage).toBe(clients);
          expect(full.peakAfterOutage).toBeLessThan(clients);
        },
      ),
      { numRuns: 50 },
    );
  });
});

function check(look: (result: Simulation, p: Policy) => void, bucket?: number): void {
  fc.assert(
    fc.property(policy, world, (p, w) => {
      look(simulate(p, bucket === undefined ? w : { ...w, bucket }), p);
    }),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
