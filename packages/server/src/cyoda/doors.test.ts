/** The criteria by gRPC: the same answers as from the library, for every rule and for odd entities. */
import type { Body, MemberStream } from '@redrive/services/cyoda';
import fc from 'fast-check';
import {
  type CriterionName,
  criterionNames,
  type CriterionResult,
  evaluateCriterion,
  nextRetryTime,
} from 'redrive';
import { criterionCases, nextRetryCases, virtualClock } from 'redrive/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { CyodaServer } from '@redrive/services/cyoda';
import { createCyodaMember } from './member.ts';
import { plainEvaluator } from './stage.test.ts';

const clock = virtualClock(Date.UTC(2026, 0, 25, 22));
const nowMs = () => clock.now();
let stream: MemberStream;
let server: CyodaServer;

// One stream for all of them: nothing that is asked may end it.
beforeAll(async () => {
  server = await CyodaServer.start();
  const quiet = () => undefined;
  const member = createCyodaMember({
    url: server.url,
    tokenSource: () => Promise.resolve(undefined),
    tags: ['retry-timing'],
    evaluator: plainEvaluator(clock),
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
  member.start();
  stream = await server.joined();
  return async () => {
    await member.stop();
    await server.stop();
  };
});

interface Said {
  success: unknown;
  matches: unknown;
  reason: string | undefined;
  elapsedMs?: string | undefined;
  delayMs?: string | undefined;
  dueAt?: string | undefined;
  attempt?: string | undefined;
  limit?: string | undefined;
  warnings: (string | undefined)[];
}

/** What an answer says, without its words. */
function read(answer: Body): Said {
  const reason = String(answer['reason']);
  const times = /: (\S+) of (\S+) ms elapsed(?:, due at (\S+))?$/.exec(reason);
  const [, attempt, limit] = /: attempt (\S+), limit (\S+)$/.exec(reason) ?? [];
  return {
    success: answer['success'],
    matches: answer['matches'],
    reason: reason.split(':')[0],
    ...(times ? { elapsedMs: times[1], delayMs: times[2], dueAt: times[3] } : {}),
    ...(attempt === undefined ? {} : { attempt, limit }),
    warnings: ((answer['warnings'] ?? []) as string[]).map((text) => text.split(':')[0]),
  };
}

/** What the library says, in the same form. */
function told(result: CriterionResult): Said {
  const { matches, reason, errors, warnings } = result;
  const delay = 'delayMs' in result ? result : undefined;
  const limit = 'limit' in result ? result : undefined;
  const dueAtMs = delay?.dueAtMs ?? null;
  return {
    success: true,
    matches,
    reason: errors[0]?.code ?? reason,
    ...(delay && errors.length === 0
      ? {
          elapsedMs: String(delay.elapsedMs),
          delayMs: String(delay.delayMs),
          dueAt:
            dueAtMs === null || Math.abs(dueAtMs) > 8.64e15
              ? undefined
              : new Date(dueAtMs).toISOString(),
        }
      : {}),
    ...(limit && errors.length === 0
      ? { attempt: String(limit.attemptCount), limit: String(limit.limit) }
      : {}),
    warnings: warnings.map(({ code }) => code),
  };
}

interface Asked {
  entity: unknown;
  settings?: object;
  key?: string;
  context?: string;
}

const fieldsOf = ({ settings, key, context }: Asked) => ({
  entityId: key,
  parameters: settings ? JSON.stringify({ ...settings, context }) : context,
});

const ask = async (name: CriterionName, asked: Asked) =>
  read(await stream.criterion(name, asked.entity, { fields: fieldsOf(asked) }));

describe('a criterion by gRPC', () => {
  it.each(criterionCases.map((one) => [`${one.criterion}: ${one.title}`, one] as const))(
    '%s',
    async (_, { criterion, entity, settings, key, context, expected }) => {
      const found = await ask(criterion, { entity, settings, key, context } as Asked);
      const { matches, reason, errors, warnings } = expected;
      expect(found).toMatchObject({ matches, reason: errors[0] ?? reason, warnings });
      const sent = JSON.parse(JSON.stringify(entity)) as unknown;
      const result = evaluateCriterion(criterion, sent, settings, { nowMs, key, context });
      expect(found).toEqual(told(result));
    },
  );

  it.each(nextRetryCases.map((one) => [one.title, one] as const))(
    'nextRetryTime: %s',
    async (_, { entity, settings, key, context, expected }) => {
      const asked = { entity, settings, key, context } as Asked;
      const answer = await stream.schedule('nextRetryTime', entity, { fields: fieldsOf(asked) });
      const { warnings, ...time } = expected;
      expect(answer['result']).toEqual(
        'fireAtMs' in time ? { fireAt: time.fireAtMs } : { fireAfterMs: time.fireAfterMs },
      );
      expect(read(answer).warnings).toEqual(warnings);
    },
  );

  it('answers random entities as the library does', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 50, maxLength: 50 }), async (all) => {
        const found = await Promise.all(all.map(({ name, ...one }) => ask(name, one as Asked)));
        const expected = all.map(({ name, entity, key }) => {
          const sent = JSON.parse(JSON.stringify(entity)) as unknown;
          return told(evaluateCriterion(name, sent, undefined, { nowMs, key }));
        });
        expect(found).toEqual(expected);
      }),
      { numRuns: 20 },
    );
  });

  it('schedules random entities as the library does', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 50, maxLength: 50 }), async (all) => {
        const answers = await Promise.all(
          all.map((one) =>
            stream.schedule('nextRetryTime', one.entity, { fields: fieldsOf(one as Asked) }),
          ),
        );
        const expected = all.map(({ entity, key }) => {
          const sent = JSON.parse(JSON.stringify(entity)) as unknown;
          const time = nextRetryTime(sent, undefined, { nowMs, key });
          return 'fireAtMs' in time ? { fireAt: time.fireAtMs } : { fireAfterMs: time.fireAfterMs };
        });
        expect(answers.map(({ result }) => result)).toEqual(expected);
      }),
      { numRuns: 10 },
    );
  });

  it('gives a thousand concurrent requests of one entity one answer', async () => {
    const entity = { lastAttemptTime: '2026-01-25T21:59:00Z', attemptCount: 1 };
    const found = await Promise.all(
      Array.from({ length: 1000 }, () => ask('isRetryDelayElapsed', { entity, key: 'order-17' })),
    );
    expect(new Set(found.map((one) => JSON.stringify(one))).size).toBe(1);
  });

  it('kept to the protocol all the time, on one stream', () => {
    expect(server.faults).toEqual([]);
    expect(stream.isGone).toBe(false);
  });
});

const time = fc.oneof(
  fc
    .date({ min: new Date('2026-01-25T00:00:00Z'), max: new Date('2026-01-26T00:00:00Z') })
    .filter((date) => !Number.isNaN(date.getTime()))
    .map((date) => date.toISOString()),
  fc.constantFrom('2026-01-25T21:15:00', '+275760-09-13T00:00:00.000Z', 'soon', '', null),
);
const odd = fc.oneof(fc.constantFrom(null, '5', true, [], {}), fc.double({ noNaN: true }));
const count = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: -1, max: 40 }) }, odd);
const flag = fc.oneof(fc.boolean(), odd);
const entity = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record(
      {
        id: fc.string(),
        lastAttemptTime: time,
        currentTime: time,
        retryDelaySeconds: count,
        attemptCount: count,
        exponentialBackoff: flag,
        backoffMultiplier: count,
        maxDelaySeconds: count,
        jitterEnabled: flag,
        maxRetries: count,
        criticalOperation: flag,
        operationPriority: fc.constantFrom('HIGH', 'CRITICAL', 'LOW', 5),
        manualRetryOverride: flag,
        operationType: fc.constantFrom('payment', '__proto__', 5),
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: fc.jsonValue() },
);
const asked = fc.record(
  { name: fc.constantFrom(...criterionNames), entity, key: fc.uuid() },
  { requiredKeys: ['name', 'entity'] },
);
