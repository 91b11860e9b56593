/** A report of an attempt, what is wrong with it, and what is answered. Pure. */
import { NotificationError } from '../errors.ts';
import type { Assessment, FailureReport } from '../model/assess.ts';
import type { Succeeded } from '../model/moves.ts';
import type {
  DeliveryAttempt,
  NotificationRecord,
  NotificationStatus,
} from '../model/notification.ts';
import { deliveryOf, MAX_DEVICES } from '../model/record.ts';
import { type Lane, laneOfPriority } from '../model/retry-config.ts';
import { attemptFault, hasRoom } from '../repository/limits.ts';
import type { Applied, ReadRecords } from './record-writer.ts';

/** An attempt that worked, as somebody reports it. */
export interface SuccessReport {
  notificationId: string;
  deviceId: string;
  attemptNumber: number;
  platformResponse?: unknown;
  attemptedAtMs?: number;
}

/** `lease`: of an attempt of our own, which counts only while its owner has it. */
export type Report =
  | { type: 'failure'; report: FailureReport; lease?: string }
  | { type: 'success'; report: SuccessReport; lease?: string };

export interface FailureAnswer {
  decision: Assessment['decision'];
  lane?: Lane;
  dueAtMs?: number;
  delayMs?: number;
  retryCount: number;
  status: NotificationStatus;
  explanation: string;
}

export interface SuccessAnswer {
  decision: 'delivered' | 'duplicate' | 'over';
  retryCount: number;
  status: NotificationStatus;
  explanation: string;
}

export type ReportAnswer =
  | ({ type: 'failure' } & FailureAnswer)
  | ({ type: 'success' } & SuccessAnswer)
  | { type: 'lease_lost' }
  | { type: 'rejected'; error: NotificationError };

export type Outcome = Assessment | Succeeded;

export function unknownNotification(id: string): NotificationError {
  const message = `There is no notification ${JSON.stringify(id)}. Create it first.`;
  return new NotificationError('NOTIFICATION_UNKNOWN', message, { ids: [id] });
}

/** Before anything is recorded. */
export function faultOf(
  attempt: DeliveryAttempt,
  { found, unreadable }: ReadRecords,
): NotificationError | undefined {
  const { notificationId: id, deviceId } = attempt;
  const bad = unreadable.get(id);
  if (bad) return bad;
  const record = found.get(id);
  if (!record) return unknownNotification(id);
  const { deviceIds } = record.notification.recipient;
  if (deviceIds && !deviceIds.includes(deviceId)) {
    const message = `Device ${JSON.stringify(deviceId)} is not one of the devices of notification ${id}. Report one of its devices, or create the notification without device_ids.`;
    return new NotificationError('DEVICE_UNKNOWN', message);
  }
  return deviceFault(record, deviceId) ?? roomFault(record, deviceId) ?? attemptFault(attempt);
}

function roomFault(record: NotificationRecord, deviceId: string): NotificationError | undefined {
  if (deliveryOf(record, deviceId) || hasRoom(record)) return undefined;
  const count = Object.keys(record.deliveries).length;
  const message = `Notification ${record.id} has ${count} devices, and its record has no room for more. Create another notification for more devices, or use shorter device ids.`;
  return new NotificationError('TOO_MANY_DEVICES', message);
}

/** Also where the change is applied: others may have added devices since the record was read. */
export function deviceFault(
  record: NotificationRecord,
  deviceId: string,
): NotificationError | undefined {
  if (deliveryOf(record, deviceId) || Object.keys(record.deliveries).length < MAX_DEVICES)
    return undefined;
  const message = `Notification ${record.id} has ${MAX_DEVICES} devices, which is the limit. Create another notification for more devices.`;
  return new NotificationError('TOO_MANY_DEVICES', message);
}

/**
 * What a delivery of our own answered may be more than can be stored. That it was made is recorded all the same: whoever found
 * nothing would make it once more.
 */
export function attemptOf(given: Report, nowMs: number): DeliveryAttempt {
  const attempt = wholeAttempt(given, nowMs);
  if (given.lease === undefined || !attemptFault(attempt)) return attempt;
  const { platformResponse: _, errorCode, errorMessage, ...rest } = attempt;
  return {
    ...rest,
    ...(typeof errorCode === 'string' ? { errorCode: errorCode.slice(0, KEPT_LENGTH) } : {}),
    ...(typeof errorMessage === 'string'
      ? { errorMessage: errorMessage.slice(0, KEPT_LENGTH) }
      : {}),
  };
}

const KEPT_LENGTH = 500;

function wholeAttempt({ type, report }: Report, nowMs: number): DeliveryAttempt {
  const {
    notificationId,
    deviceId,
    attemptNumber,
    platformResponse,
    attemptedAtMs = nowMs,
  } = report;
  const { errorCode, errorMessage, retryAfterMs }: Partial<FailureReport> = report;
  return {
    notificationId,
    deviceId,
    attemptNumber,
    status: type === 'success' ? 'delivered' : 'failed',
    ...(platformResponse === undefined ? {} : { platformResponse }),
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(errorMessage === undefined ? {} : { errorMessage }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    attemptedAtMs,
  };
}

export function answerOf(
  { report: { deviceId, attemptNumber } }: Report,
  applied: Applied<Outcome | 'lease_lost'>,
  nowMs: number,
): ReportAnswer {
  if ('error' in applied) return { type: 'rejected', error: applied.error };
  const { record, result } = applied;
  if (!record || result === 'lease_lost') return { type: 'lease_lost' };
  const { retryCount, status } = record;
  if (typeof result === 'string') {
    const explanation = successSentence(result, attemptNumber);
    return { type: 'success', decision: result, retryCount, status, explanation };
  }
  const { decision, explanation } = result;
  const delivery = deliveryOf(record, deviceId);
  if (
    delivery?.state !== 'AwaitingRetry' ||
    (decision !== 'scheduled' && decision !== 'duplicate')
  ) {
    return { type: 'failure', decision, retryCount, status, explanation };
  }
  const dueAtMs = delivery.dueAtMs!;
  const lane = laneOfPriority[record.notification.priority];
  const delayMs = Math.max(0, dueAtMs - nowMs);
  return { type: 'failure', decision, lane, dueAtMs, delayMs, retryCount, status, explanation };
}

function successSentence(result: Exclude<Succeeded, 'lease_lost'>, attempt: number): string {
  switch (result) {
    case 'delivered':
      return `Attempt ${attempt} delivered the notification to the device.`;
    case 'duplicate':
      return 'The delivery to this device was reported before.';
    case 'over':
      return 'The delivery had ended before. The success is recorded, so a replay delivers nothing.';
  }
}
