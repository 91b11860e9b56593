import type { DatabaseSync } from 'node:sqlite';
import type { Store } from '../../ports/store.ts';
import { databaseIn } from './open.ts';
import type { SqliteOptions } from './options.ts';
import { migrateIdempotency } from './idempotency/schema.ts';
import { migrate } from './schema/schema.ts';
import { Statements } from './statements.ts';
import { SqliteStore } from './store.ts';

export { type Advice, adviceOn } from './schema/advice.ts';
export { examine, type Findings } from './schema/examine.ts';
export { sqliteIdempotency } from './idempotency/store.ts';
export type { SqliteOptions } from './options.ts';
export { sqliteSticky } from './sticky.ts';

/** A store in one file, which several processes of one machine may share. A path, or a `file:` URL. */
export function sqlite(file: string | URL, options: SqliteOptions = {}): Store {
  const { database, clock } = databaseIn(file, options, (db) => new Statements(db), migrateAll);
  return new SqliteStore(database, clock);
}

/** The keys of handlers have tables of their own, with a version of their own. */
function migrateAll(db: DatabaseSync, path: string): void {
  migrate(db, path);
  migrateIdempotency(db, path);
}
