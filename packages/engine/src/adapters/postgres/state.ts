import type { StateDocument } from '../../ports/schedule.ts';
import type { Database } from './connection/database.ts';
import type { Names } from './names.ts';
import { numberOf, parsed, timeOf } from './rows.ts';
import { msOf } from './times.ts';

/** Sorts after every text that begins so: the keys are compared by their bytes. */
const LAST_CHARACTER = '\u{10ffff}';

/** Small shared documents, compared and set by their version. */
export class StateTable {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async read(prefix: string): Promise<{ nowMs: number; documents: StateDocument[] }> {
    const rows = await this.#database.queryAgain(
      `SELECT key, version, value, ${msOf('statement_timestamp()')} AS now
       FROM (SELECT) AS once LEFT JOIN ${this.#names.state} ON key >= $1 AND key < $2 ORDER BY key`,
      [prefix, prefix + LAST_CHARACTER],
    );
    const documents = rows.filter(([key]) => key !== null);
    return {
      nowMs: timeOf(rows[0]![3]),
      documents: documents.map(([key, version, value]) => ({
        key: key as string,
        version: numberOf(version),
        value: parsed(value),
      })),
    };
  }

  async write(key: string, value: unknown, version: number): Promise<boolean> {
    const values = [key, JSON.stringify(value)];
    const rows =
      version === 0
        ? await this.#database.query(
            `INSERT INTO ${this.#names.state} (key, version, value) VALUES ($1, 1, $2)
             ON CONFLICT DO NOTHING RETURNING version`,
            values,
          )
        : await this.#database.query(
            `UPDATE ${this.#names.state} SET version = version + 1, value = $2
             WHERE key = $1 AND version = $3 RETURNING version`,
            [...values, version],
          );
    return rows.length === 1;
  }

  /** Those whose version is still the one that was read. */
  async drop(documents: readonly Pick<StateDocument, 'key' | 'version'>[]): Promise<number> {
    const rows = await this.#database.query(
      `DELETE FROM ${this.#names.state} AS state USING unnest($1::text[], $2::bigint[]) AS u(key, version)
       WHERE state.key = u.key AND state.version = u.version RETURNING 1`,
      [documents.map(({ key }) => key), documents.map(({ version }) => version)],
    );
    return rows.length;
  }
}
