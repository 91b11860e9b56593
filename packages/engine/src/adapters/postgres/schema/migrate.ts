import type { Random } from 'redrive';
import { EngineError } from '../../../errors.ts';
import {
  adopt,
  checkFilled,
  demandFilled,
  dropOldIdentity,
  recognise,
  fillAll,
  keepFilled,
} from './adopt.ts';
import { addErased, auditIndexes } from './audit-schema.ts';
import type { Connections, Dedicated } from '../connection/connections.ts';
import { type Database, pause, type Session } from '../connection/database.ts';
import { faultOf, isLockTimeout, sqlState } from '../connection/faults.ts';
import { type Names, quoteName, quoteText } from '../names.ts';
import { addKept, splitState } from '../inbox/open-schema.ts';
import { numberOf, type Row } from '../rows.ts';
import {
  createQueue,
  createTables,
  createTrigger,
  type Index,
  oldestVersion,
  queueIndexes,
  schemaVersion,
} from './schema.ts';
import {
  closedIndexes,
  dropOldIndexes,
  inboxIndexes,
  upgrade,
  upgradedQueueIndexes,
} from './upgrade.ts';

export interface MigrationParts {
  database: Database;
  connections: Connections;
  names: Names;
  /** How long to wait for another process that migrates, and for the locks on a table in use. */
  patienceMs: number;
  random: Random;
}

/** What the tables are, and who may use them. */
interface Version {
  version: number;
  oldest: number;
}

/** Whether this program can work with the tables as they are. A newer schema is left alone where it may be used. */
export async function isCurrent({ database, names }: MigrationParts): Promise<boolean> {
  await checkServer(database);
  const found = await versionIn(database, names);
  if (found.oldest > schemaVersion) throw tooNew(found, names);
  return found.version >= schemaVersion;
}

/** Brings the tables to this program's schema, alone of all processes. Safe to run again after it was interrupted. */
export async function migrate(parts: MigrationParts): Promise<void> {
  if (await isCurrent(parts)) return;
  const { connections, names } = parts;
  const guard = await connections.dedicated();
  try {
    await waitForTurn(guard, parts);
    // Somebody else may have done it while we waited.
    if (await isCurrent(parts)) return;
    const worker = await connections.dedicated();
    try {
      const { version } = await versionIn(parts.database, names);
      await run(new Migration(worker, parts), names, version);
    } finally {
      await worker.end();
    }
  } catch (error) {
    throw sqlState(error) === '42501' ? missing(names, error) : faultOf(error);
  } finally {
    await guard.end();
  }
}

export function missing(names: Names, cause?: unknown): EngineError {
  return new EngineError(
    'SCHEMA_MISSING',
    `The schema ${quoteName(names.schema)} has no tables of Redrive's schema ${schemaVersion}, or not all of them. Run the migration once, with a role that may create tables.`,
    { cause },
  );
}

/** From nothing, from the document's table, or from an older schema. Every one of them goes through all schemas. */
async function run(migration: Migration, names: Names, version: number): Promise<void> {
  const table = await recognise(migration, names);
  if (table === 'none') {
    const indexes = indexesOf(names).map(([on, index]) => indexText(on, index, 'IF NOT EXISTS'));
    return migration.inTransaction(
      `${await createSchema(migration, names)} ${setVersion(names, schemaVersion)} ${createQueue(names)}
       ${createTables(names)} ${createTrigger(names)} ${upgrade(names)} ${splitState(names)} ${indexes.join('; ')};
       ${dropOldIndexes(names)} ${addKept(names)} ${addErased(names)}`,
    );
  }
  if (table === 'document') {
    await migration.inTransaction(
      `${setVersion(names, 0)} ${adopt(names)} ${createTables(names)} ${createTrigger(names)} ${upgrade(names)}
       ${splitState(names)}`,
    );
  } else if (!(await migration.has(names.lines))) {
    await migration.inTransaction(`${upgrade(names)} ${splitState(names)}`);
  } else if (!(await migration.has(names.open))) {
    // Before the others go: no list is without an index meanwhile.
    for (const index of inboxIndexes) await migration.build(names, names.inbox, index);
    await migration.inTransaction(splitState(names));
  }
  if (version === 0) {
    await fillAll(migration, names);
    // Each by itself: the check is made without keeping writers out, the rest takes no time.
    await migration.inTransaction(demandFilled(names));
    await migration.inTransaction(checkFilled(names));
  }
  for (const [on, index] of indexesOf(names)) await migration.build(names, on, index);
  const kept =
    version === 0 ? `${keepFilled(names)} ${await dropOldIdentity(migration, names)}` : '';
  await migration.inTransaction(
    `${kept} ${dropOldIndexes(names)} ${addKept(names)} ${addErased(names)} ${setVersion(names, schemaVersion)}`,
  );
}

/** Every index that is built without holding up those who write, with its table. */
function indexesOf(names: Names): [table: string, index: Index][] {
  return [
    ...[...queueIndexes, ...upgradedQueueIndexes].map((index): [string, Index] => [
      names.queue,
      index,
    ]),
    ...inboxIndexes.map((index): [string, Index] => [names.inbox, index]),
    ...closedIndexes.map((index): [string, Index] => [names.closed, index]),
    ...auditIndexes.map((index): [string, Index] => [names.audit, index]),
  ];
}

/** Only where it is missing: even IF NOT EXISTS needs the right to create one. */
async function createSchema(session: Session, names: Names): Promise<string> {
  const [row] = await session.query('SELECT to_regnamespace($1)', [quoteName(names.schema)]);
  return row?.[0] === null ? `CREATE SCHEMA ${quoteName(names.schema)};` : '';
}

/** Version 0: begun and not finished. */
function setVersion(names: Names, version: number): string {
  const oldest = version === 0 ? 0 : oldestVersion;
  return `CREATE TABLE IF NOT EXISTS ${names.version} (version integer NOT NULL, oldest integer NOT NULL);
    DELETE FROM ${names.version}; INSERT INTO ${names.version} VALUES (${version}, ${oldest});`;
}

/** Statements on a connection of their own, without the limits of daily work: an index may take its time. */
class Migration implements Session {
  readonly #worker: Dedicated;
  readonly #parts: MigrationParts;

  constructor(worker: Dedicated, parts: MigrationParts) {
    this.#worker = worker;
    this.#parts = parts;
  }

  async query(text: string, values?: unknown[]): Promise<Row[]> {
    const query = { text, ...(values ? { values } : {}), rowMode: 'array' };
    const { rows } = (await this.#worker.client.query(query)) as { rows?: Row[] };
    return rows ?? [];
  }

  /** A lock that is not had soon is let go again: whoever comes after us for the table would have to wait too. */
  async inTransaction(text: string): Promise<void> {
    const endMs = performance.now() + this.#parts.patienceMs;
    for (;;) {
      try {
        await this.query(
          `BEGIN; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0; SET LOCAL TimeZone = 'UTC'; ${text}; COMMIT`,
        );
        return;
      } catch (error) {
        await this.query('ROLLBACK');
        if (!isLockTimeout(error)) throw error;
        if (performance.now() > endMs) throw locked(this.#parts.names, error);
        await pause(200 + this.#parts.random() * 300);
      }
    }
  }

  /** Without holding up those who write. What an interrupted build left behind is of no use. */
  async build(names: Names, table: string, index: Index): Promise<void> {
    const name = `${quoteName(names.schema)}.${index.name}`;
    const [row] = await this.query(
      `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)`,
      [name],
    );
    if (row?.[0] === true) return;
    if (row) await this.query(`DROP INDEX CONCURRENTLY ${name}`);
    await this.query(indexText(table, index, 'CONCURRENTLY'));
  }

  async has(table: string): Promise<boolean> {
    const [row] = await this.query('SELECT to_regclass($1) IS NOT NULL', [table]);
    return row?.[0] === true;
  }
}

function indexText(table: string, { name, unique, on }: Index, how: string): string {
  return `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${how} ${name} ON ${table} ${on}`;
}

/**
 * Asks for the lock again and again instead of waiting in one statement: a waiting statement has a snapshot, and the
 * process that builds an index concurrently would wait for that in turn, for ever. The lock belongs to a transaction,
 * not to a session, so that it holds behind a pooler too.
 */
async function waitForTurn({ client }: Dedicated, { names, patienceMs, random }: MigrationParts) {
  const endMs = performance.now() + patienceMs;
  const key = `hashtextextended(${quoteText(`redrive:${names.schema}`)}, 0)`;
  for (;;) {
    const results = (await client.query({
      text: `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0;
        SELECT pg_try_advisory_xact_lock(${key}) AS is_ours`,
    })) as unknown as { rows: { is_ours: boolean }[] }[];
    if (results[2]?.rows[0]?.is_ours) return;
    await client.query({ text: 'ROLLBACK' });
    if (performance.now() > endMs) throw locked(names, undefined);
    await pause(50 + random() * 100);
  }
}

/** Version 0: nothing there, or a migration that is not finished. */
async function versionIn(database: Database, names: Names): Promise<Version> {
  const [row] = await database.queryAgain('SELECT to_regclass($1)', [names.version]);
  if (row![0] === null) return { version: 0, oldest: 0 };
  const [found] = await database.queryAgain(`SELECT version, oldest FROM ${names.version}`);
  return { version: numberOf(found?.[0] ?? 0), oldest: numberOf(found?.[1] ?? 0) };
}

const OLDEST_SERVER = 130_000;

async function checkServer(database: Database): Promise<void> {
  const [row] = await database.queryAgain(
    `SELECT current_setting('server_version_num'), current_setting('server_version'), current_setting('server_encoding')`,
  );
  const [number, name, encoding] = row!;
  if (numberOf(number) < OLDEST_SERVER) {
    throw new EngineError(
      'INVALID_ENGINE',
      `PostgreSQL 13 or later is needed; this is ${String(name)}.`,
    );
  }
  if (encoding !== 'UTF8') {
    throw new EngineError(
      'INVALID_ENGINE',
      `The database must have the encoding UTF8; this one has ${String(encoding)}.`,
    );
  }
}

function tooNew({ version, oldest }: Version, names: Names): EngineError {
  return new EngineError(
    'SCHEMA_TOO_NEW',
    `The tables in ${quoteName(names.schema)} have schema ${version}, which needs a Redrive that knows schema ${oldest} or later; this one knows ${schemaVersion}. Update this program.`,
  );
}

function locked(names: Names, cause: unknown): EngineError {
  return new EngineError(
    'MIGRATION_LOCKED',
    `Another process migrates ${quoteName(names.schema)}, or keeps its tables locked. Wait for it to end, or end it, and start again.`,
    { cause },
  );
}
