/** What an event makes of a record: each is one write. Pure. */
import type { Failure } from 'redrive';
import type { Assessment, FailureReport } from './assess.ts';
import type { DeliveryRecord, EventType, NotificationRecord, Publication } from './notification.ts';
import { deliveryOf, withDelivery } from './record.ts';
import { laneOfPriority } from './retry-config.ts';
import { type Begin, isFinal, walk } from './states.ts';

/** The times that a write sets, and what is to be published. */
export interface MoveRules {
  /** A wake-up that is late by this is believed to be lost. */
  graceMs: number;
  /** A publication that is late by this is done again. */
  publishWithinMs: number;
  /** Which of them have somewhere to go. */
  publishes: ReadonlySet<Publication['to']>;
}

export interface Moved<R> {
  /** Absent: there is nothing to write. */
  record?: NotificationRecord;
  result: R;
}

/**
 * A failure was reported, or an attempt of our own has failed, and was assessed by this record. `lease`: only if its owner
 * still has it.
 */
export function failed(
  record: NotificationRecord,
  report: FailureReport,
  result: Assessment,
  nowMs: number,
  rules: MoveRules,
  lease?: string,
): Moved<Assessment | 'lease_lost'> {
  const { deviceId, attemptNumber } = report;
  const before = deliveryOf(record, deviceId);
  if (lease !== undefined && before?.lease !== lease) return { result: 'lease_lost' };
  if (result.decision === 'duplicate') {
    // Numbers of attempts go on across replays: none is used twice.
    const isAhead = before !== undefined && attemptNumber > before.attempt;
    if (!isAhead) return { result };
    return written(record, deviceId, { ...before, attempt: attemptNumber }, nowMs, result);
  }
  const after = assessedDelivery(record, before, report, result, nowMs, rules);
  return written(record, deviceId, after, nowMs, result);
}

function assessedDelivery(
  record: NotificationRecord,
  before: DeliveryRecord | undefined,
  { deviceId, attemptNumber }: FailureReport,
  assessment: Exclude<Assessment, { decision: 'duplicate' }>,
  nowMs: number,
  rules: MoveRules,
): DeliveryRecord {
  const from: DeliveryRecord['state'] | Begin = before?.state ?? '[*]';
  const { failure, explanation, decision } = assessment;
  const kept = keptOf(before, failure);
  const data = { device_id: deviceId, attempt_number: attemptNumber, explanation };
  switch (decision) {
    case 'scheduled': {
      const state = walk(
        from,
        'DeliveryFailed',
        'AssessingRetry',
        'SchedulingRetry',
        'AwaitingRetry',
      );
      const { dueAtMs, delayMs, lane } = assessment;
      const awaiting: DeliveryRecord = {
        ...kept,
        state,
        attempt: attemptNumber + 1,
        retryCount: kept.retryCount + 1,
        dueAtMs,
        wakeAtMs: dueAtMs + rules.graceMs,
      };
      const due = { lane, delay_ms: delayMs, due_at: new Date(dueAtMs).toISOString() };
      return told(awaiting, 'retry_scheduled', { ...data, ...due }, nowMs, rules);
    }
    case 'failed': {
      const state = walk(from, 'DeliveryFailed', 'AssessingRetry', 'PermanentFailure');
      const { reason } = assessment;
      const over: DeliveryRecord = { ...kept, state, attempt: attemptNumber, reason };
      return told(forPeople(over, nowMs, rules), 'failed', { ...data, reason }, nowMs, rules);
    }
    case 'skipped': {
      const state = walk(from, 'DeliveryFailed', 'AssessingRetry', 'Skipped');
      const over: DeliveryRecord = { ...kept, state, attempt: attemptNumber };
      return told(over, 'skipped', { ...data, reason: assessment.reason }, nowMs, rules);
    }
    case 'expired': {
      const state = walk(from, 'DeliveryFailed', 'AssessingRetry', 'Expired');
      const over: DeliveryRecord = { ...kept, state, attempt: attemptNumber };
      return told(
        over,
        'expired',
        { ...data, priority: record.notification.priority },
        nowMs,
        rules,
      );
    }
  }
}

export type Succeeded = 'delivered' | 'duplicate' | 'over' | 'lease_lost';

/** It worked. What a final state says is not changed any more, but by an operator. */
export function succeeded(
  record: NotificationRecord,
  { deviceId, attemptNumber }: { deviceId: string; attemptNumber: number },
  nowMs: number,
  rules: MoveRules,
  lease?: string,
): Moved<Succeeded> {
  const before = deliveryOf(record, deviceId);
  if (lease !== undefined && before?.lease !== lease) return { result: 'lease_lost' };
  if (before && isFinal(before.state)) {
    const isKnown = before.state === 'DeliverySucceeded' || before.deliveredLate === true;
    const result = before.state === 'DeliverySucceeded' ? 'duplicate' : 'over';
    if (isKnown && attemptNumber <= before.attempt) return { result };
    const attempt = Math.max(attemptNumber, before.attempt);
    const late = isKnown ? {} : { deliveredLate: true as const };
    return written(record, deviceId, { ...before, attempt, ...late }, nowMs, result);
  }
  const state = walk(before?.state ?? '[*]', 'DeliverySucceeded');
  const attempt = Math.max(attemptNumber, before?.state === 'Retrying' ? before.attempt : 0);
  const after: DeliveryRecord = { ...keptOf(before), state, attempt };
  const data = { device_id: deviceId, attempt_number: attemptNumber };
  return written(
    record,
    deviceId,
    told(after, 'delivered', data, nowMs, rules),
    nowMs,
    'delivered',
  );
}

export interface Replayed {
  result: 'scheduled' | 'waiting' | 'delivered' | 'expired' | 'unknown';
  attempt?: number;
}

/** An operator sends it once more: due now, its retries counted anew, the numbers of its attempts going on. */
export function replayed(
  record: NotificationRecord,
  deviceId: string,
  nowMs: number,
  rules: MoveRules,
): Moved<Replayed> {
  const before = deliveryOf(record, deviceId);
  if (!before) return { result: { result: 'unknown' } };
  if (before.state === 'DeliverySucceeded' || before.deliveredLate)
    return { result: { result: 'delivered' } };
  if (!isFinal(before.state)) return { result: { result: 'waiting', attempt: before.attempt } };
  if (before.state === 'Expired' || nowMs >= record.notification.expiresAtMs) {
    return { result: { result: 'expired' } };
  }
  const state = walk(before.state, 'SchedulingRetry', 'AwaitingRetry');
  const attempt = before.attempt + 1;
  const kept = keptOf(before, before.failure);
  const after: DeliveryRecord = {
    ...kept,
    state,
    attempt,
    countsFrom: before.attempt,
    retryCount: kept.retryCount + 1,
    dueAtMs: nowMs,
    wakeAtMs: nowMs + rules.graceMs,
  };
  const lane = laneOfPriority[record.notification.priority];
  const data = {
    device_id: deviceId,
    attempt_number: before.attempt,
    lane,
    delay_ms: 0,
    replay: true,
  };
  const event = told(after, 'retry_scheduled', data, nowMs, rules);
  return written(record, deviceId, event, nowMs, { result: 'scheduled', attempt });
}

/** What was published is forgotten; what was not stays. */
export function published(
  record: NotificationRecord,
  deviceId: string,
  done: readonly Publication[],
  nowMs: number,
  rules: MoveRules,
): Moved<boolean> {
  const before = deliveryOf(record, deviceId);
  if (!before) return { result: false };
  const keys = new Set(done.map(keyOf));
  const unpublished = before.unpublished.filter((each) => !keys.has(keyOf(each)));
  if (unpublished.length === before.unpublished.length) return { result: false };
  const { wakeAtMs: _, wakes: __, ...rest } = before;
  const isWanted = unpublished.length > 0 || before.unscheduled;
  const wakeAtMs = isWanted ? before.wakeAtMs : wakeOf(before, rules);
  const after = { ...rest, unpublished, ...(wakeAtMs === undefined ? {} : { wakeAtMs }) };
  return written(record, deviceId, after, nowMs, true);
}

function keyOf(publication: Publication): string {
  const { to, atMs } = publication;
  return to === 'event' ? `${to} ${publication.type} ${atMs}` : `${to} ${atMs}`;
}

/** When to look again at a delivery of which all is published. */
function wakeOf(delivery: DeliveryRecord, { graceMs }: MoveRules): number | undefined {
  const { state, dueAtMs = 0, leaseUntilMs } = delivery;
  if (isFinal(state)) return undefined;
  return state === 'Retrying' ? leaseUntilMs : dueAtMs + graceMs;
}

/** What stays of a delivery whatever becomes of it. */
export function keptOf(
  before: DeliveryRecord | undefined,
  failure?: Failure,
): Pick<DeliveryRecord, 'retryCount' | 'countsFrom' | 'unpublished' | 'failure'> {
  const last = failure ?? before?.failure;
  return {
    retryCount: before?.retryCount ?? 0,
    countsFrom: before?.countsFrom ?? 0,
    unpublished: before?.unpublished ?? [],
    ...(last ? { failure: last } : {}),
  };
}

/** With an event that is to be published. */
export function told(
  delivery: DeliveryRecord,
  type: EventType,
  data: Readonly<Record<string, unknown>>,
  nowMs: number,
  rules: MoveRules,
): DeliveryRecord {
  return flagged(delivery, [{ to: 'event', type, atMs: nowMs, data }], nowMs, rules);
}

/** With a dead letter and an item of the inbox that are to be published. */
export function forPeople(
  delivery: DeliveryRecord,
  nowMs: number,
  rules: MoveRules,
): DeliveryRecord {
  const { attempt, reason } = delivery;
  const ended = { atMs: nowMs, attempt, ...(reason ? { reason } : {}) };
  const both = [
    { to: 'dead_letter', ...ended },
    { to: 'inbox', ...ended },
  ] as const;
  return flagged(delivery, both, nowMs, rules);
}

function flagged(
  delivery: DeliveryRecord,
  publications: readonly Publication[],
  nowMs: number,
  { publishes, publishWithinMs }: MoveRules,
): DeliveryRecord {
  const wanted = publications.filter(({ to }) => publishes.has(to));
  const unpublished = [...delivery.unpublished, ...wanted];
  if (unpublished.length === 0) return delivery;
  const wakeAtMs = Math.min(delivery.wakeAtMs ?? Infinity, nowMs + publishWithinMs);
  return { ...delivery, unpublished, wakeAtMs };
}

export function written<R>(
  record: NotificationRecord,
  deviceId: string,
  delivery: DeliveryRecord,
  nowMs: number,
  result: R,
): { record: NotificationRecord; result: R } {
  return { record: withDelivery(record, deviceId, delivery, nowMs), result };
}
