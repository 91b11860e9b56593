/** What a wake-up makes of a record: the claim of a due retry, and how its attempt goes on. Pure. */
import type { Failure } from 'redrive';
import { forPeople, keptOf, type Moved, type MoveRules, told, written } from './moves.ts';
import type { DeliveryRecord, NotificationRecord } from './notification.ts';
import { afterQuietHours, quietHoursOf } from './quiet-hours.ts';
import { deliveryOf, withDeliveries } from './record.ts';
import { isFinal, walk } from './states.ts';

interface ClaimRequest {
  deviceId: string;
  attempt: number;
  nowMs: number;
  /** The token by which the owner is known. */
  lease: string;
  leaseMs: number;
  /** After so many lost leases the attempt is given up: it may be what kills its workers. */
  maxLostLeases: number;
  /** Somebody has looked: no outcome of this attempt was recorded. */
  isUnrecorded?: boolean;
}

/** Why a wake-up does nothing. */
export type DropReason = 'unreadable' | 'unknown' | 'stale' | 'over' | 'in_delivery';

export type Claimed =
  | { type: 'claimed'; delivery: DeliveryRecord }
  /** Not due yet, or not any more before the end of quiet hours. */
  | { type: 'again'; delayMs: number; isDeferred: boolean }
  | { type: 'dropped'; reason: DropReason }
  | { type: 'expired' }
  | { type: 'worker_lost' }
  /** Its worker was lost. Whether it recorded an outcome before is to be found out first. */
  | { type: 'lost_lease' };

/** Only AwaitingRetry, and Retrying whose lease is over, may be entered, and only by a wake-up for that attempt. */
export function claim(
  record: NotificationRecord | undefined,
  request: ClaimRequest,
  rules: MoveRules,
): Moved<Claimed> {
  const { deviceId, attempt, nowMs, lease, leaseMs } = request;
  const before = record && deliveryOf(record, deviceId);
  if (!before) return { result: { type: 'dropped', reason: 'unknown' } };
  if (isFinal(before.state)) return { result: { type: 'dropped', reason: 'over' } };
  if (before.attempt !== attempt) return { result: { type: 'dropped', reason: 'stale' } };
  // Its answer was lost: the claim is ours already.
  if (before.lease === lease) return { result: { type: 'claimed', delivery: before } };
  if (before.state === 'Retrying') {
    const isHeld = nowMs < (before.leaseUntilMs ?? 0);
    if (isHeld) return { result: { type: 'dropped', reason: 'in_delivery' } };
    if (before.handedOver) return ended(record, deviceId, before, nowMs, rules);
    if (!request.isUnrecorded) return { result: { type: 'lost_lease' } };
    if ((before.leases ?? 1) >= request.maxLostLeases) {
      return workerLost(record, deviceId, before, nowMs, rules);
    }
  } else if (nowMs < (before.dueAtMs ?? 0)) {
    return { result: { type: 'again', delayMs: before.dueAtMs! - nowMs, isDeferred: false } };
  }
  if (nowMs >= record.notification.expiresAtMs) {
    return ended(record, deviceId, before, nowMs, rules);
  }
  const quiet = deferred(record, deviceId, before, nowMs, rules);
  if (quiet) return quiet;
  const delivery: DeliveryRecord = {
    ...keptOf(before),
    state: walk(before.state, 'Retrying'),
    attempt,
    lease,
    leaseUntilMs: nowMs + leaseMs,
    leases: (before.leases ?? 0) + 1,
    wakeAtMs: nowMs + leaseMs,
  };
  return written(record, deviceId, delivery, nowMs, { type: 'claimed', delivery });
}

/** Quiet hours began while it waited. Whatever they defer past the notification's end is over. */
function deferred(
  record: NotificationRecord,
  deviceId: string,
  before: DeliveryRecord,
  nowMs: number,
  rules: MoveRules,
): Moved<Claimed> | undefined {
  const quietHours = quietHoursOf(record.notification);
  const dueAtMs = quietHours ? afterQuietHours(quietHours, nowMs) : nowMs;
  if (dueAtMs === nowMs) return undefined;
  if (dueAtMs > record.notification.expiresAtMs) {
    return ended(record, deviceId, before, nowMs, rules);
  }
  const after = awaiting(before, dueAtMs, rules);
  const result = { type: 'again', delayMs: dueAtMs - nowMs, isDeferred: true } as const;
  return written(record, deviceId, after, nowMs, result);
}

function ended(
  record: NotificationRecord,
  deviceId: string,
  before: DeliveryRecord,
  nowMs: number,
  rules: MoveRules,
): Moved<Claimed> {
  const after = expired(deviceId, before, nowMs, rules);
  return written(record, deviceId, after, nowMs, { type: 'expired' });
}

function expired(
  deviceId: string,
  before: DeliveryRecord,
  nowMs: number,
  rules: MoveRules,
): DeliveryRecord {
  const { attempt } = before;
  const over: DeliveryRecord = { ...keptOf(before), state: walk(before.state, 'Expired'), attempt };
  return told(over, 'expired', { device_id: deviceId, attempt_number: attempt }, nowMs, rules);
}

function workerLost(
  record: NotificationRecord,
  deviceId: string,
  before: DeliveryRecord,
  nowMs: number,
  rules: MoveRules,
): Moved<Claimed> {
  const { attempt, leases = 1 } = before;
  const failure: Failure = {
    class: 'technical',
    code: 'WORKER_LOST',
    message: `${leases} workers were lost while they delivered attempt ${attempt}.`,
  };
  const state = walk(before.state, 'DeliveryFailed', 'AssessingRetry', 'PermanentFailure');
  const over: DeliveryRecord = {
    ...keptOf(before, failure),
    state,
    attempt,
    reason: 'WORKER_LOST',
  };
  const data = { device_id: deviceId, attempt_number: attempt, reason: 'WORKER_LOST' };
  const after = told(forPeople(over, nowMs, rules), 'failed', data, nowMs, rules);
  return written(record, deviceId, after, nowMs, { type: 'worker_lost' });
}

/** Somebody else has it now. Whoever that is reports on it, or it ends with its notification. */
export function handedOver(
  record: NotificationRecord,
  deviceId: string,
  lease: string,
  nowMs: number,
): Moved<boolean> {
  const before = deliveryOf(record, deviceId);
  if (before?.lease !== lease) return { result: false };
  const { expiresAtMs } = record.notification;
  const after: DeliveryRecord = {
    ...before,
    handedOver: true,
    leaseUntilMs: expiresAtMs,
    wakeAtMs: before.unpublished.length > 0 ? Math.min(before.wakeAtMs!, expiresAtMs) : expiresAtMs,
  };
  return written(record, deviceId, after, nowMs, true);
}

/**
 * Nothing was sent, so the attempt is not spent: it waits again, and at the longest until its notification ends. `delayMs` is
 * what somebody else says.
 */
export function putBack(
  record: NotificationRecord,
  deviceId: string,
  lease: string,
  delayMs: number,
  nowMs: number,
  rules: MoveRules,
): Moved<{ dueAtMs: number } | undefined> {
  const before = deliveryOf(record, deviceId);
  if (before?.lease !== lease) return { result: undefined };
  const endsInMs = Math.max(0, record.notification.expiresAtMs - nowMs);
  const waitMs = delayMs >= 0 ? Math.min(Math.ceil(delayMs), endsInMs) : 0;
  const dueAtMs = nowMs + waitMs;
  return written(record, deviceId, awaiting(before, dueAtMs, rules), nowMs, { dueAtMs });
}

function awaiting(before: DeliveryRecord, dueAtMs: number, rules: MoveRules): DeliveryRecord {
  const state = walk(before.state, 'AwaitingRetry');
  const wakeAtMs = dueAtMs + rules.graceMs;
  return { ...keptOf(before), state, attempt: before.attempt, dueAtMs, wakeAtMs };
}

/** A wake-up could not be scheduled: somebody has to look soon, and less soon each time. */
export function lookSoon(
  record: NotificationRecord,
  { deviceId, attempt }: { deviceId: string; attempt: number },
  soonMs: number,
  nowMs: number,
): Moved<boolean> {
  const before = deliveryOf(record, deviceId);
  const isWaiting = before?.state === 'AwaitingRetry' || before?.state === 'Retrying';
  if (!isWaiting || before.attempt !== attempt) return { result: false };
  const pauseMs = Math.min(soonMs * 2 ** Math.min(before.wakes ?? 0, 30), MAX_SOON_MS);
  const wakeAtMs = Math.min(before.wakeAtMs ?? Infinity, nowMs + pauseMs);
  if (before.unscheduled && wakeAtMs === before.wakeAtMs) return { result: false };
  return written(record, deviceId, { ...before, wakeAtMs, unscheduled: true }, nowMs, true);
}

const MAX_SOON_MS = 60_000;

export interface WakePause {
  firstMs: number;
  longestMs: number;
}

/**
 * Somebody looks at all that is past its time. Written before anything is done about it: so one of many sweepers does it,
 * and one bad record never stands before the others. The looks get rarer while nothing changes. What ends with its
 * notification ends here, whether or not its queue hands a wake-up over.
 */
export function looked(
  record: NotificationRecord,
  nowMs: number,
  { firstMs, longestMs }: WakePause,
  rules: MoveRules,
): { record: NotificationRecord; deviceIds: string[]; expired: number } {
  const changed: [string, DeliveryRecord][] = [];
  const { expiresAtMs } = record.notification;
  let ends = 0;
  for (const [deviceId, delivery] of Object.entries(record.deliveries)) {
    if (delivery.wakeAtMs === undefined) continue;
    if (nowMs >= expiresAtMs && isLeft(delivery, nowMs)) {
      changed.push([deviceId, expired(deviceId, delivery, nowMs, rules)]);
      ends += 1;
      continue;
    }
    if (delivery.wakeAtMs > nowMs) continue;
    const wakes = (delivery.wakes ?? 0) + 1;
    const pauseMs = Math.min(firstMs * 2 ** Math.min(wakes - 1, 30), longestMs);
    const isEarly = delivery.state === 'AwaitingRetry' && delivery.unpublished.length === 0;
    const dueMs = isEarly ? (delivery.dueAtMs ?? 0) + rules.graceMs : 0;
    const wakeAtMs = Math.max(nowMs + pauseMs, dueMs);
    const { unscheduled: _, ...rest } = delivery;
    changed.push([deviceId, { ...rest, wakes, wakeAtMs }]);
  }
  if (changed.length === 0) return { record, deviceIds: [], expired: 0 };
  const deviceIds = changed.map(([deviceId]) => deviceId);
  return { record: withDeliveries(record, changed, nowMs), deviceIds, expired: ends };
}

/** Nobody of us is delivering it. */
function isLeft(
  { state, handedOver: isElsewhere, leaseUntilMs = 0 }: DeliveryRecord,
  nowMs: number,
) {
  return state === 'AwaitingRetry' || (isElsewhere === true && nowMs >= leaseUntilMs);
}
