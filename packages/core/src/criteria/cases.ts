import type { CriterionCase, ExpectedDelay, NextRetryCase } from './case.ts';
import { limitCases } from './limit-cases.ts';
import type { CriterionWarningCode, RetryDelayReason } from './result.ts';

/** 2026-01-25T21:15:00Z. */
const LAST_MS = 1_769_375_700_000;

/** A fixed delay of 60 s, asked about when it is just over. Each case changes what it is about. */
const fixed = {
  id: 'order-17',
  lastAttemptTime: '2026-01-25T21:15:00Z',
  currentTime: '2026-01-25T21:16:00Z',
  retryDelaySeconds: 60,
  attemptCount: 1,
  exponentialBackoff: false,
  jitterEnabled: false,
};
const backoff = { ...fixed, exponentialBackoff: true };
const jittered = { ...fixed, jitterEnabled: true };

/** 60 s with the jitter of `order-17`, of `order-18`, and of an entity without an id. */
const OWN_MS = 61_123;
const OTHER_MS = 60_091;
const KEYLESS_MS = 64_689;

const elapsed = {
  matches: true,
  reason: 'FIXED_DELAY_ELAPSED',
  delayMs: 60_000,
  elapsedMs: 60_000,
  dueAtMs: LAST_MS + 60_000,
  errors: [],
  warnings: [],
} as const satisfies ExpectedDelay;
const warned = { ...elapsed, warnings: ['DEFAULT_USED'] } as const;
const failed = {
  matches: false,
  reason: 'TIMING_ERROR',
  delayMs: null,
  elapsedMs: null,
  dueAtMs: null,
  warnings: [],
} as const;

/** The expectation of a delay that is not 60 s: what is waited for, and whether it is over after a minute. */
function after(
  delayMs: number,
  reason: RetryDelayReason,
  warnings: readonly CriterionWarningCode[] = [],
): ExpectedDelay {
  const matches = reason.endsWith('_ELAPSED');
  return { ...elapsed, matches, reason, delayMs, dueAtMs: LAST_MS + delayMs, warnings };
}

function delayCase(
  title: string,
  entity: unknown,
  expected: ExpectedDelay,
  more: Partial<CriterionCase> = {},
): CriterionCase {
  return { title, criterion: 'isRetryDelayElapsed', entity, expected, ...more };
}

const missingTime = { ...failed, errors: ['DATA_UNAVAILABLE'] } as const;
const invalidTime = { ...failed, errors: ['INVALID_TIME'] } as const;

const delayCases: readonly CriterionCase[] = [
  delayCase('no entity', null, missingTime),
  delayCase('an entity that is an array', [fixed], missingTime),
  delayCase('an entity that is a text', 'order-17', missingTime),
  delayCase('lastAttemptTime missing', { ...fixed, lastAttemptTime: null }, missingTime),
  delayCase(
    'lastAttemptTime missing, before a currentTime that does not parse',
    { currentTime: 'noon' },
    missingTime,
  ),
  ...(['yesterday', '', '2026-01-25', '2026-02-30T00:00:00Z', LAST_MS, true, {}] as const).flatMap(
    (time) => [
      delayCase(
        `lastAttemptTime does not parse: ${JSON.stringify(time)}`,
        { ...fixed, lastAttemptTime: time },
        invalidTime,
      ),
      delayCase(
        `currentTime does not parse: ${JSON.stringify(time)}`,
        { ...fixed, currentTime: time },
        invalidTime,
      ),
    ],
  ),
  delayCase(
    'a date out of range',
    { ...fixed, lastAttemptTime: '+275760-09-13T00:00:00.001Z' },
    invalidTime,
  ),
  delayCase(
    'currentTime missing: the clock',
    { ...fixed, currentTime: null },
    {
      matches: true,
      reason: 'FIXED_DELAY_ELAPSED',
      delayMs: 60_000,
      dueAtMs: LAST_MS + 60_000,
      errors: [],
      warnings: [],
    },
  ),
  delayCase(
    'a time without a zone is UTC, with a warning',
    { ...fixed, lastAttemptTime: '2026-01-25T21:15:00' },
    { ...elapsed, warnings: ['ZONE_MISSING'] },
  ),
  delayCase(
    'a time in another zone',
    { ...fixed, lastAttemptTime: '2026-01-25T22:15:00+01:00' },
    elapsed,
  ),
  delayCase(
    'lastAttemptTime after currentTime',
    { ...fixed, currentTime: '2026-01-25T21:14:58.500Z' },
    {
      ...elapsed,
      matches: false,
      reason: 'TIMING_ERROR',
      elapsedMs: -1500,
      warnings: ['CLOCK_SKEW'],
    },
  ),
  delayCase(
    'lastAttemptTime after currentTime with zero delay',
    { ...fixed, currentTime: '2026-01-25T21:14:59.999Z', retryDelaySeconds: 0 },
    {
      ...after(0, 'TIMING_ERROR', ['CLOCK_SKEW']),
      matches: false,
      elapsedMs: -1,
    },
  ),
  ...[null, -1, 0.5, 59.5, '60', true, [60], { seconds: 60 }].map((retryDelaySeconds) =>
    delayCase(
      `retryDelaySeconds ${JSON.stringify(retryDelaySeconds)}: the default and a warning`,
      { ...fixed, retryDelaySeconds },
      warned,
    ),
  ),
  delayCase(
    'retryDelaySeconds invalid: the configured default',
    { ...fixed, retryDelaySeconds: -1 },
    after(7000, 'FIXED_DELAY_ELAPSED', ['DEFAULT_USED']),
    { settings: { defaultRetryDelaySeconds: 7 } },
  ),
  ...[0, -2, '3', false].flatMap((odd) => [
    delayCase(
      `backoffMultiplier ${JSON.stringify(odd)}: its default and a warning`,
      { ...backoff, attemptCount: 2, backoffMultiplier: odd },
      after(120_000, 'BACKOFF_WAIT', ['DEFAULT_USED']),
    ),
    delayCase(
      `maxDelaySeconds ${JSON.stringify(odd)}: its default and a warning`,
      { ...backoff, attemptCount: 9, maxDelaySeconds: odd },
      after(3_600_000, 'BACKOFF_WAIT', ['DEFAULT_USED']),
    ),
  ]),
  delayCase(
    'attemptCount missing: 1',
    { ...backoff, attemptCount: null },
    {
      ...elapsed,
      reason: 'BACKOFF_ELAPSED',
    },
  ),
  ...[0, -3, 1.5, '2', true].map((attemptCount) =>
    delayCase(
      `attemptCount ${JSON.stringify(attemptCount)}: 1 and a warning`,
      { ...backoff, attemptCount },
      { ...warned, reason: 'BACKOFF_ELAPSED' },
    ),
  ),
  delayCase(
    'exponentialBackoff not a boolean: the configured default and a warning',
    { ...fixed, attemptCount: 2, exponentialBackoff: 'false' },
    after(120_000, 'BACKOFF_WAIT', ['DEFAULT_USED']),
  ),
  delayCase(
    'exponentialBackoff not a boolean, and off by configuration',
    { ...fixed, attemptCount: 2, exponentialBackoff: 1 },
    warned,
    { settings: { enableExponentialBackoff: false } },
  ),
  delayCase(
    'jitterEnabled not a boolean, and off by configuration',
    { ...fixed, jitterEnabled: 'yes' },
    warned,
    {
      settings: { enableJitter: false },
    },
  ),
  delayCase(
    'zero delay',
    { ...jittered, currentTime: fixed.lastAttemptTime, retryDelaySeconds: 0 },
    { ...after(0, 'FIXED_DELAY_ELAPSED'), elapsedMs: 0 },
  ),
  delayCase(
    'an overflow: the cap and a warning',
    { ...backoff, attemptCount: 5000 },
    after(3_600_000, 'BACKOFF_WAIT', ['OVERFLOW_ERROR']),
  ),
  delayCase(
    'an overflow without a usable cap',
    { ...backoff, attemptCount: 5000, maxDelaySeconds: 1e306 },
    { ...failed, elapsedMs: 60_000, errors: ['OVERFLOW_ERROR'] },
  ),
  delayCase(
    'a delay that is not finite',
    { ...fixed, retryDelaySeconds: 1e306 },
    { ...failed, elapsedMs: 60_000, errors: ['CALCULATION_ERROR'] },
  ),
  delayCase('a fixed delay, over to the ms', fixed, elapsed),
  delayCase(
    'a fixed delay, 1 ms too soon',
    { ...fixed, currentTime: '2026-01-25T21:15:59.999Z' },
    { ...elapsed, matches: false, reason: 'TOO_SOON', elapsedMs: 59_999 },
  ),
  delayCase(
    'a last attempt with microseconds, half a ms too soon',
    { ...fixed, lastAttemptTime: '2026-01-25T21:15:00.000500Z' },
    {
      ...elapsed,
      matches: false,
      reason: 'TOO_SOON',
      elapsedMs: 59_999,
      dueAtMs: LAST_MS + 60_001,
    },
  ),
  delayCase(
    'both times with microseconds, over to the microsecond',
    {
      ...fixed,
      lastAttemptTime: '2026-01-25T21:15:00.000700Z',
      currentTime: '2026-01-25T21:16:00.000700Z',
    },
    { ...elapsed, dueAtMs: LAST_MS + 60_001 },
  ),
  delayCase(
    'zero delay, asked in the microsecond of the last attempt',
    {
      ...fixed,
      lastAttemptTime: '2026-01-25T21:15:00.000700Z',
      currentTime: '2026-01-25T21:15:00.000700Z',
      retryDelaySeconds: 0,
    },
    { ...after(0, 'FIXED_DELAY_ELAPSED'), elapsedMs: 0, dueAtMs: LAST_MS + 1 },
  ),
  delayCase(
    'a fixed delay has no cap',
    { ...fixed, retryDelaySeconds: 7200, maxDelaySeconds: 10 },
    after(7_200_000, 'TOO_SOON'),
  ),
  delayCase(
    'backoff: the delay grows with the attempt',
    { ...backoff, attemptCount: 3 },
    after(240_000, 'BACKOFF_WAIT'),
  ),
  delayCase(
    'backoff, over',
    { ...backoff, attemptCount: 3, retryDelaySeconds: 15 },
    { ...elapsed, reason: 'BACKOFF_ELAPSED' },
  ),
  delayCase(
    'the cap, over',
    { ...backoff, attemptCount: 30, maxDelaySeconds: 59 },
    after(59_000, 'MAXIMUM_DELAY_ELAPSED'),
  ),
  delayCase(
    'the delay is rounded up',
    { ...backoff, attemptCount: 2, retryDelaySeconds: 1, backoffMultiplier: 1.0001 },
    after(1001, 'BACKOFF_ELAPSED'),
  ),
  delayCase('only the jitter is still running', jittered, after(OWN_MS, 'JITTER_WAIT')),
  delayCase(
    'the jitter is over',
    { ...jittered, currentTime: '2026-01-25T21:16:06Z' },
    { ...after(OWN_MS, 'JITTER_ELAPSED'), elapsedMs: 66_000 },
  ),
  delayCase(
    'entityId outranks id',
    { ...jittered, entityId: 'order-18' },
    after(OTHER_MS, 'JITTER_WAIT'),
  ),
  delayCase('the key beside the entity outranks its id', jittered, after(OTHER_MS, 'JITTER_WAIT'), {
    key: 'order-18',
  }),
  delayCase(
    'without an id the jitter belongs to the last attempt',
    { ...jittered, id: null },
    after(KEYLESS_MS, 'JITTER_WAIT'),
  ),
  delayCase(
    'a set chosen by operationType',
    { ...fixed, retryDelaySeconds: null, operationType: 'payment' },
    after(5000, 'FIXED_DELAY_ELAPSED', ['DEFAULT_USED']),
    { settings: { sets: { payment: { defaultRetryDelaySeconds: 5 } } } },
  ),
  delayCase(
    'a set chosen by the context',
    { ...fixed, retryDelaySeconds: null, operationType: 'toString' },
    after(6000, 'FIXED_DELAY_ELAPSED', ['DEFAULT_USED']),
    { settings: { sets: { nightly: { defaultRetryDelaySeconds: 6 } } }, context: 'nightly' },
  ),
  delayCase(
    'the profile development',
    { ...fixed, retryDelaySeconds: null },
    after(5000, 'FIXED_DELAY_ELAPSED', ['DEFAULT_USED']),
    { settings: { profile: 'development' } },
  ),
];

/** The rules of the criteria as data, for everything that answers them: library, HTTP, workflow member. */
export const criterionCases: readonly CriterionCase[] = [...delayCases, ...limitCases];

export const nextRetryCases: readonly NextRetryCase[] = [
  { title: 'the due time', entity: fixed, expected: { fireAtMs: LAST_MS + 60_000, warnings: [] } },
  {
    title: 'the due time with backoff and jitter, by the key beside the entity',
    entity: jittered,
    key: 'order-18',
    expected: { fireAtMs: LAST_MS + OTHER_MS, warnings: [] },
  },
  {
    title: 'a last attempt with microseconds: the next whole ms',
    entity: { ...fixed, lastAttemptTime: '2026-01-25T21:15:00.000001Z' },
    expected: { fireAtMs: LAST_MS + 60_001, warnings: [] },
  },
  {
    title: 'the current time plays no part',
    entity: { ...fixed, currentTime: 'noon' },
    expected: { fireAtMs: LAST_MS + 60_000, warnings: [] },
  },
  {
    title: 'an odd field: its default and a warning',
    entity: { ...fixed, retryDelaySeconds: -1 },
    expected: { fireAtMs: LAST_MS + 60_000, warnings: ['DEFAULT_USED'] },
  },
  {
    title: 'an overflow: the cap',
    entity: { ...backoff, attemptCount: 5000 },
    expected: { fireAtMs: LAST_MS + 3_600_000, warnings: ['OVERFLOW_ERROR'] },
  },
  {
    title: 'no entity: the default delay',
    entity: null,
    expected: { fireAfterMs: 60_000, warnings: ['DATA_UNAVAILABLE'] },
  },
  {
    title: 'lastAttemptTime missing: the default delay of the set',
    entity: { operationType: 'payment' },
    settings: { sets: { payment: { defaultRetryDelaySeconds: 5 } } },
    expected: { fireAfterMs: 5000, warnings: ['DATA_UNAVAILABLE'] },
  },
  {
    title: 'lastAttemptTime does not parse: the default delay',
    entity: { ...fixed, lastAttemptTime: 'noon' },
    expected: { fireAfterMs: 60_000, warnings: ['INVALID_TIME'] },
  },
  {
    title: 'a delay that is not finite: the default delay',
    entity: { ...fixed, retryDelaySeconds: 1e306 },
    expected: { fireAfterMs: 60_000, warnings: ['CALCULATION_ERROR'] },
  },
  {
    title: 'a due time past every date: the last date',
    entity: { ...fixed, retryDelaySeconds: 1e15 },
    expected: { fireAtMs: 8_640_000_000_000_000, warnings: ['OVERFLOW_ERROR'] },
  },
];
