import { eraseEvent } from 'redrive';
import { auditKeyOf } from '../../erase/audit-key.ts';
import {
  type AuditEvent,
  type AuditPage,
  type AuditQuery,
  type AuditSink,
  ERASED_FOR_MS,
  messageIdOf,
  REGISTER_AGAIN_MS,
} from '../../ports/audit.ts';
import { encodeArray } from './arrays.ts';
import { messageKey, namesMessage } from './schema/audit-schema.ts';
import { type AuditFilter, auditText, MAX_LOOKED_AT } from './audit-text.ts';
import { Params, rowsOf } from './batch.ts';
import { agoMs, countOf } from './bounds.ts';
import type { Database } from './connection/database.ts';
import type { Names } from './names.ts';
import { isTrue, numberOf, parsed } from './rows.ts';
import { NOW } from './times.ts';

/** Short statements: rows that are locked or dead in great numbers would be in the way of others. */
const PRUNE_AT_ONCE = 1000;

/** The trail as a table, one statement for a batch. When its answer is lost, a gap or a twin shows by the sequence. */
export class AuditTable implements AuditSink {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async write(events: readonly AuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    let kept = events;
    const known = new Set<string>();
    for (;;) {
      const erased = await this.#writeUnless(kept, known);
      if (erased.length === 0) return;
      for (const id of erased) known.add(id);
      const nowMs = Date.now();
      kept = events.map((event) =>
        known.has(messageIdOf(event) ?? '') ? eraseEvent(event, nowMs) : event,
      );
    }
  }

  /**
   * Locks the table against writes for this short transaction: a write that began before is waited for, and one that begins
   * later finds the mark. So no event comes between.
   */
  async erase(messageId: string): Promise<number> {
    const { audit, erased } = this.#names;
    return this.#database.transaction(async (session) => {
      await session.query(`LOCK TABLE ${audit} IN SHARE ROW EXCLUSIVE MODE`);
      await session.query(`DELETE FROM ${erased} WHERE erased_at <= ${agoText('$1')}`, [
        ERASED_FOR_MS,
      ]);
      await session.query(
        `INSERT INTO ${erased} (message_id, erased_at) VALUES ($1, ${NOW})
         ON CONFLICT (message_id) DO UPDATE SET erased_at = excluded.erased_at`,
        [messageId],
      );
      const rows = await session.query(
        `SELECT id, event FROM ${audit} WHERE ${namesMessage} AND ${messageKey} COLLATE "C" = $1`,
        [auditKeyOf(messageId)],
      );
      const nowMs = Date.now();
      const changed = rows.flatMap(([id, text]) => {
        const event = parsed(text) as AuditEvent;
        const after = messageIdOf(event) === messageId ? eraseEvent(event, nowMs) : event;
        return after === event ? [] : [{ id: numberOf(id), after }];
      });
      if (changed.length === 0) return 0;
      await session.query(
        `UPDATE ${audit} AS event SET event = u.event FROM unnest($1::int8[], $2::json[]) AS u(id, event)
         WHERE event.id = u.id`,
        [
          encodeArray(
            'int8',
            changed.map(({ id }) => id),
          ),
          encodeArray(
            'json',
            changed.map(({ after }) => JSON.stringify(after)),
          ),
        ],
      );
      return changed.length;
    });
  }

  async read({ before, limit, ...filter }: AuditQuery): Promise<AuditPage> {
    if (limit <= 0) return { events: [] };
    const most = countOf(limit + 1);
    const params = new Params();
    const text = auditText(this.#names, filter, { before, most }, params);
    const rows = await this.#database.queryAgain(text, params.values);
    const [lookedAt, lowest, hasLater] = rows[0]!;
    const found = rows.flatMap(([, , , id, event]) =>
      id === null ? [] : [{ id: numberOf(id), event: parsed(event) as AuditEvent }],
    );
    const events = found.filter(({ event }) => isAbout(event, filter)).slice(0, limit);
    if (found.length === most) {
      const last = events.length === limit ? events : found;
      return { events, next: last.at(-1)!.id };
    }
    const isCut = numberOf(lookedAt) >= MAX_LOOKED_AT && isTrue(hasLater);
    return { events, ...(isCut ? { next: numberOf(lowest) } : {}) };
  }

  async prune(olderThanMs: number, limit: number): Promise<number> {
    let pruned = 0;
    for (;;) {
      const step = Math.min(limit - pruned, PRUNE_AT_ONCE);
      const count = await this.#pruneSome(olderThanMs, step);
      pruned += count;
      if (count < step || pruned >= limit) return pruned;
    }
  }

  /**
   * Writes all events, unless one is of a message that was erased and is not `known`. Answers such messages: nothing was
   * written then.
   */
  async #writeUnless(
    events: readonly AuditEvent[],
    known: ReadonlySet<string>,
  ): Promise<readonly string[]> {
    const ids = new Set(events.flatMap((event) => messageIdOf(event) ?? []));
    for (const id of known) ids.delete(id);
    const params = new Params();
    const source = rowsOf(
      [
        { name: 'sequence', type: 'int8', values: events.map(sequenceOf) },
        { name: 'instance', type: 'text', values: events.map(instanceOf) },
        { name: 'event_type', type: 'text', values: events.map(({ event_type: type }) => type) },
        { name: 'at', type: 'text', values: events.map(({ timestamp }) => timestamp) },
        { name: 'event', type: 'json', values: events.map((event) => JSON.stringify(event)) },
      ],
      params,
    );
    const { audit, erased } = this.#names;
    const rows = await this.#database.query(
      `WITH erased AS MATERIALIZED (
         SELECT message_id FROM ${erased} WHERE message_id = ANY (${params.add(encodeArray('text', [...ids]))}::text[])
           AND erased_at > ${agoText(params.add(ERASED_FOR_MS))}
       ), written AS (
         INSERT INTO ${audit} (instance, sequence, event_type, at, event)
         SELECT instance, sequence, event_type, at::timestamptz, event FROM (${source}) AS u
         WHERE NOT EXISTS (SELECT FROM erased) ORDER BY n
       )
       SELECT message_id FROM erased`,
      params.values,
    );
    return rows.map(([id]) => id as string);
  }

  /** Among the first by their number, so that no index by time is needed: they were written about in that order. */
  async #pruneSome(olderThanMs: number, limit: number): Promise<number> {
    const [row] = await this.#database.queryAgain(
      `WITH first AS MATERIALIZED (
         SELECT id, event_type, at FROM ${this.#names.audit} ORDER BY id LIMIT $1::int4
       ), gone AS (
         DELETE FROM ${this.#names.audit} WHERE id = ANY (ARRAY(
           SELECT id FROM first WHERE at < ${NOW} - INTERVAL '1 millisecond'
             * CASE event_type WHEN 'policy_registered' THEN $3::float8 ELSE $2::float8 END
         )) RETURNING id
       )
       SELECT count(*) FROM gone`,
      [countOf(limit), agoMs(olderThanMs), agoMs(olderThanMs + REGISTER_AGAIN_MS)],
    );
    return numberOf(row![0]);
  }
}

/** The time so many ms ago. */
function agoText(ms: string): string {
  return `${NOW} - INTERVAL '1 millisecond' * ${ms}::float8`;
}

/** A strict trail has neither. */
function sequenceOf({ redrive }: AuditEvent): number {
  return redrive?.sequence ?? 0;
}

function instanceOf({ redrive }: AuditEvent): string {
  return redrive?.instance ?? '';
}

/** The statement has looked for the key of the message; another message may have the same. */
function isAbout(event: AuditEvent, { messageId }: AuditFilter): boolean {
  return messageId === undefined || messageIdOf(event) === messageId;
}
