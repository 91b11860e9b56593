import { describe, expect, it } from 'vitest';
import { assess } from './assess.ts';
import { claim, handedOver, looked, lookSoon, putBack } from './claims.ts';
import { failed, type MoveRules, published, succeeded } from './moves.ts';
import type { DeliveryRecord, Notification, NotificationRecord } from './notification.ts';
import { deliveryOf, newRecord, withDelivery } from './record.ts';
import { priorityPolicies } from './retry-config.ts';

type ClaimRequest = Parameters<typeof claim>[1];

const NOW = Date.UTC(2026, 0, 5, 12);
const rules: MoveRules = {
  graceMs: 30_000,
  publishWithinMs: 15_000,
  publishes: new Set(['dead_letter', 'inbox', 'event']),
};
const notification: Notification = {
  recipient: { userId: 'u' },
  priority: 'high',
  notification: { title: 't', body: 'b' },
  source: 's',
  idempotencyKey: 'k',
  ttlMs: 3_600_000,
  expiresAtMs: NOW + 3_600_000,
};
const waiting: DeliveryRecord = {
  state: 'AwaitingRetry',
  attempt: 2,
  retryCount: 1,
  countsFrom: 0,
  dueAtMs: NOW,
  wakeAtMs: NOW + 30_000,
  unpublished: [],
};
const recordOf = (delivery: Partial<DeliveryRecord> = {}, more: Partial<Notification> = {}) =>
  withDelivery(
    newRecord('n1', { ...notification, ...more }, NOW),
    'd1',
    { ...waiting, ...delivery },
    NOW,
  );
const request = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  deviceId: 'd1',
  attempt: 2,
  nowMs: NOW,
  lease: 'mine',
  leaseMs: 60_000,
  maxLostLeases: 3,
  ...more,
});
const inDelivery: Partial<DeliveryRecord> = {
  state: 'Retrying',
  lease: 'other',
  leaseUntilMs: NOW + 1,
  leases: 1,
};
const d1 = (record: NotificationRecord | undefined) => record && deliveryOf(record, 'd1');

describe('a claim', () => {
  it('enters what awaits this attempt and is due', () => {
    const { record, result } = claim(recordOf(), request(), rules);
    expect(result).toMatchObject({ type: 'claimed' });
    expect(d1(record)).toMatchObject({
      state: 'Retrying',
      attempt: 2,
      lease: 'mine',
      leases: 1,
      leaseUntilMs: NOW + 60_000,
      wakeAtMs: NOW + 60_000,
    });
    expect(d1(record)).not.toHaveProperty('dueAtMs');
  });

  it.each([
    ['unknown', undefined, {}],
    ['unknown', recordOf(), { deviceId: 'd2' }],
    ['stale', recordOf(), { attempt: 1 }],
    ['stale', recordOf(), { attempt: 3 }],
    ['over', recordOf({ state: 'DeliverySucceeded' }), {}],
    ['over', recordOf({ state: 'PermanentFailure' }), {}],
    ['in_delivery', recordOf(inDelivery), {}],
  ] as const)('of anything else is dropped: %s', (...[reason, record, more]) => {
    expect(claim(record, request(more), rules)).toEqual({ result: { type: 'dropped', reason } });
  });

  it('waits for its time', () => {
    const { record, result } = claim(recordOf({ dueAtMs: NOW + 5 }), request(), rules);
    expect(record).toBeUndefined();
    expect(result).toEqual({ type: 'again', delayMs: 5, isDeferred: false });
  });

  it('whose answer was lost is ours already', () => {
    const claimed = claim(recordOf(), request(), rules).record!;
    expect(claim(claimed, request(), rules)).toMatchObject({ result: { type: 'claimed' } });
    expect(claim(claimed, request(), rules).record).toBeUndefined();
  });

  it('of a lost lease asks first whether an outcome was recorded, then enters it again', () => {
    const lost = recordOf({ ...inDelivery, leaseUntilMs: NOW });
    expect(claim(lost, request(), rules)).toEqual({ result: { type: 'lost_lease' } });
    const { record, result } = claim(lost, request({ isUnrecorded: true }), rules);
    expect(result).toMatchObject({ type: 'claimed' });
    expect(d1(record)).toMatchObject({ attempt: 2, leases: 2, lease: 'mine' });
  });

  it('of an attempt that lost three workers gives it up, and tells people', () => {
    const lost = recordOf({ ...inDelivery, leaseUntilMs: NOW, leases: 3 });
    const { record, result } = claim(lost, request({ isUnrecorded: true }), rules);
    expect(result).toEqual({ type: 'worker_lost' });
    expect(d1(record)).toMatchObject({
      state: 'PermanentFailure',
      reason: 'WORKER_LOST',
      failure: {
        code: 'WORKER_LOST',
        message: '3 workers were lost while they delivered attempt 2.',
      },
      unpublished: [{ to: 'dead_letter' }, { to: 'inbox' }, { to: 'event', type: 'failed' }],
    });
  });

  it('past the end of the notification expires it, also where it was handed over', () => {
    const atEnd = request({ nowMs: notification.expiresAtMs });
    expect(claim(recordOf(), atEnd, rules)).toMatchObject({ result: { type: 'expired' } });
    const handed = handedOver(recordOf(inDelivery), 'd1', 'other', NOW).record!;
    expect(d1(handed)).toMatchObject({
      leaseUntilMs: notification.expiresAtMs,
      wakeAtMs: notification.expiresAtMs,
    });
    expect(claim(handed, request({ nowMs: NOW + 100_000 }), rules)).toMatchObject({
      result: { reason: 'in_delivery' },
    });
    expect(d1(claim(handed, atEnd, rules).record)).toMatchObject({ state: 'Expired' });
  });

  it('in quiet hours waits for their end, or ends where that is too late', () => {
    const quietHours = { from: '11:00', to: '12:30', timeZone: 'UTC' };
    const { record, result } = claim(recordOf({}, { quietHours }), request(), rules);
    expect(result).toEqual({ type: 'again', delayMs: 1_800_000, isDeferred: true });
    expect(d1(record)).toMatchObject({
      state: 'AwaitingRetry',
      attempt: 2,
      dueAtMs: NOW + 1_800_000,
    });
    const late = recordOf({}, { quietHours: { ...quietHours, to: '13:30' } });
    expect(claim(late, request(), rules)).toMatchObject({ result: { type: 'expired' } });
  });
});

describe('whoever has lost the lease', () => {
  const mine = claim(recordOf(), request(), rules).record!;
  const facts = { nowMs: NOW, policies: priorityPolicies, seed: 0 };
  const report = { notificationId: 'n1', deviceId: 'd1', attemptNumber: 2 };
  const assessment = assess(mine, report, facts);

  it('changes nothing', () => {
    expect(failed(mine, report, assessment, NOW, rules, 'other')).toEqual({ result: 'lease_lost' });
    expect(succeeded(mine, report, NOW, rules, 'other')).toEqual({ result: 'lease_lost' });
    expect(handedOver(mine, 'd1', 'other', NOW)).toEqual({ result: false });
    expect(putBack(mine, 'd1', 'other', 0, NOW, rules)).toEqual({ result: undefined });
  });

  it('is not its owner', () => {
    expect(failed(mine, report, assessment, NOW, rules, 'mine').result).toMatchObject({
      decision: 'scheduled',
    });
    expect(succeeded(mine, report, NOW, rules, 'mine').result).toBe('delivered');
    expect(putBack(mine, 'd1', 'mine', 7, NOW, rules).result).toEqual({ dueAtMs: NOW + 7 });
  });
});

describe('a look at what is past its time', () => {
  const pauses = { firstMs: 1000, longestMs: 8000 };

  it('is written down before anything is done, and gets rarer', () => {
    let record = recordOf({ wakeAtMs: NOW, dueAtMs: NOW - 30_000 });
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      const nowMs = record.wakeAtMs!;
      const look = looked(record, nowMs, pauses, rules);
      expect(look.deviceIds).toEqual(['d1']);
      waits.push(look.record.wakeAtMs! - nowMs);
      record = look.record;
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 8000, 8000]);
  });

  it('ends what waits, or lies in a topic, past the end of its notification', () => {
    const { expiresAtMs } = notification;
    const look = (delivery: Partial<DeliveryRecord>, nowMs = expiresAtMs) => {
      const { record, expired } = looked(recordOf(delivery), nowMs, pauses, rules);
      return { state: d1(record)!.state, expired };
    };
    const isOver = { state: 'Expired', expired: 1 };
    const wakeAtMs = expiresAtMs - 1;
    expect(look({ wakeAtMs }, expiresAtMs - 1)).toEqual({ state: 'AwaitingRetry', expired: 0 });
    expect(look({ wakeAtMs })).toEqual(isOver);
    const elsewhere = { ...inDelivery, wakeAtMs, handedOver: true, leaseUntilMs: expiresAtMs };
    expect(look(elsewhere as Partial<DeliveryRecord>)).toEqual(isOver);
    // A lost worker may have recorded that it worked: somebody has to look there first.
    expect(look({ ...inDelivery, wakeAtMs })).toEqual({ state: 'Retrying', expired: 0 });
    // What is over stays as it is.
    expect(look({ state: 'Skipped', wakeAtMs })).toEqual({ state: 'Skipped', expired: 0 });
  });

  it('leaves alone what has time, and comes back after the due time at the earliest', () => {
    expect(looked(recordOf(), NOW, pauses, rules).deviceIds).toEqual([]);
    const near = lookSoon(
      recordOf({ dueAtMs: NOW + 60_000, wakeAtMs: NOW + 90_000 }),
      { deviceId: 'd1', attempt: 2 },
      2000,
      NOW,
    );
    expect(d1(near.record)).toMatchObject({ wakeAtMs: NOW + 2000, unscheduled: true });
    const { record } = looked(near.record!, NOW + 2000, pauses, rules);
    expect(d1(record)).toMatchObject({ wakeAtMs: NOW + 90_000, wakes: 1 });
    expect(d1(record)).not.toHaveProperty('unscheduled');
    expect(
      lookSoon(recordOf({ state: 'Expired' }), { deviceId: 'd1', attempt: 2 }, 2000, NOW).record,
    ).toBeUndefined();
    expect(lookSoon(recordOf(), { deviceId: 'd1', attempt: 1 }, 2000, NOW).record).toBeUndefined();
  });
});

describe('a publication', () => {
  const event = { to: 'event', type: 'delivered', atMs: 5, data: {} } as const;
  const letter = { to: 'dead_letter', atMs: 5, attempt: 2 } as const;

  it('is forgotten once it is done, and nothing else is', () => {
    const flagged = recordOf({
      state: 'PermanentFailure',
      unpublished: [event, letter],
      wakeAtMs: NOW,
    });
    const first = published(flagged, 'd1', [event], NOW, rules).record;
    expect(d1(first)).toMatchObject({ unpublished: [letter], wakeAtMs: NOW });
    const second = published(first!, 'd1', [letter], NOW, rules).record;
    expect(d1(second)).toMatchObject({ unpublished: [] });
    expect(second).not.toHaveProperty('wakeAtMs');
    expect(published(second!, 'd1', [letter], NOW, rules)).toEqual({ result: false });
  });

  it('gives a waiting retry its usual wake-up back, unless that could not be scheduled', () => {
    const flagged = recordOf({ unpublished: [event], wakeAtMs: NOW + 15_000 });
    expect(d1(published(flagged, 'd1', [event], NOW, rules).record)).toMatchObject({
      wakeAtMs: NOW + 30_000,
    });
    const near = recordOf({ unpublished: [event], wakeAtMs: NOW + 2000, unscheduled: true });
    expect(d1(published(near, 'd1', [event], NOW, rules).record)).toMatchObject({
      wakeAtMs: NOW + 2000,
    });
  });
});
