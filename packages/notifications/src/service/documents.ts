/** What is published: the bodies of dead letters, events and items of the inbox, as they go over a wire. Pure. */
import type { DeliveryAttempt, NotificationRecord, Publication } from '../model/notification.ts';
import { deliveryOf } from '../model/record.ts';

/** To `notification-events`. */
export interface NotificationEvent {
  event_type: string;
  notification_id: string;
  user_id: string;
  timestamp: string;
  data: Readonly<Record<string, unknown>>;
}

/** To `notifications.dead-letter`, and into the inbox: all that is needed to act on it. */
export interface DeadLetter {
  notification_id: string;
  device_id: string;
  user_id: string;
  priority: string;
  reason: string;
  error_code: string | null;
  error_message: string | null;
  attempt_number: number;
  retry_count: number;
  failed_at: string;
  expires_at: string;
  notification: Readonly<Record<string, unknown>>;
  data: Readonly<Record<string, unknown>> | null;
  source: string;
  idempotency_key: string;
  /** The last 100, oldest first. Of those that are too large together only the newer have what the push service answered. */
  attempts: readonly Readonly<Record<string, unknown>>[];
}

export function eventOf(
  { id, notification }: NotificationRecord,
  { type, atMs, data }: Extract<Publication, { to: 'event' }>,
): NotificationEvent {
  return {
    event_type: type,
    notification_id: id,
    user_id: notification.recipient.userId,
    timestamp: isoOf(atMs),
    data,
  };
}

/** That a delivery failed for good. An operator may have replayed it since. */
export type Ended = Extract<Publication, { to: 'dead_letter' | 'inbox' }>;

export function deadLetterOf(
  record: NotificationRecord,
  deviceId: string,
  { atMs, attempt, reason }: Ended,
  attempts: readonly DeliveryAttempt[],
): DeadLetter {
  const { notification } = record;
  const delivery = deliveryOf(record, deviceId);
  return {
    notification_id: record.id,
    device_id: deviceId,
    user_id: notification.recipient.userId,
    priority: notification.priority,
    reason: reason ?? 'PERMANENT',
    error_code: delivery?.failure?.code ?? null,
    error_message: delivery?.failure?.message ?? null,
    attempt_number: attempt ?? 0,
    retry_count: delivery?.retryCount ?? 0,
    failed_at: isoOf(atMs),
    expires_at: isoOf(notification.expiresAtMs),
    notification: notification.notification,
    data: notification.data ?? null,
    source: notification.source,
    idempotency_key: notification.idempotencyKey,
    attempts: attemptsOnWire(attempts),
  };
}

/** A dead letter with its content must fit into a message of Kafka, and into an item: 1 MiB. */
const MAX_ATTEMPTS_BYTES = 384 * 1024;
const SHORT_LENGTH = 100;

function attemptsOnWire(attempts: readonly DeliveryAttempt[]) {
  let leftBytes = MAX_ATTEMPTS_BYTES - attempts.length * SHORT_BYTES;
  const newestFirst = attempts.toReversed().map((attempt) => {
    const whole = attemptOnWire(attempt);
    leftBytes -= Buffer.byteLength(JSON.stringify(whole));
    return leftBytes >= 0 ? whole : shortened(whole);
  });
  return newestFirst.toReversed();
}

/** Of one that is shortened, at most: its device and its texts may need six bytes for a character. */
const SHORT_BYTES = 3 * 1024;

function shortened(whole: ReturnType<typeof attemptOnWire>): ReturnType<typeof attemptOnWire> {
  const { error_code: code, error_message: message } = whole;
  return {
    ...whole,
    platform_response: null,
    error_code: code?.slice(0, SHORT_LENGTH) ?? null,
    error_message: message?.slice(0, SHORT_LENGTH) ?? null,
  };
}

function attemptOnWire(attempt: DeliveryAttempt) {
  return {
    notification_id: attempt.notificationId,
    device_id: attempt.deviceId,
    attempt_number: attempt.attemptNumber,
    status: attempt.status,
    platform_response: attempt.platformResponse ?? null,
    error_code: attempt.errorCode ?? null,
    error_message: attempt.errorMessage ?? null,
    attempted_at: isoOf(attempt.attemptedAtMs),
  };
}

/** A time that no date can have must not keep a dead letter from being published. */
function isoOf(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? new Date(0).toISOString() : date.toISOString();
}
