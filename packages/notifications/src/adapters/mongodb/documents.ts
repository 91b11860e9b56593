/**
 * Records as documents and back. A document has names in snake_case and times as dates, so that people and other
 * programs can query it. Every name and value comes back as it was, also those that nobody here knows.
 */
import type { DeliveryAttempt, NotificationRecord } from '../../model/notification.ts';
import { attemptOf, recordOf } from '../../repository/stored.ts';

export type Values = Record<string, unknown>;

/** A document of `notifications`: what was asked for, and beside it how it stands. */
export interface RecordDocument extends Values {
  _id: string;
  version: number;
  /** Who wrote it last: the call, not the process. */
  writer: string;
  /** It is being deleted. */
  pruned?: boolean;
}

/** Where the data is the users' own: names and values stay as they are. */
const opaque = new Set(['notification', 'data', 'platformResponse']);
const ofRecord = new Set([
  'deliveries',
  'status',
  'retryCount',
  'wakeAtMs',
  'createdAtMs',
  'updatedAtMs',
]);

/** Of the record's JSON. Fields of a record that are not known here are under `more`. */
export function documentOf(text: string, version: number, writer: string): RecordDocument {
  const { id, version: _, notification, deliveries, ...rest } = JSON.parse(text) as Values;
  const fields = Object.entries(rest);
  const known = Object.fromEntries(fields.filter(([name]) => ofRecord.has(name)));
  const more = Object.fromEntries(fields.filter(([name]) => !ofRecord.has(name)));
  return {
    _id: id as string,
    version,
    writer,
    ...(encoded(notification) as Values),
    ...(encoded(known) as Values),
    deliveries: Object.entries(deliveries as Values).map(([deviceId, delivery]) => ({
      device_id: deviceId,
      ...(encoded(delivery) as Values),
    })),
    ...(Object.keys(more).length > 0 ? { more: encoded(more) } : {}),
  };
}

/** Throws `RECORD_UNREADABLE` where something else wrote the document. */
export function recordIn(document: Values): NotificationRecord {
  const { _id, version, writer: _, pruned: __, deliveries, more, ...rest } = document;
  const fields = Object.entries(decoded(rest) as Values);
  return recordOf(String(_id), version, {
    ...Object.fromEntries(fields.filter(([name]) => ofRecord.has(name))),
    notification: Object.fromEntries(fields.filter(([name]) => !ofRecord.has(name))),
    deliveries: deliveriesIn(deliveries),
    ...(decoded(more ?? {}) as Values),
  });
}

export function attemptDocument(text: string): Values {
  return encoded(JSON.parse(text)) as Values;
}

export function attemptIn({ _id, ...rest }: Values): DeliveryAttempt {
  return attemptOf(String(_id), decoded(rest));
}

/** Undefined, and so unreadable, where it is not a list of deliveries that say whose they are. */
function deliveriesIn(list: unknown): Values | undefined {
  if (!Array.isArray(list)) return undefined;
  const entries = list.map((one: unknown) => {
    const { device_id: deviceId, ...delivery } = (one ?? {}) as Values;
    return [deviceId, decoded(delivery)] as const;
  });
  const isWhole = entries.every(([deviceId]) => typeof deviceId === 'string');
  return isWhole ? (Object.fromEntries(entries) as Values) : undefined;
}

function encoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(encoded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      if (opaque.has(name)) return [snake(name), escaped(one)];
      if (name === 'ttlMs') return ['ttl', one];
      return isTime(name, one)
        ? [snake(name.slice(0, -2)), new Date(one)]
        : [snake(name), encoded(one)];
    }),
  );
}

function decoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([stored, one]) => {
      const name = camel(stored);
      if (opaque.has(name)) return [name, unescaped(one)];
      if (name === 'ttl') return ['ttlMs', one];
      return one instanceof Date ? [`${name}Ms`, one.getTime()] : [name, decoded(one)];
    }),
  );
}

/** The users' data, whose names may be such that a database takes them for an operator or a path. */
function escaped(value: unknown): unknown {
  return renamed(value, escapeName);
}

function unescaped(value: unknown): unknown {
  return renamed(value, unescapeName);
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [rename(name), renamed(one, rename)]),
  );
}

/** `%` and two hexadecimal digits. An empty name is a `%` alone. `_bsontype` means something to the client library. */
function escapeName(name: string): string {
  if (name === '') return '%';
  return name.replace(/[%.\0]|^\$|^_(?=bsontype$)/g, percent);
}

function unescapeName(name: string): string {
  if (name === '%') return '';
  return name.replace(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCodePoint(parseInt(hex, 16)),
  );
}

function percent(character: string): string {
  return `%${character.codePointAt(0)!.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Every capital gets its underscore, so that the way back is the same for all names. */
function snake(name: string): string {
  const escapedName = escapeName(name).replaceAll('_', '%5F');
  return escapedName.replace(/(?<!%|%[0-9A-F])[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

function camel(name: string): string {
  return unescapeName(name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
}

/** A point in time, by its name. A duration is none: `retryAfterMs`, `ttlMs`. */
function isTime(name: string, value: unknown): value is number {
  return /^(?:at|.*(?:At|Until|Since))Ms$/.test(name) && Number.isInteger(value);
}
