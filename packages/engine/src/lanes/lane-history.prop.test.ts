import * as fc from 'fast-check';
import { seededRandom } from 'redrive/testing';
import { expect, it } from 'vitest';
import {
  afterFailure,
  afterSuccess,
  isOutage,
  type LaneHistory,
  newHistory,
} from './lane-history.ts';

const outcome = fc.record({
  worked: fc.boolean(),
  taskId: fc.nat(5),
  startedAt: fc.nat(100),
  isRefused: fc.boolean(),
});
const settingsOf = fc.record({
  failures: fc.integer({ min: 1, max: 200 }),
  concurrency: fc.integer({ min: 1, max: 1000 }),
});

type Settings = { failures: number; concurrency: number };

function after(history: LaneHistory, one: Outcome, settings: Settings): LaneHistory {
  const { worked, ...failure } = one;
  return worked
    ? afterSuccess(history, one.startedAt, settings)
    : afterFailure(history, failure, settings);
}

type Outcome = { worked: boolean; taskId: number; startedAt: number; isRefused: boolean };

it('counts no more failures than outcomes, and no more outcomes than its span', () => {
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 300 }), settingsOf, (outcomes, settings) => {
      let history = newHistory;
      for (const one of outcomes) history = after(history, one, settings);
      expect(history.failures).toBeGreaterThanOrEqual(0);
      expect(history.failures).toBeLessThanOrEqual(history.outcomes + 1e-9);
      const span = Math.max(100, 10 * settings.concurrency);
      expect(history.outcomes).toBeLessThanOrEqual(Math.min(outcomes.length, span) + 1e-6);
    }),
  );
});

it('opens never before the failures that are set, and surely after as many as are allowed', () => {
  fc.assert(
    fc.property(
      fc.array(outcome, { maxLength: 300 }),
      settingsOf,
      fc.nat(50),
      (outcomes, settings, older) => {
        let history = newHistory;
        for (const one of outcomes) history = after(history, one, settings);
        const isDown = isOutage(history, settings, () => older);
        if (history.run.length < settings.failures) expect(isDown).toBe(false);
        const most = Math.max(60, 4 * settings.failures) + 20 * older;
        for (let i = 0; i < most; i++) {
          const failure = { taskId: 100 + i, startedAt: 1000 + i, isRefused: false };
          history = afterFailure(history, failure, settings);
        }
        expect(isOutage(history, settings, () => older)).toBe(true);
      },
    ),
  );
});

it('opens surely when nothing works any more, whatever was before', () => {
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 200 }), settingsOf, (outcomes, settings) => {
      let history = newHistory;
      for (const one of outcomes) history = after(history, one, settings);
      const most = Math.max(60, 2 * settings.failures);
      for (let i = 0; i < most; i++) {
        const failure = { taskId: 100 + i, startedAt: 1000 + i, isRefused: false };
        history = afterFailure(history, failure, settings);
      }
      expect(isOutage(history, settings, () => 0)).toBe(true);
    }),
  );
});

it.each([0.1, 0.3, 0.5, 0.7])(
  'does not take a lane for down in which %f of the deliveries fail by chance',
  (share) => {
    const settings = { failures: 5, concurrency: 10 };
    let openings = 0;
    for (let seed = 1; seed <= 20; seed++) {
      const random = seededRandom(seed);
      let history = newHistory;
      // From ten outcomes on: before, nothing is known.
      for (let i = 0; i < 5000; i++) {
        const worked = random() >= share;
        history = after(history, { worked, taskId: i, startedAt: i, isRefused: false }, settings);
        if (i >= 30 && isOutage(history, settings, () => 0)) openings += 1;
      }
    }
    expect(openings).toBe(0);
  },
);
