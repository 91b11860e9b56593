/** Sticky sessions in a table of PostgreSQL. */
import { EngineError, isEngineError } from '../../errors.ts';
import {
  PRUNE_AT_ONCE,
  PRUNE_EVERY_MS,
  sessionId,
  type SharedStickyOptions,
  type SharedStickyStore,
} from '../../ports/sticky.ts';
import { connectionsOf } from './connection/connections.ts';
import { Database } from './connection/database.ts';
import { quoteName, quoteText } from './names.ts';
import { type PostgresOptions, readOptions } from './connection/options.ts';
import { numberOf } from './rows.ts';

/** A router waits for its sessions for a second. */
const LIMIT_MS = 1000;

export type PostgresStickyOptions = Pick<PostgresOptions, 'url' | 'pool' | 'schema'> &
  SharedStickyOptions & {
    /** Connections at once (2). */
    maxConnections?: number;
  };

/**
 * The table `redrive_sticky` is made with the first use, unlogged: a crash of the server loses sessions, which nothing else
 * depends on.
 */
export function postgresSticky(given: string | PostgresStickyOptions): SharedStickyStore {
  const { now = Date.now, ...options } = typeof given === 'string' ? { url: given } : (given ?? {});
  const settings = readOptions({
    maxConnections: 2,
    statementTimeoutMs: LIMIT_MS,
    connectTimeoutMs: LIMIT_MS,
    lockTimeoutMs: LIMIT_MS,
    ...options,
  });
  const { source, limits, maxConnections, schema, random } = settings;
  const connections = connectionsOf(source, limits, maxConnections);
  connections.begin();
  const database = new Database(connections, limits, random);
  const table = tableIn(schema);
  let isClosed = false;
  let making: Promise<void> | undefined;
  let prunedAt = -Infinity;

  /** Where the table is missing, it is made and the statement sent again. */
  async function use(text: string, values: unknown[]) {
    if (isClosed) throw new EngineError('STORE_UNAVAILABLE', 'The store of sessions was closed.');
    try {
      return await database.queryAgain(text, values);
    } catch (error) {
      if (!isMissing(error)) throw error;
      making ??= makeStickyTable(database, schema).finally(() => (making = undefined));
      await making;
      return database.queryAgain(text, values);
    }
  }

  return {
    async get(key) {
      const [row] = await use(
        `SELECT provider, expires_at_ms FROM ${table} WHERE id = $1 AND expires_at_ms > $2`,
        [sessionId(key), Math.floor(now())],
      );
      return row && { provider: row[0] as string, expires_at_ms: numberOf(row[1]) };
    },
    async set(key, { provider, expires_at_ms: until }) {
      await use(
        `INSERT INTO ${table} (id, provider, expires_at_ms) VALUES ($1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, expires_at_ms = excluded.expires_at_ms`,
        [sessionId(key), provider, Math.floor(until)],
      );
      if (now() - prunedAt < PRUNE_EVERY_MS) return;
      prunedAt = now();
      await use(
        `DELETE FROM ${table} WHERE id IN
         (SELECT id FROM ${table} WHERE expires_at_ms <= $1 LIMIT ${PRUNE_AT_ONCE} FOR UPDATE SKIP LOCKED)`,
        [Math.floor(now())],
      );
    },
    async delete(key) {
      await use(`DELETE FROM ${table} WHERE id = $1`, [sessionId(key)]);
    },
    async close() {
      isClosed = true;
      await connections.end();
    },
  };
}

function isMissing(error: unknown): boolean {
  return isEngineError(error) && error.code === 'SCHEMA_MISSING';
}

function tableIn(schema: string): string {
  return `${quoteName(schema)}.redrive_sticky`;
}

/** Under a lock: two instances that make the same table at once fail, even with IF NOT EXISTS. */
export async function makeStickyTable(database: Database, schema: string): Promise<void> {
  const table = tableIn(schema);
  await database.transaction(async (session) => {
    await session.query(
      `SELECT pg_advisory_xact_lock(hashtextextended(${quoteText(`redrive:sticky:${schema}`)}, 0))`,
    );
    const [row] = await session.query('SELECT to_regnamespace($1)', [quoteName(schema)]);
    if (row?.[0] === null) await session.query(`CREATE SCHEMA ${quoteName(schema)}`);
    await session.query(`CREATE UNLOGGED TABLE IF NOT EXISTS ${table} (
      id text COLLATE "C" PRIMARY KEY,
      provider text NOT NULL,
      expires_at_ms bigint NOT NULL
    )`);
    await session.query(
      `CREATE INDEX IF NOT EXISTS redrive_sticky_expiry ON ${table} (expires_at_ms)`,
    );
  });
}
