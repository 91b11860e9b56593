import type { DatabaseSync } from 'node:sqlite';
import { EngineError } from '../../../errors.ts';
import { version1 } from './version-1.ts';
import { version2 } from './version-2.ts';
import { version3 } from './version-3.ts';
import { version4 } from './version-4.ts';
import { version5 } from './version-5.ts';
import { version6 } from './version-6.ts';

/** One step of the schema. Steps are never changed once released, only added. */
interface Migration {
  version: number;
  /** The oldest schema that a program may know to use a file after this step. */
  oldest: number;
  sql: string;
}

const migrations: readonly Migration[] = [
  { version: 1, oldest: 1, sql: version1 },
  { version: 2, oldest: 2, sql: version2 },
  { version: 3, oldest: 3, sql: version3 },
  { version: 4, oldest: 3, sql: version4 },
  { version: 5, oldest: 5, sql: version5 },
  { version: 6, oldest: 5, sql: version6 },
];

/** The schema that this program knows. */
export const schemaVersion = migrations.at(-1)!.version;

/** Brings the file to this program's schema, in one commit. A newer one is left alone where it may be used. */
export function migrate(db: DatabaseSync, file: string): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const found = readVersion(db, file);
    if (found.oldest > schemaVersion) throw tooNew(found, file);
    // Shows at once whether the file can be written: the lock alone is given to readers too.
    db.exec('UPDATE redrive_schema SET version = version');
    for (const { version, oldest, sql } of migrations) {
      if (version <= found.version) continue;
      db.exec(sql);
      db.exec(`UPDATE redrive_schema SET version = ${version}, oldest = ${oldest}`);
    }
    db.exec('COMMIT');
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
}

interface Version {
  version: number;
  oldest: number;
}

function readVersion(db: DatabaseSync, file: string): Version {
  if (!hasTable(db, 'redrive_schema')) {
    if (hasTable(db, 'retry_queue')) throw notOurs(file);
    db.exec('CREATE TABLE redrive_schema (version INTEGER NOT NULL, oldest INTEGER NOT NULL)');
    db.exec('INSERT INTO redrive_schema VALUES (0, 0)');
  }
  return db.prepare('SELECT version, oldest FROM redrive_schema').get() as unknown as Version;
}

function hasTable(db: DatabaseSync, name: string): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;
}

function tooNew({ version, oldest }: Version, file: string): EngineError {
  return new EngineError(
    'SCHEMA_TOO_NEW',
    `${file} has schema ${version}, which needs a Redrive that knows schema ${oldest} or later; this one knows ${schemaVersion}. Update this program.`,
  );
}

function notOurs(file: string): EngineError {
  return new EngineError(
    'TABLE_NOT_OURS',
    `${file} has a table retry_queue that Redrive did not make. Name another file, or rename that table.`,
  );
}
