import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Deliveries } from './deliveries.ts';

const step = fc.oneof(
  fc.record({ type: fc.constant('receive' as const), bytes: fc.nat(60) }),
  fc.record({
    type: fc.constant('settle' as const),
    // Of those that were handed over, some of them twice.
    which: fc.oneof(fc.constant('all' as const), fc.array(fc.nat(20), { maxLength: 6 })),
  }),
);
const limits = fc.record({
  maxMessages: fc.integer({ min: 1, max: 6 }),
  maxBytes: fc.integer({ min: 1, max: 100 }),
});

describe('what a channel has brought', () => {
  it('is handed over in order and within the limits, and settled in words that mean no other message', () => {
    fc.assert(
      fc.property(limits, fc.array(step, { maxLength: 60 }), (given, steps) => {
        const deliveries = new Deliveries<number>(given);
        const sizes = new Map<number, number>();
        const handed = new Set<number>();
        const back = new Set<number>();
        /** As the broker sees it. */
        const unsettled = new Set<number>();
        const order: number[] = [];
        let tag = 0;
        const hand = (one: number) => {
          handed.add(one);
          order.push(one);
          const bytes = [...handed].reduce((sum, each) => sum + sizes.get(each)!, 0);
          expect(handed.size).toBeLessThanOrEqual(given.maxMessages);
          if (handed.size > 1) expect(bytes).toBeLessThanOrEqual(given.maxBytes);
        };
        for (const one of steps) {
          if (one.type === 'receive') {
            tag += 1;
            sizes.set(tag, one.bytes);
            unsettled.add(tag);
            const verdict = deliveries.receive(tag, tag, one.bytes);
            if (verdict === 'hand') hand(tag);
            if (verdict === 'back') back.add(tag);
            // There is always one to work on.
            if (back.size === 0) expect(handed.size).toBeGreaterThan(0);
            continue;
          }
          const tags = one.which === 'all' ? [...handed] : one.which.flatMap((i) => order[i] ?? []);
          const meant = new Set(tags.filter((each) => handed.delete(each)));
          for (const word of deliveries.settle(tags)) {
            const reached = word.isMultiple
              ? [...unsettled].filter((each) => each <= word.tag)
              : [word.tag];
            for (const each of reached) {
              // What went back to nobody may stand before one that is settled: then it must not be reached either.
              expect(meant.has(each)).toBe(true);
              unsettled.delete(each);
              meant.delete(each);
            }
          }
          expect(meant.size).toBe(0);
          for (let next = deliveries.next(); next !== undefined; next = deliveries.next()) {
            hand(next);
          }
        }
        expect(order).toEqual([...order].sort((a, b) => a - b));
        expect([...deliveries.handed()]).toEqual([...handed].sort((a, b) => a - b));
        const waiting = unsettled.size - back.size;
        expect(deliveries.isEmpty).toBe(waiting === 0);
      }),
      { numRuns: 1000 },
    );
  });
});
