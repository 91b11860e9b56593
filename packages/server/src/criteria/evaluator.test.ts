import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
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

it('cuts no character in half', () => {
  const id = `${'x'.repeat(255)}\u{1f600}`;
  expect(idOf({ entity: { id } })).toBe(`${'x'.repeat(255)}\ufffd`);
});
