import type { OutboxMessage } from '../../ports/schedule.ts';
import { encodeArray } from './arrays.ts';
import { few } from './batch.ts';
import type { Database } from './database.ts';
import type { Names } from './names.ts';
import { bytesOf, destinationOf, numberOf, parsed } from './rows.ts';
import { later } from './times.ts';
import { boundedMs, countOf } from './bounds.ts';

/** Messages that are still to be sent, oldest first. */
export class OutboxTable {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async take(limit: number, leaseMs: number): Promise<OutboxMessage[]> {
    const rows = await this.#database.query(
      `WITH pick AS MATERIALIZED (
         SELECT id FROM ${this.#names.outbox} WHERE visible_at <= statement_timestamp()
         ORDER BY id LIMIT $1::int4 FOR UPDATE SKIP LOCKED
       ),
       taken AS (
         UPDATE ${this.#names.outbox} AS message SET visible_at = ${later('$2::float8')}
         FROM (${few('pick', 'id')}) AS t WHERE message.id = ANY (ARRAY[t.id])
         RETURNING message.id, kind, address, payload, headers
       )
       SELECT * FROM taken ORDER BY id`,
      [countOf(limit), boundedMs(leaseMs)],
    );
    return rows.map(([id, kind, address, payload, headers]) => ({
      id: numberOf(id),
      destination: destinationOf(kind, address),
      payload: bytesOf(payload),
      headers: parsed(headers) as OutboxMessage['headers'],
    }));
  }

  async drop(ids: readonly number[]): Promise<void> {
    await this.#database.queryAgain(
      `DELETE FROM ${this.#names.outbox} WHERE id = ANY ($1::int8[])`,
      [encodeArray('int8', ids)],
    );
  }
}
