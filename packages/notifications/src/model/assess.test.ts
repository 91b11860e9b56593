import { replayAudit, decisionEntry, policyEntry } from 'redrive';
import { describe, expect, it } from 'vitest';
import { type AssessFacts, assess, type FailureReport } from './assess.ts';
import type { DeliveryRecord, Notification, NotificationRecord } from './notification.ts';
import { newRecord, withDelivery } from './record.ts';
import { priorityPolicies } from './retry-config.ts';

const NOW = Date.UTC(2026, 0, 5, 12);
const DAY = 86_400_000;
const facts: AssessFacts = { nowMs: NOW, policies: priorityPolicies, seed: 7 };

function recordOf(
  more: Partial<Notification> = {},
  delivery?: Partial<DeliveryRecord>,
): NotificationRecord {
  const notification: Notification = {
    recipient: { userId: 'u' },
    priority: 'high',
    notification: { title: 't', body: 'b' },
    source: 's',
    idempotencyKey: 'k',
    ttlMs: DAY,
    expiresAtMs: NOW + DAY,
    ...more,
  };
  const record = newRecord('n1', notification, NOW);
  if (!delivery) return record;
  const whole = {
    state: 'AwaitingRetry',
    attempt: 2,
    retryCount: 1,
    countsFrom: 0,
    unpublished: [],
    ...delivery,
  } as const;
  return withDelivery(record, 'd1', whole, NOW);
}

const report = (more: Partial<FailureReport> = {}): FailureReport => ({
  notificationId: 'n1',
  deviceId: 'd1',
  attemptNumber: 1,
  ...more,
});

describe('a failed delivery', () => {
  it('that nobody can name is retried', () => {
    expect(assess(recordOf(), report(), facts)).toMatchObject({
      decision: 'scheduled',
      lane: 'urgent',
      failure: { class: 'unknown' },
    });
  });

  it('gets the same time whenever it is asked about, and another one per device', () => {
    const first = assess(recordOf(), report(), facts);
    expect(assess(recordOf(), report(), facts)).toEqual(first);
    const other = assess(recordOf(), report({ deviceId: 'd2' }), facts);
    expect(other).not.toMatchObject({ dueAtMs: (first as { dueAtMs: number }).dueAtMs });
  });

  it('can be decided again from an audit trail', async () => {
    const { decided } = assess(recordOf(), report(), facts) as {
      decided: Parameters<typeof decisionEntry>[1];
    };
    const subject = { category: 'NOTIFICATION', operation: 'd1' };
    const timed = (entry: object, sequence: number) => ({
      timestamp: '2026-01-01T00:00:00Z',
      ...entry,
      redrive: { ...(entry as { redrive?: object }).redrive, instance: 'i', run: 1, sequence },
    });
    const trail = [
      timed(policyEntry(decided.policy), 1),
      timed(decisionEntry(subject, decided), 2),
    ];
    const replay = await replayAudit(trail as never);
    expect(replay).toMatchObject({ checked: 1, same: 1 });
  });

  it('waits as long as the push service asks, whatever the cap', () => {
    const asked = assess(recordOf(), report({ retryAfterMs: 3_600_000 }), facts);
    expect(asked).toMatchObject({ decision: 'scheduled' });
    const { delayMs } = asked as { delayMs: number };
    expect(delayMs).toBeGreaterThanOrEqual(3_600_000);
    expect(delayMs).toBeLessThanOrEqual(3_960_000);
  });

  it('is expired where the next retry would be due after the end', () => {
    const short = recordOf({ ttlMs: 20_000, expiresAtMs: NOW + 20_000 });
    expect(assess(short, report(), facts)).toMatchObject({ decision: 'expired' });
    const over = recordOf({ expiresAtMs: NOW });
    expect(assess(over, report(), facts)).toMatchObject({ decision: 'expired' });
    const asked = report({ retryAfterMs: 2 * DAY });
    expect(assess(recordOf(), asked, facts)).toMatchObject({ decision: 'expired' });
    const long = recordOf({ expiresAtMs: NOW + 30 * DAY });
    expect(assess(long, asked, facts)).toMatchObject({
      decision: 'failed',
      reason: 'RETRY_AFTER_TOO_LONG',
    });
  });

  it('of a notification that is scheduled is not retried before its time', () => {
    const later = recordOf({ scheduledAtMs: NOW + 3_600_000 });
    expect(assess(later, report(), facts)).toMatchObject({
      decision: 'scheduled',
      dueAtMs: NOW + 3_600_000,
    });
  });

  it('counts its attempts since the last replay, and goes on with their numbers', () => {
    const before = recordOf({}, { state: 'Retrying', attempt: 12, countsFrom: 9 });
    expect(assess(before, report({ attemptNumber: 12 }), facts)).toMatchObject({
      decision: 'scheduled',
    });
    expect(assess(before, report({ attemptNumber: 18 }), facts)).toMatchObject({
      decision: 'failed',
      reason: 'EXHAUSTED',
    });
  });

  it('is deferred to the end of quiet hours, and spread there', () => {
    const quietHours = { from: '12:00', to: '14:00', timeZone: 'UTC' };
    const answer = assess(recordOf({ quietHours }), report(), facts);
    expect(answer).toMatchObject({ decision: 'scheduled' });
    const { dueAtMs, explanation } = answer as { dueAtMs: number; explanation: string };
    const end = Date.UTC(2026, 0, 5, 14);
    expect(dueAtMs).toBeGreaterThanOrEqual(end);
    expect(dueAtMs).toBeLessThanOrEqual(end + 9000);
    expect(explanation).toContain('Quiet hours defer it to 2026-01-05T14:00:0');
    const ends = recordOf({ quietHours, expiresAtMs: end - 1 });
    expect(assess(ends, report(), facts)).toMatchObject({ decision: 'expired' });
    const ofUser = recordOf({ recipient: { userId: 'u', quietHours } });
    expect(assess(ofUser, report(), facts)).toMatchObject({ dueAtMs });
  });
});

describe('the answer of a push service', () => {
  const apns = (status: number, reason: string, more: object = {}) => ({
    platformResponse: { platform: 'apns', status, reason, ...more },
  });

  it('that the token is dead ends the delivery, and says since when', () => {
    expect(
      assess(recordOf(), report(apns(410, 'Unregistered', { timestamp: 5 })), facts),
    ).toMatchObject({
      decision: 'failed',
      reason: 'DEAD_TOKEN',
      deadSinceMs: 5,
    });
  });

  it('that the token is dead says nothing about a device that was registered since', () => {
    const dead = report(apns(410, 'Unregistered', { timestamp: NOW - 1000 }));
    const back = { ...facts, device: { active: true, registeredAtMs: NOW - 500 } };
    expect(assess(recordOf(), dead, back)).toMatchObject({
      decision: 'scheduled',
      failure: { class: 'transient' },
    });
    const before = { ...facts, device: { active: true, lastSeenMs: NOW - 2000 } };
    expect(assess(recordOf(), dead, before)).toMatchObject({
      decision: 'failed',
      reason: 'DEAD_TOKEN',
    });
  });

  it('that the message is wrong ends it, at the first attempt', () => {
    expect(assess(recordOf(), report(apns(413, 'PayloadTooLarge')), facts)).toMatchObject({
      decision: 'failed',
      reason: 'PERMANENT',
      explanation: 'The push service never delivers this message (PayloadTooLarge).',
    });
  });

  it('that the credentials are wrong ends it, and keeps the token', () => {
    const answer = assess(recordOf(), report(apns(403, 'InvalidProviderToken')), facts);
    expect(answer).toMatchObject({ decision: 'failed', reason: 'CONFIGURATION', platform: 'apns' });
    expect(answer).not.toHaveProperty('deadSinceMs');
  });

  it('that the provider token is too old is retried once', () => {
    const old = apns(403, 'ExpiredProviderToken');
    expect(assess(recordOf(), report(old), facts)).toMatchObject({ decision: 'scheduled' });
    const failure = { class: 'transient', code: 'ExpiredProviderToken' } as const;
    const twice = recordOf({}, { state: 'Retrying', failure });
    expect(assess(twice, report({ ...old, attemptNumber: 2 }), facts)).toMatchObject({
      decision: 'failed',
      reason: 'CONFIGURATION',
    });
  });
});

describe('the device', () => {
  it('that is inactive is skipped, one that nobody knows is not', () => {
    expect(assess(recordOf(), report(), { ...facts, device: { active: false } })).toMatchObject({
      decision: 'skipped',
      reason: 'device_inactive',
    });
    expect(assess(recordOf(), report(), { ...facts, device: {} })).toMatchObject({
      decision: 'scheduled',
    });
  });

  it('whose token is dead is skipped, until it is seen again', () => {
    const dead = { ...facts, inactiveSinceMs: NOW - 1000 };
    expect(assess(recordOf(), report(), dead)).toMatchObject({
      decision: 'skipped',
      reason: 'dead_token',
    });
    const seen = { ...dead, device: { active: true, lastSeenMs: NOW - 500 } };
    expect(assess(recordOf(), report(), seen)).toMatchObject({ decision: 'scheduled' });
    const unseen = { ...dead, device: { active: true, lastSeenMs: NOW - 5000 } };
    expect(assess(recordOf(), report(), unseen)).toMatchObject({ decision: 'skipped' });
    // That it was seen says nothing of its token where nobody says that it is active.
    const unsure = { ...dead, device: { lastSeenMs: NOW - 500 } };
    expect(assess(recordOf(), report(), unsure)).toMatchObject({ decision: 'skipped' });
  });

  it('does not matter where no attempt is left', () => {
    const last = report({ attemptNumber: 9 });
    expect(assess(recordOf(), last, { ...facts, device: { active: false } })).toMatchObject({
      reason: 'EXHAUSTED',
    });
  });
});
