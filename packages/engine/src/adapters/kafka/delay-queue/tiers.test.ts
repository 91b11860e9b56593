import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DELAY_MS } from '../../../ports/delay-queue.ts';
import { Tiers } from './tiers.ts';

const MINUTE = 60_000;
const tiers = new Tiers('q', MINUTE, 15);

describe('tiers', () => {
  it('are topics of fixed delays, each twice the one before', () => {
    expect(tiers.topics.slice(0, 4)).toEqual(['q.due', 'q.wait-1', 'q.wait-2', 'q.wait-4']);
    expect(tiers.topics.at(-1)).toBe('q.wait-16384');
    expect(tiers.waits.at(-1)?.holdMs).toBe(16_384 * MINUTE);
  });

  it.each([
    [0, 'q.due'],
    [MINUTE, 'q.due'],
    [62_000, 'q.wait-1'],
    [4 * MINUTE, 'q.wait-2'],
    [4 * MINUTE + 2000, 'q.wait-4'],
    [MAX_DELAY_MS, 'q.wait-16384'],
  ])('keep an entry of %i ms in %s', (leftMs, topic) => {
    expect(tiers.topicFor(leftMs)).toBe(topic);
  });

  it('never keep an entry past its time, and leave the last part to the memory', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DELAY_MS }), (delayMs) => {
        let leftMs = delayMs;
        let writes = 1;
        for (
          let topic = tiers.topicFor(leftMs);
          topic !== 'q.due';
          topic = tiers.topicFor(leftMs)
        ) {
          leftMs -= tiers.waits.find((one) => one.topic === topic)!.holdMs;
          expect(leftMs).toBeGreaterThanOrEqual(2000);
          writes += 1;
        }
        expect(leftMs).toBeLessThan(62_000);
        expect(tiers.writesOf(delayMs)).toBe(writes);
      }),
    );
  });

  it('are about five hops for a delay up to a day, and at most 48 for the longest', () => {
    const minutes = Array.from({ length: 1440 }, (_, i) => tiers.writesOf((i + 0.5) * MINUTE) - 1);
    const mean = minutes.reduce((a, b) => a + b) / minutes.length;
    expect(mean).toBeGreaterThan(4);
    expect(mean).toBeLessThan(6);
    expect(tiers.writesOf(MAX_DELAY_MS) - 1).toBeLessThanOrEqual(48);
  });
});
