import { hasRetriesAvailable, isRetryDelayElapsed } from 'redrive';
import { describe, expect, it } from 'vitest';
import { wireAnswer } from './wire.ts';

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
