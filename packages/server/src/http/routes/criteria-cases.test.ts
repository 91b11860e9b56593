/** The table of the criteria and random entities, asked over HTTP: every door gives the answer of the library. */
import * as fc from 'fast-check';
import { criterionNames, evaluateCriterion } from 'redrive';
import { type CriterionCase, criterionCases, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { wireAnswer } from '../../criteria/wire.ts';
import { at, listAt, stage } from '../harness.test.ts';

const nowMs = Date.UTC(2030, 0, 31, 12);
const path = (name: string) => `/api/v1/criteria/${name}`;

describe('the table of the criteria', () => {
  it('is answered as it says', async () => {
    const { post } = await stage({ clock: virtualClock(nowMs) });
    expect(criterionCases.length).toBeGreaterThan(50);
    for (const { title, criterion, entity, settings, key, context, expected } of criterionCases) {
      const { status, body } = await post(path(criterion), {
        entity: entity ?? null,
        ...(key === undefined ? {} : { entity_id: key }),
        ...(context === undefined ? {} : { context }),
        ...(settings === undefined ? {} : { settings }),
      });
      expect(status, title).toBe(200);
      expect(shown(body), title).toEqual(wanted(expected));
    }
  });
});

/** What a case says, by the names of the wire; the elapsed time only where it is said. */
function wanted({ errors, warnings, ...expected }: CriterionCase['expected']): unknown {
  const codes = { errors: [...errors], warnings: [...warnings] };
  const { matches, reason } = expected;
  if ('limit' in expected) {
    return {
      matches,
      reason,
      attempt_count: expected.attemptCount,
      limit: expected.limit,
      ...codes,
    };
  }
  const { delayMs, elapsedMs = expect.any(Number) as number, dueAtMs } = expected;
  const isShown = dueAtMs !== null && Math.abs(dueAtMs) <= 8_640_000_000_000_000;
  return {
    matches,
    reason,
    delay_ms: delayMs,
    elapsed_ms: elapsedMs,
    due_at: isShown ? new Date(dueAtMs).toISOString() : null,
    ...codes,
  };
}

/** An answer with the codes of its errors and warnings alone. */
function shown(body: unknown): unknown {
  const codes = (list: string) => listAt(body, list).map((one) => at(one, 'code'));
  return { ...(body as object), errors: codes('errors'), warnings: codes('warnings') };
}

const time = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom('2030-01-31T11:00:00', '2030-01-31T11:59:00Z', 'never', null),
  fc.jsonValue(),
);
const number = fc.oneof(fc.integer({ min: -1, max: 100 }), fc.double(), fc.jsonValue());
const entities = fc.oneof(
  fc.record(
    {
      id: fc.oneof(fc.string(), fc.integer()),
      lastAttemptTime: time,
      currentTime: time,
      retryDelaySeconds: number,
      attemptCount: number,
      maxRetries: number,
      backoffMultiplier: number,
      maxDelaySeconds: number,
      exponentialBackoff: fc.oneof(fc.boolean(), fc.jsonValue()),
      jitterEnabled: fc.oneof(fc.boolean(), fc.jsonValue()),
      operationType: fc.string(),
      operationPriority: fc.constantFrom('HIGH', 'CRITICAL', 'LOW', 7),
      criticalOperation: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue(),
);

describe('random entities', () => {
  it('get the answer of the library, alone and among many', async () => {
    const clock = virtualClock(nowMs);
    const { post } = await stage({ clock, criterionReview: false });
    const options = { nowMs: () => clock.now(), monotonicMs: () => 0, seed: 0 };
    const ofAll = fc.array(entities, { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...criterionNames), ofAll, async (name, given) => {
        // As they come over the wire: -0 and undefined are not JSON.
        const read = JSON.parse(JSON.stringify(given)) as unknown[];
        const expected = read.map((one) =>
          wireAnswer(evaluateCriterion(name, one, undefined, options)),
        );
        const many = await post(path(name), { entities: read });
        expect(many.body).toEqual({ items: JSON.parse(JSON.stringify(expected)) as unknown });
        const one = await post(path(name), { entity: read[0] });
        expect(one.body).toEqual(JSON.parse(JSON.stringify(expected[0])));
      }),
      { numRuns: 100 },
    );
  });
});

describe('a thousand evaluations of one entity at once', () => {
  it('agree', async () => {
    const clock = virtualClock(nowMs);
    const { app } = await stage({ clock });
    const entity = { id: 'e', lastAttemptTime: '2030-01-31T11:58:00Z', retryDelaySeconds: 60 };
    const answers = await Promise.all(
      Array.from({ length: 1000 }, async () => {
        const response = await app.inject({
          method: 'POST',
          url: path('isRetryDelayElapsed'),
          headers: { host: 'localhost', 'content-type': 'application/json' },
          payload: JSON.stringify({ entity }),
        });
        return response.body;
      }),
    );
    expect(new Set(answers).size).toBe(1);
    expect(JSON.parse(answers[0]!)).toMatchObject({ matches: true, errors: [] });
  });
});
