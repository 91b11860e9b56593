import {
  criterionNames,
  evaluateCriterion,
  hasRetriesAvailable,
  isRetryDelayElapsed,
} from 'redrive';
import { describe, expect, it } from 'vitest';
import { answerJson, wireAnswer } from './wire.ts';

const entity = {
  lastAttemptTime: '2026-01-25T21:15:00Z',
  currentTime: '2026-01-25T21:16:00Z',
  retryDelaySeconds: 60,
  exponentialBackoff: false,
  jitterEnabled: false,
};

describe('an answer on the wire', () => {
  it('has the names and times of the wire, in this order', () => {
    expect(JSON.stringify(wireAnswer(isRetryDelayElapsed(entity)))).toBe(
      '{"matches":true,"reason":"FIXED_DELAY_ELAPSED","delay_ms":60000,"elapsed_ms":60000,' +
        '"due_at":"2026-01-25T21:16:00.000Z","errors":[],"warnings":[]}',
    );
    expect(JSON.stringify(wireAnswer(hasRetriesAvailable({ attemptCount: 1 })))).toBe(
      '{"matches":true,"reason":"RETRIES_AVAILABLE","attempt_count":1,"limit":3,"errors":[],"warnings":[]}',
    );
  });

  it('has no times where there are none', () => {
    expect(wireAnswer(isRetryDelayElapsed({}))).toMatchObject({
      delay_ms: null,
      elapsed_ms: null,
      due_at: null,
      errors: [{ code: 'DATA_UNAVAILABLE' }],
    });
  });

  it('has no due time where no date can hold it', () => {
    const far = { ...entity, retryDelaySeconds: 1e15 };
    expect(wireAnswer(isRetryDelayElapsed(far))).toMatchObject({ delay_ms: 1e18, due_at: null });
  });
});

it('is the same as a text', () => {
  const entities = [
    {
      lastAttemptTime: '2030-01-31T12:00:00Z',
      currentTime: '2030-01-31T12:00:30Z',
      retryDelaySeconds: 7,
      attemptCount: 1,
    },
    { lastAttemptTime: '2030-01-31T12:00:00', attemptCount: 1 },
    {
      lastAttemptTime: '+275760-09-13T00:00:00Z',
      currentTime: '+275760-09-13T00:00:00Z',
      retryDelaySeconds: 60,
      attemptCount: 1,
    },
    { lastAttemptTime: 'never "quoted"' },
    { attemptCount: 2 },
    {},
  ];
  for (const name of criterionNames) {
    for (const one of entities) {
      const result = evaluateCriterion(name, one);
      expect(answerJson(result)).toBe(JSON.stringify(wireAnswer(result)));
    }
  }
});
