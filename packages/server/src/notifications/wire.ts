/** Notifications, reports and answers as the wire has them: pure. */
import type {
  DeliveryAttempt,
  DeliveryRecord,
  FailureAnswer,
  FailureReport,
  NewNotification,
  Notification,
  NotificationRecord,
  QuietHours,
  SuccessAnswer,
  SuccessReport,
} from '@redrive/notifications';
import type { Static } from 'typebox';
import type {
  FailureBody,
  GivenQuietHours,
  NotificationItem,
  SuccessBody,
} from '../http/schemas/notifications.ts';

type GivenItem = Static<typeof NotificationItem>;

/** Also of an item with faults: whoever looks for all of them asks what the rest would be. */
export function newNotificationOf(item: GivenItem): NewNotification {
  const { id, recipient, priority, notification, data, source, idempotency_key, ttl, ttl_ms } =
    item;
  const { expires_at, scheduled_at, quiet_hours } = item;
  const ttlMs = ttl_ms ?? (ttl === undefined ? undefined : msOf(ttl));
  const { user_id, device_ids, quiet_hours: ofUser } = Object(recipient) as typeof recipient;
  return {
    ...(id === undefined ? {} : { id }),
    recipient: {
      userId: user_id,
      ...(device_ids === undefined ? {} : { deviceIds: device_ids }),
      ...(ofUser === undefined ? {} : { quietHours: quietHoursOf(ofUser) }),
    },
    // Which ones there are the service says.
    priority: priority as NewNotification['priority'],
    notification,
    ...(data === undefined ? {} : { data }),
    source: source ?? 'api',
    ...(idempotency_key === undefined ? {} : { idempotencyKey: idempotency_key }),
    ...(ttlMs === undefined ? {} : { ttlMs }),
    ...(expires_at === undefined ? {} : { expiresAtMs: timeOf(expires_at) }),
    ...(scheduled_at === undefined ? {} : { scheduledAtMs: timeOf(scheduled_at) }),
    ...(quiet_hours === undefined ? {} : { quietHours: quietHoursOf(quiet_hours) }),
  };
}

/** Where it is none, NaN: what is no number may be something that cannot even be made one. */
function msOf(seconds: unknown): number {
  return typeof seconds === 'number' ? seconds * 1000 : NaN;
}

function timeOf(text: unknown): number {
  return typeof text === 'string' ? Date.parse(text) : NaN;
}

function quietHoursOf(given: Static<typeof GivenQuietHours>): QuietHours {
  const { from, to, time_zone } = Object(given) as typeof given;
  return { from, to, timeZone: time_zone };
}

export function failureOf(notificationId: string, body: Static<typeof FailureBody>): FailureReport {
  const { error_code, error_message, retry_after_ms } = body;
  return {
    ...successOf(notificationId, body),
    ...(error_code === undefined ? {} : { errorCode: error_code }),
    ...(error_message === undefined ? {} : { errorMessage: error_message }),
    ...(retry_after_ms === undefined ? {} : { retryAfterMs: retry_after_ms }),
  };
}

export function successOf(notificationId: string, body: Static<typeof SuccessBody>): SuccessReport {
  const { device_id, attempt_number, platform_response, attempted_at } = body;
  return {
    notificationId,
    deviceId: device_id,
    attemptNumber: attempt_number,
    ...(platform_response === undefined ? {} : { platformResponse: platform_response }),
    ...(attempted_at === undefined ? {} : { attemptedAtMs: timeOf(attempted_at) }),
  };
}

export function failureAnswerView({
  decision,
  lane,
  dueAtMs,
  delayMs,
  retryCount,
  status,
  explanation,
}: FailureAnswer) {
  return {
    decision,
    ...(lane === undefined ? {} : { lane }),
    ...(dueAtMs === undefined ? {} : { due_at: timeText(dueAtMs) }),
    ...(delayMs === undefined ? {} : { delay_ms: delayMs }),
    retry_count: retryCount,
    status,
    explanation,
  };
}

export function successAnswerView({ decision, retryCount, status, explanation }: SuccessAnswer) {
  return { decision, retry_count: retryCount, status, explanation };
}

/** What was asked for. */
export function notificationOnWire(notification: Notification) {
  const { recipient, priority, data, source, idempotencyKey, ttlMs, expiresAtMs, scheduledAtMs } =
    notification;
  const { quietHours } = notification;
  return {
    recipient: {
      user_id: recipient.userId,
      ...(recipient.deviceIds === undefined ? {} : { device_ids: [...recipient.deviceIds] }),
      ...(recipient.quietHours === undefined
        ? {}
        : { quiet_hours: quietHoursView(recipient.quietHours) }),
    },
    priority,
    notification: notification.notification,
    ...(data === undefined ? {} : { data }),
    source,
    idempotency_key: idempotencyKey,
    ttl: Math.ceil(ttlMs / 1000),
    expires_at: timeText(expiresAtMs),
    ...(scheduledAtMs === undefined ? {} : { scheduled_at: timeText(scheduledAtMs) }),
    ...(quietHours === undefined ? {} : { quiet_hours: quietHoursView(quietHours) }),
  };
}

function quietHoursView({ from, to, timeZone }: QuietHours) {
  return { from, to, time_zone: timeZone };
}

/** A record in a list. */
export function recordView(record: NotificationRecord) {
  return {
    id: record.id,
    ...notificationOnWire(record.notification),
    status: record.status,
    retry_count: record.retryCount,
    created_at: timeText(record.createdAtMs),
    updated_at: timeText(record.updatedAtMs),
  };
}

/** How it stands with each device. */
export function deliveryViews({ deliveries }: NotificationRecord) {
  return Object.entries(deliveries).map(([deviceId, delivery]) => deliveryView(deviceId, delivery));
}

function deliveryView(
  deviceId: string,
  { state, attempt, retryCount, dueAtMs, reason, failure }: DeliveryRecord,
) {
  return {
    device_id: deviceId,
    state,
    attempt_number: attempt,
    retry_count: retryCount,
    ...(dueAtMs === undefined ? {} : { due_at: timeText(dueAtMs) }),
    ...(reason === undefined ? {} : { reason }),
    ...(failure?.code === undefined ? {} : { error_code: failure.code }),
    ...(failure?.message === undefined ? {} : { error_message: failure.message }),
  };
}

export function attemptView(attempt: DeliveryAttempt) {
  return {
    device_id: attempt.deviceId,
    attempt_number: attempt.attemptNumber,
    status: attempt.status,
    ...(attempt.errorCode === undefined ? {} : { error_code: attempt.errorCode }),
    ...(attempt.errorMessage === undefined ? {} : { error_message: attempt.errorMessage }),
    ...(attempt.platformResponse === undefined
      ? {}
      : { platform_response: attempt.platformResponse }),
    attempted_at: timeText(attempt.attemptedAtMs),
  };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
