import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import { connect, connectReader, type Migrate } from './connection.ts';
import { Database } from './database.ts';
import { readOptions, type SqliteOptions } from './options.ts';

/** A database in one file, checked and not opened yet. `prepare` makes the statements that its work uses. */
export function databaseIn<T>(
  file: string | URL,
  options: SqliteOptions,
  prepare: (db: DatabaseSync) => T,
  migrate?: Migrate,
): { database: Database<T>; clock: Clock } {
  const { place, clock, random, busyLimitMs, maxFileBytes, onFault } = readOptions(file, options);
  const database = new Database<T>({
    path: place.path,
    clock,
    random,
    busyLimitMs,
    connect: () => connect(place, maxFileBytes, migrate),
    connectReader: () => connectReader(place),
    prepare,
    report: onFault,
  });
  return { database, clock };
}
