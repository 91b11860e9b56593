import { ConfigError, type Fault } from 'redrive';
import { defaultOf, type Fields, readFields } from 'redrive/internal';
import type { UnreadableOptions } from '../../repository/unreadable.ts';

export interface MongodbNotificationsOptions extends UnreadableOptions {
  /** Where the servers are: `mongodb://user:password@host/database?replicaSet=rs0`, or `mongodb+srv://`. */
  url: string;
  /** Unless given: that of the URL, or `redrive`. */
  database?: string;
  /** Connections at once (10). */
  maxConnections?: number;
  /** How long a call may take, once it is sent (30 s). */
  statementTimeoutMs?: number;
  /** How long to look for a server that can be written to, and to wait for a connection (5 s). */
  connectTimeoutMs?: number;
}

export interface MongodbSettings {
  url: string;
  database: string;
  maxConnections: number;
  statementTimeoutMs: number;
  connectTimeoutMs: number;
  unreadable: UnreadableOptions;
}

const DAY_MS = 86_400_000;

const fields = {
  maxConnections: { kind: 'integer', min: 1, max: 1000, default: 10 },
  statementTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 30_000 },
  connectTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 5000 },
} as const satisfies Fields;

const others = ['url', 'database', 'onUnreadable'];

/** Checked once, every fault at once. */
export function readOptions(given: string | MongodbNotificationsOptions): MongodbSettings {
  const faults: Fault[] = [];
  const options = typeof given === 'string' ? { url: given } : { ...given };
  const { url, database = databaseIn(url) ?? 'redrive', onUnreadable, ...rest } = options;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  // Not the URL itself: a password may stand in it.
  if (!isUrl(url)) {
    fault(
      'url',
      'is not a URL as mongodb://user:password@host/database. Write special characters of the password as %2F, %40, %25 and so on.',
    );
  }
  if (typeof database !== 'string' || !/^[^/\\. "$*<>:|?\0]{1,63}$/.test(database)) {
    fault('database', 'is not a name that MongoDB takes for a database.');
  }
  if (onUnreadable !== undefined && typeof onUnreadable !== 'function') {
    fault('onUnreadable', 'is not a function.');
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The repository in MongoDB has faults:', faults);
  }
  const unreadable = onUnreadable ? { onUnreadable } : {};
  return { ...(values as unknown as MongodbSettings), url, database, unreadable };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

/** Read by hand: a URL of several hosts is none for `URL`. */
const host = String.raw`(?:\[[^\]]+\]|[^/@:,?]+)(?::\d{1,5})?`;
const shape = new RegExp(
  String.raw`^mongodb(?:\+srv)?:\/\/(?:[^/@]*@)?${host}(?:,${host})*(?:\/([^?]*))?(?:\?.*)?$`,
);

function isUrl(url: unknown): boolean {
  return typeof url === 'string' && shape.test(url) && decoded(url) !== undefined;
}

function databaseIn(url: unknown): string | undefined {
  const name = typeof url === 'string' ? shape.exec(url)?.[1] : undefined;
  return name ? decoded(name) : undefined;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
