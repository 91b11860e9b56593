import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasRetriesAvailable, isMaxRetriesExceeded } from './limits.ts';

const count = fc.nat({ max: 1_000_000_000 });
const entity = fc.record({ attemptCount: count, maxRetries: count });
const raise = fc.record(
  {
    criticalOperation: fc.boolean(),
    operationPriority: fc.constantFrom('LOW', 'MEDIUM', 'HIGH', 'CRITICAL'),
    manualRetryOverride: fc.boolean(),
  },
  { requiredKeys: [] },
);
const hostile = fc.oneof(
  fc.anything(),
  fc.record(
    {
      attemptCount: fc.anything(),
      maxRetries: fc.anything(),
      criticalOperation: fc.anything(),
      operationPriority: fc.anything(),
      manualRetryOverride: fc.anything(),
    },
    { requiredKeys: [] },
  ),
);

describe('the limits', () => {
  it('never throw, and on errors stop the retries', () => {
    fc.assert(
      fc.property(hostile, (input) => {
        const exceeded = isMaxRetriesExceeded(input);
        const available = hasRetriesAvailable(input);
        expect(exceeded.errors).toEqual(available.errors);
        if (exceeded.errors.length > 0) {
          expect([exceeded.matches, available.matches]).toEqual([true, false]);
        }
      }),
    );
  });

  it('are opposites while nothing raises the limit', () => {
    fc.assert(
      fc.property(entity, (input) => {
        expect(isMaxRetriesExceeded(input).matches).toBe(!hasRetriesAvailable(input).matches);
      }),
    );
  });

  it('are only ever raised, and never exceed the attempts that are still available', () => {
    fc.assert(
      fc.property(entity, raise, (input, raised) => {
        const result = isMaxRetriesExceeded({ ...input, ...raised });
        expect(result.limit).toBeGreaterThanOrEqual(input.maxRetries);
        expect(result.matches).toBe(input.attemptCount >= (result.limit ?? Number.NaN));
        if (hasRetriesAvailable(input).matches) expect(result.matches).toBe(false);
      }),
    );
  });

  it('stay exceeded once they are', () => {
    fc.assert(
      fc.property(entity, raise, count, (input, raised, more) => {
        const now = isMaxRetriesExceeded({ ...input, ...raised });
        const attemptCount = input.attemptCount + more;
        const later = isMaxRetriesExceeded({ ...input, ...raised, attemptCount });
        if (now.matches) expect(later.matches).toBe(true);
      }),
    );
  });
});
