import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StateDocument } from '../../ports/schedule.ts';
import { prepareRows, type Row } from './connection.ts';

/** After every text that begins with the prefix, as SQLite compares: byte by byte. */
const LAST_CHARACTER = '\u{10FFFF}';

/** Small documents that all processes share, each with a version. */
export class StateTable {
  readonly #select: StatementSync;
  readonly #version: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #delete: StatementSync;

  constructor(db: DatabaseSync) {
    this.#select = prepareRows(
      db,
      'SELECT key, version, value FROM redrive_state WHERE key >= ? AND key < ? ORDER BY key',
    );
    this.#version = prepareRows(db, 'SELECT version FROM redrive_state WHERE key = ?');
    this.#insert = db.prepare(
      'INSERT INTO redrive_state (key, version, value) VALUES (?, 1, ?) ON CONFLICT (key) DO NOTHING',
    );
    this.#update = db.prepare(
      'UPDATE redrive_state SET value = ?, version = version + 1 WHERE key = ? AND version = ?',
    );
    this.#delete = db.prepare('DELETE FROM redrive_state WHERE key = ?');
  }

  /** Whether it is still the version that was read; 0: there was none. */
  has(key: string, version: number): boolean {
    const row = this.#version.get(key) as unknown as Row | undefined;
    return (row?.[0] ?? 0) === version;
  }

  read(prefix: string): StateDocument[] {
    const rows = this.#select.all(prefix, prefix + LAST_CHARACTER) as unknown as Row[];
    return rows.map(([key, version, value]) => ({
      key: key as string,
      version: version as number,
      value: JSON.parse(value as string) as unknown,
    }));
  }

  /** False: its version is not the one that was read. */
  write(key: string, value: unknown, version: number): boolean {
    const json = JSON.stringify(value);
    const { changes } =
      version === 0 ? this.#insert.run(key, json) : this.#update.run(json, key, version);
    return changes === 1;
  }

  /** False: its version is not the one that was read. */
  drop(key: string, version: number): boolean {
    if (!this.has(key, version)) return false;
    this.delete(key);
    return true;
  }

  delete(key: string): void {
    this.#delete.run(key);
  }
}
