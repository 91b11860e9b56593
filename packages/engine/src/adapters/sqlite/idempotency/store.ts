import type { IdempotencyStore } from 'redrive';
import { KeyTable } from './key-table.ts';
import { SqliteIdempotency } from './keys.ts';
import { migrateIdempotency } from './schema.ts';
import { databaseIn } from '../open.ts';
import type { SqliteOptions } from '../options.ts';

/**
 * Idempotency keys in one file, which several processes of one machine may share. It may be the file of an engine: the
 * keys have a table of their own. Every change is on the disk before it is answered.
 */
export function sqliteIdempotency(
  file: string | URL,
  options: SqliteOptions = {},
): IdempotencyStore {
  const { database, clock } = databaseIn(
    file,
    options,
    (db) => new KeyTable(db),
    migrateIdempotency,
  );
  const keys = new SqliteIdempotency(
    database,
    (table) => table,
    clock,
    () => database.open(),
  );
  return Object.assign(keys, { close: () => database.close() });
}
