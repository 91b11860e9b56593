import {
  type AuditEvent,
  type AuditPage,
  type AuditQuery,
  type AuditSink,
  messageIdOf,
  REGISTER_AGAIN_MS,
} from '../../ports/audit.ts';
import { type AuditFilter, auditText, MAX_LOOKED_AT } from './audit-text.ts';
import { Params, rowsOf } from './batch.ts';
import { agoMs, countOf } from './bounds.ts';
import type { Database } from './database.ts';
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
    await this.#database.query(
      `INSERT INTO ${this.#names.audit} (instance, sequence, event_type, at, event)
       SELECT instance, sequence, event_type, at::timestamptz, event FROM (${source}) AS u ORDER BY n`,
      params.values,
    );
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

/** A strict trail has neither. */
function sequenceOf({ redrive }: AuditEvent): number {
  return redrive?.sequence ?? 0;
}

function instanceOf({ redrive }: AuditEvent): string {
  return redrive?.instance ?? '';
}

/** The statement has looked for the text of the id; it may stand elsewhere in an event. */
function isAbout(event: AuditEvent, { messageId }: AuditFilter): boolean {
  return messageId === undefined || messageIdOf(event) === messageId;
}
