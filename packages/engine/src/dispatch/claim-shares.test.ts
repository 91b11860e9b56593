import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claimShares, type WantingLane } from './claim-shares.ts';

const lanesOf = (count: number, limit: number, hasBacklog = false): WantingLane[] =>
  Array.from({ length: count }, (_, n) => ({
    lane: `${hasBacklog ? 'deep' : 'lane'}-${n}`,
    limit,
    hasBacklog,
  }));
const limitOf = (name: string, shares: readonly { lane: string; limit: number }[]) =>
  shares.find(({ lane }) => lane === name)?.limit;

describe('the share of a lane in a claim', () => {
  it('is the same for all', () => {
    const shares = claimShares(lanesOf(4, 1000), 1000);
    expect(shares.map(({ limit }) => limit)).toEqual([250, 250, 250, 250]);
    expect(claimShares(lanesOf(3, 5), 1000).map(({ limit }) => limit)).toEqual([5, 5, 5]);
  });

  it('is one where there are more lanes than room, for the first of them', () => {
    const shares = claimShares(lanesOf(30, 10), 20);
    expect(shares).toHaveLength(20);
    expect(shares.every(({ limit }) => limit === 1)).toBe(true);
  });

  it('is half of the room for lanes with a backlog, however many others there are', () => {
    const shares = claimShares([...lanesOf(1000, 10), ...lanesOf(2, 1000, true)], 1000);
    expect(limitOf('deep-0', shares)).toBe(250);
    expect(limitOf('deep-1', shares)).toBe(250);
    expect(shares).toHaveLength(502);
  });

  it('is what the others leave, where they leave more', () => {
    const shares = claimShares([...lanesOf(10, 3), ...lanesOf(1, 5000, true)], 1000);
    expect(limitOf('deep-0', shares)).toBe(970);
  });

  it('keeps no room for a backlog that cannot be started', () => {
    const shares = claimShares([...lanesOf(1000, 10), ...lanesOf(1, 4, true)], 1000);
    expect(limitOf('deep-0', shares)).toBe(4);
    expect(shares).toHaveLength(997);
  });

  it('is never more than the room or the limit, and never nothing', () => {
    const lane = fc.record({
      lane: fc.string(),
      limit: fc.integer({ min: 1, max: 50 }),
      hasBacklog: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(lane, { minLength: 1, selector: (one) => one.lane }),
        fc.integer({ min: 1, max: 100 }),
        (wanting, room) => {
          const shares = claimShares(wanting, room);
          const sum = shares.reduce((all, { limit }) => all + limit, 0);
          expect(sum).toBeLessThanOrEqual(room);
          expect(sum).toBeGreaterThan(0);
          for (const { lane: name, limit } of shares) {
            expect(limit).toBeGreaterThan(0);
            expect(limit).toBeLessThanOrEqual(wanting.find((one) => one.lane === name)!.limit);
          }
        },
      ),
    );
  });
});
