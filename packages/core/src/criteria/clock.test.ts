import { describe, expect, it } from 'vitest';
import { seededRandom } from '../policy/random.ts';
import { isRetryDelayElapsed } from './elapsed.ts';
import { nextRetryTime } from './next.ts';

const T0 = Date.parse('2026-01-25T21:15:00.000Z');
/** A delay of 120 s; its jitter of up to 12 s belongs to the entity. */
const entity = {
  id: 'order-17',
  lastAttemptTime: '2026-01-25T21:15:00Z',
  retryDelaySeconds: 60,
  attemptCount: 2,
};

/** The answers of one evaluation after the other, while the clock shows these times. */
function answersAt(offsetsMs: readonly number[]) {
  return offsetsMs.map((offsetMs) => {
    const { matches, reason, dueAtMs } = isRetryDelayElapsed(entity, null, {
      nowMs: () => T0 + offsetMs,
    });
    return { matches, reason, dueAtMs };
  });
}

const dueAtMs = isRetryDelayElapsed(entity, null, { nowMs: () => T0 }).dueAtMs!;
const due = { matches: true, reason: 'JITTER_ELAPSED', dueAtMs };
const waiting = { matches: false, reason: 'BACKOFF_WAIT', dueAtMs };

describe('a clock that is adjusted during a delay', () => {
  it('forward: the delay is over by the new time', () => {
    expect(answersAt([30_000, 31_000, 3_631_000])).toEqual([waiting, waiting, due]);
  });

  it('back: the answer is no again until the due time comes', () => {
    expect(answersAt([200_000, 20_000, dueAtMs - T0 - 1, dueAtMs - T0])).toEqual([
      due,
      waiting,
      { ...waiting, reason: 'JITTER_WAIT' },
      due,
    ]);
  });

  it('back before the last attempt: no, with a warning that names the skew, and the same due time', () => {
    const before = isRetryDelayElapsed(entity, null, { nowMs: () => T0 - 3_600_000 });
    expect(before).toMatchObject({
      matches: false,
      reason: 'TIMING_ERROR',
      elapsedMs: -3_600_000,
      dueAtMs,
      errors: [],
      warnings: [
        { code: 'CLOCK_SKEW', message: 'lastAttemptTime is 3600000 ms after the current time' },
      ],
    });
    expect(answersAt([-1, 0, dueAtMs - T0])).toEqual([
      { ...waiting, reason: 'TIMING_ERROR' },
      waiting,
      due,
    ]);
  });

  it('to and fro: the due time never moves, and the answer depends on the time alone', () => {
    const random = seededRandom(7);
    for (let i = 0; i < 1000; i++) {
      const nowMs = T0 + Math.floor(random() * 400_000) - 100_000;
      const result = isRetryDelayElapsed(entity, null, { nowMs: () => nowMs });
      expect(result.dueAtMs).toBe(dueAtMs);
      expect(result.matches).toBe(nowMs >= dueAtMs);
      expect(nextRetryTime(entity, null, { nowMs: () => nowMs })).toEqual({
        fireAtMs: dueAtMs,
        warnings: [],
      });
    }
  });
});

describe('many who ask about one entity', () => {
  it('get one answer: a thousand evaluations at once all agree', async () => {
    const now = { ...entity, currentTime: new Date(dueAtMs - 1).toISOString() };
    const answers = await Promise.all(
      Array.from({ length: 1000 }, async (_, i) => {
        // They begin in turns, and each has a copy of its own.
        for (let turn = 0; turn < i % 7; turn++) await Promise.resolve();
        return JSON.stringify(isRetryDelayElapsed(structuredClone(now)));
      }),
    );
    expect(new Set(answers)).toEqual(new Set([JSON.stringify(isRetryDelayElapsed(now))]));
    expect(isRetryDelayElapsed(now)).toMatchObject({ matches: false, reason: 'JITTER_WAIT' });
  });

  it('find no luckier draw by asking again, or by writing the entity in another way', () => {
    const asked = [
      entity,
      { ...entity, lastAttemptTime: '2026-01-25T22:15:00.000+01:00' },
      { ...entity, lastAttemptTime: new Date(T0) },
      { ...entity, unrelated: Math.PI },
    ];
    const found = asked.map((one) => isRetryDelayElapsed(one, null, { nowMs: () => T0 }).dueAtMs);
    expect(new Set(found)).toEqual(new Set([dueAtMs]));
  });
});
