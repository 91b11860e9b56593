import { closeSync, openSync, readSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { faultOf } from '../faults.ts';
import { networkFileSystemOf } from '../locality.ts';
import { nodeSqlite } from '../node-sqlite.ts';
import { type Place, readOptions } from '../options.ts';
import { schemaVersion } from './schema.ts';

/** What a look at a file finds: data, for people and programs. */
export interface Findings {
  path: string;
  fileBytes: number;
  /** Of the log beside it; 0: there is none. */
  logBytes: number;
  pageBytes: number;
  pages: number;
  /** Those that hold nothing: the next rows use them. */
  freePages: number;
  /** `wal`, if the store has made it. */
  journalMode: string;
  /** Absent version: no tables. `known`: the one of this program. */
  schema: { version?: number; oldest?: number; known: number };
  /** What is wrong with it, the first ten. Absent: nobody looked. */
  damage?: string[];
  /** Its name; absent: the disk is local, or this system does not say. */
  networkFileSystem?: string;
  /** What is left of the disk. */
  freeBytes: number;
  /** The version of SQLite. */
  library: string;
}

/**
 * Looks at the file of a store and changes nothing, also while processes use it. `adviceOn` says what to do about it.
 * `integrity: false` leaves out the check of every page, for which the event loop stands still: some seconds per GB.
 */
export async function examine(
  file: string | URL,
  { integrity = true }: { integrity?: boolean } = {},
): Promise<Findings> {
  const { place } = readOptions(file, {});
  const { path } = place;
  try {
    const fileBytes = statSync(path).size;
    const folder = dirname(path);
    const { bavail, bsize } = statfsSync(folder);
    const network = networkFileSystemOf(folder);
    const content = readContent(place, integrity);
    return {
      path,
      fileBytes,
      logBytes: logBytesOf(path),
      ...content,
      ...(network === undefined ? {} : { networkFileSystem: network }),
      freeBytes: bavail * bsize,
    };
  } catch (error) {
    throw faultOf(error, path);
  }
}

type Content = Pick<
  Findings,
  'pageBytes' | 'pages' | 'freePages' | 'journalMode' | 'schema' | 'damage' | 'library'
>;

/**
 * A reader of a file that nobody has open would leave a log and shared memory beside it: without a log it is read as one
 * that cannot change. Should somebody open it just then, what seems to be damage may be none, and is looked at again.
 */
function readContent(place: Place, integrity: boolean): Content {
  if (logBytesOf(place.path) > 0) return readFrom(place, place.name, integrity);
  const url = place.name instanceof URL ? new URL(place.name) : pathToFileURL(place.path);
  url.searchParams.set('immutable', '1');
  try {
    const content = readFrom(place, url, integrity);
    const isSound = content.damage === undefined || content.damage.length === 0;
    if (isSound || logBytesOf(place.path) === 0) return content;
  } catch (error) {
    if (logBytesOf(place.path) === 0) throw error;
  }
  return readFrom(place, place.name, integrity);
}

function readFrom({ path }: Place, name: string | URL, integrity: boolean): Content {
  const db = new (nodeSqlite().DatabaseSync)(name, { readOnly: true });
  try {
    const valueOf = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
    return {
      library: valueOf('SELECT sqlite_version()') as string,
      pageBytes: valueOf('PRAGMA page_size') as number,
      pages: valueOf('PRAGMA page_count') as number,
      freePages: valueOf('PRAGMA freelist_count') as number,
      journalMode: hasLogMode(path) ? 'wal' : (valueOf('PRAGMA journal_mode') as string),
      schema: { ...readSchema(db), known: schemaVersion },
      ...(integrity ? { damage: readDamage(db) } : {}),
    };
  } finally {
    db.close();
  }
}

function readSchema(db: DatabaseSync): { version?: number; oldest?: number } {
  const table = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'redrive_schema'`).get();
  if (!table) return {};
  const row = db.prepare('SELECT version, oldest FROM redrive_schema').get();
  return { version: Number(row?.['version'] ?? 0), oldest: Number(row?.['oldest'] ?? 0) };
}

const MAX_DAMAGE = 10;

function readDamage(db: DatabaseSync): string[] {
  try {
    const rows = db.prepare(`PRAGMA quick_check(${MAX_DAMAGE})`).all();
    const found = rows.map(({ quick_check: what }) => what as string);
    return found.length === 1 && found[0] === 'ok' ? [] : found;
  } catch (error) {
    // So damaged that the check itself cannot go on.
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** What the file itself says, of the two versions that stand at this place: one that is read as unchanging hides it. */
function hasLogMode(path: string): boolean {
  const versions = Buffer.alloc(2);
  const file = openSync(path, 'r');
  try {
    readSync(file, versions, 0, 2, 18);
  } finally {
    closeSync(file);
  }
  return versions[0] === 2 && versions[1] === 2;
}

function logBytesOf(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
