import { ConfigError, type Fault, type Random } from 'redrive';
import { checkObject, defaultOf, type Fields, readFields, reportFault } from 'redrive/internal';
import type { DatabaseLimits, PostgresPool } from './database.ts';
import { MAX_NAME_BYTES } from '../names.ts';

export interface PostgresOptions {
  /** Where the database is: `postgres://user:password@host/database`. This, or `pool`. */
  url?: string;
  /** A `pg.Pool` of your own, which stays yours to end. Listening keeps one of its connections, migrating two. */
  pool?: PostgresPool;
  /** Leads straight to the server where `url` leads to a pooler: for notifications and migrations. */
  listenUrl?: string;
  /** Where the tables are (`public`). It is created if need be. */
  schema?: string;
  /** `auto`: creates and updates the tables. `check`: only makes sure that somebody did. */
  migrate?: 'auto' | 'check';
  /** False: no connection for notifications; what others store is found by polling. */
  listen?: boolean;
  /** Connections at once, the one for notifications not counted (8). */
  maxConnections?: number;
  /** How long a statement may take (30 s). */
  statementTimeoutMs?: number;
  /** How long to wait for a connection (5 s). */
  connectTimeoutMs?: number;
  /** How long to wait for rows that somebody else has locked (3 s). */
  lockTimeoutMs?: number;
  /** How long to wait for another process that migrates, and for tables in use (60 s). */
  migrationTimeoutMs?: number;
  /** How often the connection for notifications is tried, since such connections die silently (30 s). */
  listenCheckMs?: number;
  /** Hears of faults that no call fails by: an outage of notifications. */
  onFault?: (what: string, error: unknown) => void;
  /** Spreads pauses. */
  random?: Random;
}

export interface PostgresSettings {
  source: { url: string } | { pool: PostgresPool };
  listenUrl: string | undefined;
  schema: string;
  migrate: 'auto' | 'check';
  listen: boolean;
  maxConnections: number;
  limits: DatabaseLimits;
  migrationTimeoutMs: number;
  listenCheckMs: number;
  onFault: (what: string, error: unknown) => void;
  random: Random;
}

const DAY_MS = 86_400_000;

const fields = {
  migrate: { kind: 'choice', of: ['auto', 'check'], default: 'auto' },
  listen: { kind: 'boolean', default: true },
  maxConnections: { kind: 'integer', min: 1, max: 1000, default: 8 },
  statementTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 30_000 },
  connectTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 5000 },
  lockTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 3000 },
  migrationTimeoutMs: { kind: 'integer', min: 1, max: DAY_MS, default: 60_000 },
  listenCheckMs: { kind: 'integer', min: 1, max: DAY_MS, default: 30_000 },
} as const satisfies Fields;

export function readOptions(given: string | PostgresOptions): PostgresSettings {
  const faults: Fault[] = [];
  // Nothing at all is a missing URL, as is an object without one.
  const options = typeof given === 'string' ? { url: given } : (given ?? {});
  checkObject('The PostgreSQL store', options);
  const {
    url,
    pool,
    listenUrl,
    schema = 'public',
    onFault = reportFault,
    random = Math.random,
    ...rest
  } = options;
  const values = readFields(rest, fields, [...Object.keys(fields), ...others], '', faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  if ((url === undefined) === (pool === undefined))
    fault(
      'url',
      "is needed, or else `pool`, and not both: postgres('postgres://user:password@host/database').",
    );
  if (url !== undefined && !isUrl(url))
    fault('url', 'is not a URL as postgres://user:password@host/database.');
  if (listenUrl !== undefined && !isUrl(listenUrl))
    fault('listenUrl', 'is not a URL as postgres://user:password@host/database.');
  if (pool !== undefined && typeof pool?.connect !== 'function')
    fault('pool', 'is not a pool of `pg`.');
  if (
    typeof schema !== 'string' ||
    schema === '' ||
    schema.includes('\0') ||
    Buffer.byteLength(schema) > MAX_NAME_BYTES
  ) {
    fault('schema', `is not a name of 1 to ${MAX_NAME_BYTES} bytes.`);
  }
  if (typeof onFault !== 'function') fault('onFault', 'is not a function.');
  if (typeof random !== 'function') fault('random', 'is not a function.');
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The PostgreSQL store has faults:', faults);
  }
  const { statementTimeoutMs, connectTimeoutMs, lockTimeoutMs } =
    values as unknown as DatabaseLimits;
  return {
    source: pool ? { pool } : { url: url! },
    listenUrl,
    schema,
    migrate: values['migrate'] as 'auto' | 'check',
    listen: values['listen'] as boolean,
    maxConnections: values['maxConnections'] as number,
    limits: { statementTimeoutMs, connectTimeoutMs, lockTimeoutMs },
    migrationTimeoutMs: values['migrationTimeoutMs'] as number,
    listenCheckMs: values['listenCheckMs'] as number,
    onFault,
    random,
  };

  function fault(path: string, message: string): void {
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

/** Read by hand, and known here so that a misspelt one is told of. */
const others = ['url', 'pool', 'listenUrl', 'schema', 'onFault', 'random'];

/** `pg` takes anything for one, and then connects to a host of that name. */
function isUrl(text: unknown): boolean {
  return typeof text === 'string' && /^postgres(ql)?:\/\//.test(text);
}
