import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import type { FailedEvaluation } from './error-log.ts';
import { CriterionEvaluator, idOf } from './evaluator.ts';
import { RecentAnswers } from './recent.ts';
import { SettingsInForce } from './settings.ts';

it('keeps the beginning of a long id, and nothing of the rest', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const recent = new RecentAnswers();
  const evaluator = new CriterionEvaluator({
    settings: new SettingsInForce({}),
    clock: virtualClock(),
    counts: { evaluated: () => undefined, failed: () => undefined },
    recent,
    seed: () => 0,
    onError: () => undefined,
  });
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 25; n++) {
    const entity: unknown = JSON.parse(`{"id":"${n}-${'x'.repeat(4_000_000)}"}`);
    evaluator.evaluate('hasRetriesAvailable', { entity });
  }
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(40_000_000);
  expect(recent.of('hasRetriesAvailable')[0]?.entityId).toBe(`24-${'x'.repeat(253)}`);
});

it('counts and logs a nextRetryTime that had to take the default delay', () => {
  const counted: string[] = [];
  const told: FailedEvaluation[] = [];
  const evaluator = new CriterionEvaluator({
    settings: new SettingsInForce({ enableJitter: false }),
    clock: virtualClock(),
    counts: {
      evaluated: () => undefined,
      failed: (name, code) => void counted.push(`${name} ${code}`),
    },
    recent: new RecentAnswers(),
    seed: () => 0,
    onError: (failed) => void told.push(failed),
  });
  const lastAttemptTime = '2026-01-25T21:15:00Z';
  evaluator.nextRetryTime({ entity: { lastAttemptTime, attemptCount: 5000 } });
  evaluator.nextRetryTime({ entity: { lastAttemptTime, retryDelaySeconds: -1 } });
  expect(told).toEqual([]);
  expect(evaluator.nextRetryTime({ entity: { attemptCount: 2 }, entityId: 'e' })).toMatchObject({
    fireAfterMs: 60_000,
  });
  expect(counted).toEqual(['nextRetryTime DATA_UNAVAILABLE']);
  expect(told).toMatchObject([
    { criterion: 'nextRetryTime', error: { code: 'DATA_UNAVAILABLE' }, entityId: 'e', attempt: 2 },
  ]);
});

it('cuts no character in half', () => {
  const id = `${'x'.repeat(255)}\u{1f600}`;
  expect(idOf({ entity: { id } })).toBe(`${'x'.repeat(255)}\ufffd`);
});
