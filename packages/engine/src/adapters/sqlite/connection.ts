import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { EngineError } from '../../errors.ts';
import { isCannotOpen } from './faults.ts';
import { assertLocal } from './locality.ts';
import { nodeSqlite } from './node-sqlite.ts';
import type { Place } from './options.ts';
import { migrate } from './schema/schema.ts';

/** How long a statement may wait for a lock with the event loop standing still. */
const BUSY_TIMEOUT_MS = 20;
/**
 * Pages of the log before they are copied into the file, with the event loop standing still: 12 MB, some 20 ms. With fewer
 * a bulk replay copies the same pages again and again; with more the loop stands still for longer, and little is saved.
 */
const CHECKPOINT_PAGES = 3000;
const MAX_LOG_BYTES = 64 * 1024 * 1024;
const CACHE_KIB = 16 * 1024;

/** Creates the tables of this program, or updates them. */
export type Migrate = (db: DatabaseSync, path: string) => void;

/** Opens the file, making it and its folder where they are missing, with the schema of this program. */
export function connect(
  { path, name }: Place,
  maxFileBytes: number | undefined,
  prepare: Migrate = migrate,
): DatabaseSync {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true });
  assertLocal(folder);
  assertFileOfLog(path);
  try {
    return opened(name, path, maxFileBytes, prepare);
  } catch (error) {
    // SQLite does not say why it cannot; where nothing may be written this throws, and says so.
    if (isCannotOpen(error)) accessSync(existsSync(path) ? path : folder, constants.W_OK);
    throw error;
  }
}

/**
 * A log without its file is what a crash leaves after somebody moved or deleted the file alone. SQLite would delete such
 * a log without a word when it makes a new file, and with it what was accepted last.
 */
function assertFileOfLog(path: string): void {
  if (sizeOf(path) > 0 || sizeOf(`${path}-wal`) === 0) return;
  throw new EngineError(
    'STORE_FILE_LOST',
    `${path} is missing or empty, but its log ${path}-wal is there and holds what was accepted last. Put the file back beside its log. If you do not need what they hold, move ${path}-wal and ${path}-shm away.`,
  );
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** A connection beside the first, which reads only. The file must have been opened. */
export function connectReader({ name }: Place): DatabaseSync {
  const db = new (nodeSqlite().DatabaseSync)(name, { readOnly: true });
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  return db;
}

/** A statement whose rows are arrays: half the cost of objects. */
export function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

/** The rows of a statement of `prepareRows`. Its types do not know of arrays. */
export type Row = SQLOutputValue[];

function opened(
  name: string | URL,
  path: string,
  maxFileBytes: number | undefined,
  prepare: Migrate,
): DatabaseSync {
  const db = new (nodeSqlite().DatabaseSync)(name);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    useLog(db, path);
    // FULL: a commit is on the disk when it returns. The log alone would survive a crash of the process only.
    db.exec('PRAGMA synchronous = FULL');
    // What is deleted or erased is overwritten with zeros, and does not stay on free pages of the file.
    db.exec('PRAGMA secure_delete = ON');
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.exec(`PRAGMA journal_size_limit = ${MAX_LOG_BYTES}`);
    db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    // What a statement with triggers needs to undo itself: a few pages, which would else go to a file of their own.
    db.exec('PRAGMA temp_store = MEMORY');
    prepare(db, path);
    // Afterwards: a file that is nearly full must get to the next schema, or nobody could make room in it.
    if (maxFileBytes !== undefined) limitSize(db, maxFileBytes);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function useLog(db: DatabaseSync, path: string): void {
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
  if (mode === 'wal') return;
  throw new EngineError(
    'STORE_UNAVAILABLE',
    `${path} cannot have a write-ahead log (journal mode ${String(mode)}). Name a file on a local disk.`,
  );
}

function limitSize(db: DatabaseSync, maxFileBytes: number): void {
  const pageBytes = Number(db.prepare('PRAGMA page_size').get()?.['page_size']);
  db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxFileBytes / pageBytes))}`);
}
