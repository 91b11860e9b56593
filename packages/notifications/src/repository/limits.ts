/** What every repository takes, and what none does: the least that the databases have in common. */
import { LAST_DATE_MS } from 'redrive/internal';
import { NotificationError } from '../errors.ts';
import type { DeliveryAttempt, NotificationRecord } from '../model/notification.ts';
import type { InactiveDevice } from '../ports/repository.ts';

/** In characters: an index of PostgreSQL takes 2704 bytes, and an attempt has two identifiers in one. */
const MAX_IDENTIFIER_LENGTH = 255;
/** Of the record as JSON: as BSON it has at most 14 MiB then, and MongoDB takes 16. */
export const MAX_RECORD_BYTES = 2 * 1024 * 1024;
export const MAX_ATTEMPT_BYTES = 256 * 1024;
/** MongoDB takes 100, and a record needs a few of its own. */
const MAX_DEPTH = 64;

/** What a record may have while devices are added: its later changes, which nobody may refuse, need room too. */
const MAX_GROWING_BYTES = MAX_RECORD_BYTES / 2;
/** A record of fewer devices is never that large. */
const FEW_DEVICES = 64;
const sizes = new WeakMap<NotificationRecord, number>();

/** Whether a record still has room for one more device. */
export function hasRoom(record: NotificationRecord): boolean {
  if (Object.keys(record.deliveries).length < FEW_DEVICES) return true;
  let bytes = sizes.get(record);
  // Once for all reports of a batch.
  if (bytes === undefined) sizes.set(record, (bytes = Buffer.byteLength(JSON.stringify(record))));
  return bytes <= MAX_GROWING_BYTES;
}

/** Why no repository would take it; undefined: it would. */
export function recordFault(record: NotificationRecord): NotificationError | undefined {
  return faultOf(() => recordText(record));
}

/** The same of an attempt. */
export function attemptFault(attempt: DeliveryAttempt): NotificationError | undefined {
  return faultOf(() => attemptText(attempt));
}

/** The record as JSON. Throws where no repository takes it. */
export function recordText(record: NotificationRecord): string {
  const { id, notification, deliveries } = record;
  checkIdentifier('The id of a record', id);
  const of = `of record ${id}`;
  checkIdentifier(`The idempotency key ${of}`, notification.idempotencyKey);
  checkIdentifier(`The user id ${of}`, notification.recipient.userId);
  for (const deviceId of Object.keys(deliveries)) checkIdentifier(`A device ${of}`, deviceId);
  checkTime(`createdAtMs ${of}`, record.createdAtMs);
  checkTime(`updatedAtMs ${of}`, record.updatedAtMs);
  if (record.wakeAtMs !== undefined) checkTime(`wakeAtMs ${of}`, record.wakeAtMs);
  return textOf(`Record ${id}`, record, MAX_RECORD_BYTES);
}

/** The attempt as JSON. Throws where no repository takes it. */
export function attemptText(attempt: DeliveryAttempt): string {
  const { notificationId, deviceId, attemptNumber } = attempt;
  checkIdentifier('The notification of an attempt', notificationId);
  const of = `of an attempt of notification ${notificationId}`;
  checkIdentifier(`The device ${of}`, deviceId);
  if (!Number.isInteger(attemptNumber) || attemptNumber < 1 || attemptNumber > MAX_NUMBER) {
    throw invalid(`The number ${of} is ${attemptNumber}: give a whole number from 1.`);
  }
  checkTime(`attemptedAtMs ${of}`, attempt.attemptedAtMs);
  const name = `Attempt ${attemptNumber} of ${notificationId} on ${deviceId}`;
  return textOf(name, attempt, MAX_ATTEMPT_BYTES);
}

/** Of each device the latest time. Throws where no repository takes one of them. */
export function latestOf(devices: readonly InactiveDevice[]): InactiveDevice[] {
  const latest = new Map<string, InactiveDevice>();
  for (const device of devices) {
    const { deviceId, sinceMs, reason } = device;
    checkIdentifier('An inactive device', deviceId);
    checkTime(`sinceMs of device ${deviceId}`, sinceMs);
    textOf(`The reason of device ${deviceId}`, reason, MAX_ATTEMPT_BYTES);
    const known = latest.get(deviceId);
    if (!known || known.sinceMs < sinceMs) latest.set(deviceId, device);
  }
  return [...latest.values()];
}

/** The ids of which a record was given and none was written. */
export function notWritten(
  records: readonly NotificationRecord[],
  written: readonly boolean[],
): ReadonlySet<string> {
  const ids = new Set(records.map(({ id }) => id));
  for (const [i, { id }] of records.entries()) if (written[i]) ids.delete(id);
  return ids;
}

/** The reason is for people: it is stored without what some database does not take. */
export function cleanReason(reason: string): string {
  return reason.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** Whether it could be that of anything stored: an identifier that no repository takes is not asked for. */
export function isIdentifier(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text !== '' &&
    text.length <= MAX_IDENTIFIER_LENGTH &&
    !text.includes('\0') &&
    text.isWellFormed()
  );
}

/** A limit as databases take it. */
export function rowLimit(limit: number): number {
  return Math.min(Math.max(0, Math.floor(limit) || 0), MAX_ROWS);
}

const MAX_ROWS = 10_000;
const MAX_NUMBER = 2 ** 31 - 1;

function faultOf(make: () => unknown): NotificationError | undefined {
  try {
    make();
    return undefined;
  } catch (error) {
    if (error instanceof NotificationError) return error;
    throw error;
  }
}

function checkIdentifier(what: string, text: unknown): void {
  if (isIdentifier(text)) return;
  const shown = JSON.stringify(text)?.slice(0, 80);
  throw invalid(
    `${what} is ${shown}: give 1 to ${MAX_IDENTIFIER_LENGTH} characters without NUL and without half a surrogate pair.`,
  );
}

function checkTime(what: string, ms: unknown): void {
  if (Number.isInteger(ms) && (ms as number) >= 0 && (ms as number) <= LAST_DATE_MS) return;
  throw invalid(`${what} is ${String(ms)}: give whole ms since the epoch.`);
}

function textOf(what: string, value: object | string, maxBytes: number): string {
  if (isDeeperThan(value, MAX_DEPTH)) {
    throw invalid(`${what} has data nested over ${MAX_DEPTH} levels deep, or in a circle.`);
  }
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw invalid(`${what} is not JSON (${(error as Error).message}). Give plain data.`, error);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  throw new NotificationError(
    'RECORD_TOO_LARGE',
    `${what} has ${bytes} bytes as JSON, and at most ${maxBytes} are allowed. Keep large data elsewhere and refer to it.`,
  );
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((one) => isDeeperThan(one, levels - 1));
}

function invalid(message: string, cause?: unknown): NotificationError {
  return new NotificationError('INVALID_RECORD', message, cause === undefined ? {} : { cause });
}
