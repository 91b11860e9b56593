import { describe, expect, it } from 'vitest';
import { criterionCases, nextRetryCases } from './cases.ts';
import { criterionSettings } from './config.ts';
import { criterionNames, evaluateCriterion } from './evaluate.ts';
import { nextRetryTime } from './next.ts';

const codes = (found: readonly { code: string }[]): string[] => found.map(({ code }) => code);

describe('the rules of the criteria', () => {
  it.each(criterionCases.map((one) => [`${one.criterion}: ${one.title}`, one] as const))(
    '%s',
    (_title, { criterion, entity, settings, key, context, expected }) => {
      const sent = JSON.parse(JSON.stringify(entity)) as unknown;
      for (const given of [settings, criterionSettings(settings)]) {
        const result = evaluateCriterion(criterion, sent, given, { key, context });
        const { errors, warnings } = result;
        const { elapsedMs: _, ...rest } = { elapsedMs: null, ...result };
        const found = 'elapsedMs' in expected ? result : rest;
        expect({ ...found, errors: codes(errors), warnings: codes(warnings) }).toEqual(expected);
      }
    },
  );

  it.each(nextRetryCases.map((one) => [one.title, one] as const))(
    'nextRetryTime: %s',
    (_title, { entity, settings, key, context, expected }) => {
      const result = nextRetryTime(entity, settings, { key, context });
      expect({ ...result, warnings: codes(result.warnings) }).toEqual(expected);
    },
  );

  it('are named once each, and cover every criterion and every reason', () => {
    const titles = criterionCases.map(({ criterion, title }) => `${criterion} ${title}`);
    expect(new Set(titles).size).toBe(titles.length);
    expect(new Set(criterionCases.map(({ criterion }) => criterion))).toEqual(
      new Set(criterionNames),
    );
    expect([...new Set(criterionCases.map(({ expected }) => expected.reason))].sort()).toEqual([
      'BACKOFF_ELAPSED',
      'BACKOFF_WAIT',
      'DATA_ERROR',
      'FIXED_DELAY_ELAPSED',
      'JITTER_ELAPSED',
      'JITTER_WAIT',
      'MAXIMUM_DELAY_ELAPSED',
      'RETRIES_AVAILABLE',
      'RETRIES_EXHAUSTED',
      'TIMING_ERROR',
      'TOO_SOON',
    ]);
  });
});
