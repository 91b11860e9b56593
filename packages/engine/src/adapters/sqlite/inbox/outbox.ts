import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { NewOutboxMessage, OutboxFilter, OutboxMessage } from '../../../ports/schedule.ts';
import { prepareRows, type Row } from '../connection.ts';
import { destinationOf } from '../rows.ts';
import { bytesOfUuid } from '../uuid.ts';

/** Messages that were committed together with what they tell of, until somebody has sent them. */
export class OutboxTable {
  readonly #insert: StatementSync;
  readonly #visible: StatementSync;
  readonly #lease: StatementSync;
  readonly #delete: StatementSync;
  readonly #deleteOf: StatementSync;

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(
      'INSERT INTO redrive_outbox (visible_at, kind, address, headers, payload, message_id) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#visible = prepareRows(
      db,
      `SELECT id, kind, address, headers, payload FROM redrive_outbox
       WHERE visible_at <= ?1 AND (?3 IS NULL OR kind IN (SELECT value FROM json_each(?3)))
       ORDER BY id LIMIT ?2`,
    );
    this.#lease = db.prepare('UPDATE redrive_outbox SET visible_at = ? WHERE id = ?');
    this.#delete = db.prepare('DELETE FROM redrive_outbox WHERE id = ?');
    this.#deleteOf = db.prepare('DELETE FROM redrive_outbox WHERE message_id = ?');
  }

  /** `messageId`: of the message that it tells of. */
  add(message: NewOutboxMessage, messageId: string | undefined, nowMs: number): void {
    const { destination, headers, payload } = message;
    const { kind, address } = destination;
    this.#insert.run(
      nowMs,
      kind,
      address,
      JSON.stringify(headers),
      payload,
      messageId === undefined ? null : bytesOfUuid(messageId),
    );
  }

  isEmpty(nowMs: number): boolean {
    return this.#visible.get(nowMs, 1, null) === undefined;
  }

  take(
    limit: number,
    leaseMs: number,
    { kinds, maxBytes = Infinity }: OutboxFilter,
    nowMs: number,
  ): OutboxMessage[] {
    const taken: OutboxMessage[] = [];
    let bytes = 0;
    // One by one: all of them may be more than fits into memory.
    const rows = this.#visible.iterate(nowMs, limit, kinds ? JSON.stringify(kinds) : null);
    for (const row of rows) {
      const [id, kind, address, headers, payload] = row as unknown as Row;
      bytes += (payload as Uint8Array).length;
      if (taken.length > 0 && bytes > maxBytes) break;
      taken.push({
        id: id as number,
        destination: destinationOf(kind, address),
        headers: JSON.parse(headers as string) as Record<string, string>,
        payload: payload as Uint8Array,
      });
    }
    for (const { id } of taken) this.#lease.run(nowMs + leaseMs, id);
    return taken;
  }

  drop(ids: readonly number[]): void {
    for (const id of ids) this.#delete.run(id);
  }

  dropOf(messageId: string): void {
    this.#deleteOf.run(bytesOfUuid(messageId));
  }
}
