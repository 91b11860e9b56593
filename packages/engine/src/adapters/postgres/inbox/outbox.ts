import type { OutboxFilter, OutboxMessage } from '../../../ports/schedule.ts';
import { encodeArray } from '../arrays.ts';
import { few } from '../batch.ts';
import type { Database } from '../connection/database.ts';
import type { Names } from '../names.ts';
import { bytesOf, destinationOf, numberOf, parsed } from '../rows.ts';
import { later } from '../times.ts';
import { boundedMs, countOf } from '../bounds.ts';

/** Messages that are still to be sent, oldest first. */
export class OutboxTable {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async take(
    limit: number,
    leaseMs: number,
    { kinds, maxBytes }: OutboxFilter,
  ): Promise<OutboxMessage[]> {
    const rows = await this.#database.query(
      `WITH pick AS MATERIALIZED (
         SELECT id, octet_length(payload) AS bytes FROM ${this.#names.outbox}
         WHERE visible_at <= statement_timestamp() AND ($3::text[] IS NULL OR kind = ANY ($3))
         ORDER BY id LIMIT $1::int4 FOR UPDATE SKIP LOCKED
       ),
       fit AS MATERIALIZED (
         SELECT id FROM (SELECT id, bytes, sum(bytes) OVER (ORDER BY id) AS total FROM pick) AS p
         WHERE total <= $4::int8 OR total = bytes
       ),
       taken AS (
         UPDATE ${this.#names.outbox} AS message SET visible_at = ${later('$2::float8')}
         FROM (${few('fit', 'id')}) AS t WHERE message.id = ANY (ARRAY[t.id])
         RETURNING message.id, kind, address, payload, headers
       )
       SELECT * FROM taken ORDER BY id`,
      [
        countOf(limit),
        boundedMs(leaseMs),
        kinds ? encodeArray('text', kinds) : null,
        String(maxBytes ?? Number.MAX_SAFE_INTEGER),
      ],
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
