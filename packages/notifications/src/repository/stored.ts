/** What was stored, read again: it may have been written by something else. */
import { NotificationError } from '../errors.ts';
import {
  type DeliveryAttempt,
  deliveryStates,
  type NotificationRecord,
  priorities,
  statuses,
} from '../model/notification.ts';

/** A record of its JSON. The row's id and version are those that count. Throws where it is not one. */
export function readRecord(id: string, version: unknown, text: unknown): NotificationRecord {
  return recordOf(id, version, parsed('Record', id, text));
}

/** The same of what was JSON. Fields that are not listed here are left as they are. */
export function recordOf(id: string, version: unknown, value: unknown): NotificationRecord {
  const found = { ...asObject(value), id, version };
  const fault = faultIn(found);
  if (fault !== undefined) throw unreadable('Record', id, fault);
  return found as unknown as NotificationRecord;
}

/** `name`: what to call it where it cannot be read. */
export function readAttempt(name: string, text: unknown): DeliveryAttempt {
  return attemptOf(name, parsed('Attempt', name, text));
}

export function attemptOf(name: string, value: unknown): DeliveryAttempt {
  const found = asObject(value);
  const fault =
    textIn(found, 'notificationId') ??
    textIn(found, 'deviceId') ??
    wholeIn(found, 'attemptNumber') ??
    choiceIn(found, 'status', ['delivered', 'failed']) ??
    wholeIn(found, 'attemptedAtMs');
  if (fault !== undefined) throw unreadable('Attempt', name, fault);
  return found as unknown as DeliveryAttempt;
}

type Values = Readonly<Record<string, unknown>>;

/** What every reader relies on: what is listed, sorted and decided by. */
function faultIn(record: Values): string | undefined {
  const asked = asObject(record['notification']);
  const deliveries = record['deliveries'];
  return (
    wholeIn(record, 'version') ??
    choiceIn(record, 'status', statuses) ??
    wholeIn(record, 'retryCount') ??
    wholeIn(record, 'createdAtMs') ??
    wholeIn(record, 'updatedAtMs') ??
    (record['wakeAtMs'] === undefined ? undefined : wholeIn(record, 'wakeAtMs')) ??
    textIn(asObject(asked['recipient']), 'userId') ??
    choiceIn(asked, 'priority', priorities) ??
    textIn(asked, 'idempotencyKey') ??
    wholeIn(asked, 'expiresAtMs') ??
    (isObject(asked['notification']) ? undefined : '`notification` is missing') ??
    (isObject(deliveries) ? undefined : '`deliveries` is missing') ??
    Object.values(deliveries as Values)
      .map(deliveryFault)
      .find((fault) => fault !== undefined)
  );
}

function deliveryFault(value: unknown): string | undefined {
  const delivery = asObject(value);
  return (
    choiceIn(delivery, 'state', deliveryStates) ??
    wholeIn(delivery, 'attempt') ??
    (Array.isArray(delivery['unpublished']) ? undefined : '`unpublished` is missing')
  );
}

function textIn(values: Values, name: string): string | undefined {
  return typeof values[name] === 'string' ? undefined : `\`${name}\` is not a text`;
}

function wholeIn(values: Values, name: string): string | undefined {
  return Number.isInteger(values[name]) ? undefined : `\`${name}\` is not a whole number`;
}

function choiceIn(values: Values, name: string, of: readonly string[]): string | undefined {
  return of.includes(values[name] as string)
    ? undefined
    : `\`${name}\` is none of ${of.join(', ')}`;
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function asObject(value: unknown): Values {
  return isObject(value) ? value : {};
}

function parsed(kind: string, name: string, text: unknown): unknown {
  try {
    return JSON.parse(text as string);
  } catch (error) {
    throw unreadable(kind, name, 'it is not JSON', error);
  }
}

function unreadable(kind: string, name: string, fault: string, cause?: unknown): NotificationError {
  const message = `${kind} ${name} cannot be read: ${fault}. Something else has written it: correct or delete it in the database.`;
  return new NotificationError('RECORD_UNREADABLE', message, { cause, ids: [name] });
}
