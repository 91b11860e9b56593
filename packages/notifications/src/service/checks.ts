/** What is wrong with what was given, all of it at once. Pure. */
import { canonicalJson } from 'redrive';
import { didYouMean, LAST_DATE_MS, nearest } from 'redrive/internal';
import {
  NotificationError,
  type NotificationErrorCode,
  type NotificationFault,
} from '../errors.ts';
import {
  type Notification,
  priorities,
  type Priority,
  type QuietHours,
  type Recipient,
} from '../model/notification.ts';
import type { FailureReport } from '../model/assess.ts';
import { quietHoursFaults } from '../model/quiet-hours.ts';
import { MAX_DEVICES } from '../model/record.ts';
import { unknownPriority } from '../model/retry-config.ts';

/** What a notification is created from. */
export interface NewNotification {
  /** 1 to 64 letters, digits, `.`, `_`, `-`; a UUID unless given. */
  id?: string;
  recipient: Recipient;
  priority: Priority;
  notification: Notification['notification'];
  data?: Readonly<Record<string, unknown>>;
  source: string;
  /** The same key again is the same notification. The id, unless given. */
  idempotencyKey?: string;
  /** How long it is worth delivering, from its creation or its scheduled time on: 24 h. */
  ttlMs?: number;
  /** Instead of `ttlMs`. */
  expiresAtMs?: number;
  scheduledAtMs?: number;
  quietHours?: QuietHours;
}

const DAY_MS = 86_400_000;
const DEFAULT_TTL_MS = DAY_MS;
const MAX_TTL_MS = 366 * DAY_MS;
const MAX_CONTENT_BYTES = 256 * 1024;
const MAX_NAME_LENGTH = 255;
const MAX_ATTEMPT_NUMBER = 1_000_000;
/** A clock that is further ahead than this is wrong. */
const MAX_SKEW_MS = DAY_MS;

/** Each of them, so that the compiler finds one that is missing here. */
const notificationNames: Record<keyof NewNotification, true> = {
  id: true,
  recipient: true,
  priority: true,
  notification: true,
  data: true,
  source: true,
  idempotencyKey: true,
  ttlMs: true,
  expiresAtMs: true,
  scheduledAtMs: true,
  quietHours: true,
};
const recipientNames: Record<keyof Recipient, true> = {
  userId: true,
  deviceIds: true,
  quietHours: true,
};
const reportNames: Record<keyof FailureReport, true> = {
  notificationId: true,
  deviceId: true,
  attemptNumber: true,
  attemptedAtMs: true,
  errorCode: true,
  errorMessage: true,
  platformResponse: true,
  retryAfterMs: true,
};

/** Throws one error that lists every fault. */
export function checkedNotification(
  given: NewNotification,
  id: string,
  nowMs: number,
): Notification {
  examined(given, id).done('INVALID_NOTIFICATION', 'The notification has faults:');
  const { recipient, priority, notification, data, source, quietHours, scheduledAtMs } = given;
  const { idempotencyKey = id, ttlMs: ttl } = given;
  const startMs = Math.max(nowMs, scheduledAtMs ?? 0);
  const ttlMs =
    given.expiresAtMs === undefined
      ? (ttl ?? DEFAULT_TTL_MS)
      : Math.max(0, given.expiresAtMs - startMs);
  return {
    recipient,
    priority,
    notification,
    ...(data === undefined ? {} : { data }),
    source,
    idempotencyKey,
    ttlMs,
    expiresAtMs: given.expiresAtMs ?? startMs + ttlMs,
    ...(scheduledAtMs === undefined ? {} : { scheduledAtMs }),
    ...(quietHours === undefined ? {} : { quietHours }),
  };
}

/** Every fault of what a notification would be created from, whatever its fields hold. Nothing is created. */
export function notificationFaults(given: NewNotification): readonly NotificationFault[] {
  return examined(given, given.id ?? 'new').faultsAs('INVALID_NOTIFICATION');
}

function examined(given: NewNotification, id: string): Check {
  const check = new Check();
  const { recipient, priority, notification, data, source, quietHours, scheduledAtMs } = given;
  check.names(given, notificationNames, '');
  check.names(recipient, recipientNames, 'recipient.');
  check.that(
    typeof id === 'string' && /^[\w.-]{1,64}$/.test(id),
    'id',
    'Give 1 to 64 letters, digits, dots, hyphens or underscores.',
  );
  if (!priorities.includes(priority))
    check.fault('priority', unknownPriority(priority).message, 'UNKNOWN_PRIORITY');
  // Left out, it is the id, of which that was said.
  if (given.idempotencyKey !== undefined) check.name(given.idempotencyKey, 'idempotency_key');
  check.name(source, 'source');
  check.recipient(recipient);
  check.content(notification, data);
  check.quietHours(quietHours, 'quiet_hours');
  check.time(scheduledAtMs, 'scheduled_at');
  check.time(given.expiresAtMs, 'expires_at');
  const { ttlMs: ttl } = given;
  const isTtl = ttl === undefined || (Number.isInteger(ttl) && ttl > 0 && ttl <= MAX_TTL_MS);
  check.that(isTtl, 'ttl', 'Give a whole number of milliseconds above 0, and at most 366 days.');
  const isOne = ttl === undefined || given.expiresAtMs === undefined;
  check.that(isOne, 'expires_at', 'Give either ttl or expires_at.');
  return check;
}

/** Whether the same was asked for: a time to live counts, the time that follows from it does not. */
export function isSameRequest(
  stored: Notification,
  asked: Notification,
  given: NewNotification,
): boolean {
  const comparable = ({ ttlMs, expiresAtMs, ...rest }: Notification) =>
    canonicalJson({ ...rest, end: given.expiresAtMs === undefined ? ttlMs : expiresAtMs });
  return comparable(stored) === comparable(asked);
}

interface GivenReport {
  notificationId: string;
  deviceId: string;
  attemptNumber: number;
  retryAfterMs?: number;
  attemptedAtMs?: number;
}

export function checkReport(report: GivenReport, nowMs: number): void {
  examinedReport(report, nowMs).done('INVALID_REPORT', 'The report has faults:');
}

/** Every fault of a report, whatever its fields hold. Nothing is reported. */
export function reportFaults(report: GivenReport, nowMs: number): readonly NotificationFault[] {
  return examinedReport(report, nowMs).faultsAs('INVALID_REPORT');
}

function examinedReport(report: GivenReport, nowMs: number): Check {
  const check = new Check();
  check.names(report, reportNames, '');
  const { notificationId, deviceId, attemptNumber, retryAfterMs, attemptedAtMs } = report;
  check.name(notificationId, 'notification_id');
  check.name(deviceId, 'device_id');
  const isNumber =
    Number.isInteger(attemptNumber) && attemptNumber >= 1 && attemptNumber <= MAX_ATTEMPT_NUMBER;
  check.that(
    isNumber,
    'attempt_number',
    `Give a whole number from 1 to ${MAX_ATTEMPT_NUMBER}: 1 is the first delivery.`,
  );
  const isWait = retryAfterMs === undefined || (Number.isFinite(retryAfterMs) && retryAfterMs >= 0);
  check.that(isWait, 'retry_after_ms', 'Give a number of milliseconds from 0.');
  check.time(attemptedAtMs, 'attempted_at');
  const isAhead = typeof attemptedAtMs === 'number' && attemptedAtMs > nowMs + MAX_SKEW_MS;
  check.that(
    !isAhead,
    'attempted_at',
    'The time is more than a day ahead. Set the clock of the reporting host.',
  );
  return check;
}

class Check {
  readonly #faults: NotificationFault[] = [];

  fault(path: string, message: string, code: NotificationErrorCode = 'INVALID_NOTIFICATION'): void {
    this.#faults.push({ path, code, message });
  }

  that(isRight: boolean, path: string, message: string): void {
    if (!isRight) this.fault(path, message);
  }

  /** What is misspelt would be ignored. The names of the HTTP API are a usual slip in a program. */
  names(given: object, known: Readonly<Record<string, true>>, under: string): void {
    for (const name of Object.keys(Object(given) as object)) {
      if (Object.hasOwn(known, name)) continue;
      const own = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      const hint = Object.hasOwn(known, own)
        ? `In a program this field is called ${own}.`
        : `There is no such field.${didYouMean(nearest(name, Object.keys(known)))}`;
      this.fault(`${under}${name}`, hint);
    }
  }

  name(value: unknown, path: string): void {
    const isName = typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH;
    const isText = isName && !value.includes('\0') && value.isWellFormed();
    this.that(isText, path, `Give a text of 1 to ${MAX_NAME_LENGTH} characters.`);
  }

  time(value: number | undefined, path: string): void {
    const isTime =
      value === undefined || (Number.isInteger(value) && value >= 0 && value <= LAST_DATE_MS);
    this.that(isTime, path, 'Give a time.');
  }

  recipient(recipient: Recipient): void {
    const { userId, deviceIds, quietHours } = Object(recipient) as Partial<Recipient>;
    this.name(userId, 'recipient.user_id');
    this.quietHours(quietHours, 'recipient.quiet_hours');
    if (deviceIds === undefined) return;
    const isList =
      Array.isArray(deviceIds) && deviceIds.length > 0 && deviceIds.length <= MAX_DEVICES;
    this.that(
      isList,
      'recipient.device_ids',
      `Give 1 to ${MAX_DEVICES} devices, or leave the field out.`,
    );
    if (isList)
      for (const [i, id] of deviceIds.entries()) this.name(id, `recipient.device_ids.${i}`);
  }

  content(notification: Notification['notification'], data: unknown): void {
    const { title, body } = Object(notification) as Record<string, unknown>;
    this.that(typeof title === 'string', 'notification.title', 'Give a text.');
    this.that(typeof body === 'string', 'notification.body', 'Give a text.');
    const isData =
      data === undefined || (typeof data === 'object' && data !== null && !Array.isArray(data));
    this.that(isData, 'data', 'Give an object, or leave the field out.');
    const isSmall = sizeOf({ notification, data }) <= MAX_CONTENT_BYTES;
    this.that(
      isSmall,
      'notification',
      `Notification and data have more than ${MAX_CONTENT_BYTES} bytes together.`,
    );
  }

  quietHours(quietHours: QuietHours | undefined, path: string): void {
    if (quietHours === undefined) return;
    const faults = quietHoursFaults(Object(quietHours) as QuietHours);
    for (const { field, message } of faults) {
      this.fault(`${path}.${field}`, message, 'INVALID_QUIET_HOURS');
    }
  }

  /** Those without a code of their own have this one. */
  faultsAs(code: NotificationErrorCode): NotificationFault[] {
    return this.#faults.map((fault) =>
      fault.code === 'INVALID_NOTIFICATION' ? { ...fault, code } : fault,
    );
  }

  /** The code that all faults share is the error's code. */
  done(code: NotificationErrorCode, message: string): void {
    const faults = this.faultsAs(code);
    const [first] = faults;
    if (!first) return;
    const own = faults.every((fault) => fault.code === first.code) ? first.code : code;
    const list = faults.map((fault) => `${fault.path}: ${fault.message}`).join(' ');
    throw new NotificationError(own, `${message} ${list}`, { faults });
  }
}

function sizeOf(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value));
  } catch {
    return Infinity;
  }
}
