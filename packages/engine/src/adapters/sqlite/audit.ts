import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import {
  type AuditEvent,
  type AuditQuery,
  type AuditRecord,
  type AuditSink,
  messageIdOf,
  REGISTER_AGAIN_MS,
} from '../../ports/audit.ts';
import { prepareRows, type Row } from './connection.ts';
import type { Database } from './database.ts';

/** Rows of one statement, which costs as much as two of them. */
const INSERT_AT_ONCE = 16;
/** Short transactions: other processes wait for them, and so does the event loop. */
const PRUNE_AT_ONCE = 250;
/** Events that one step looks at, with the event loop standing still, and that one page does. */
const LOOK_AT_ONCE = 4000;
const MAX_LOOKED_AT = 50_000;

type Filter = Omit<AuditQuery, 'before' | 'limit'>;

/** What one step has found. */
interface Step {
  found: AuditRecord[];
  lookedAt: number;
  /** Something it looked at is not before `fromMs`. */
  hasLater: boolean;
  /** Where to go on; absent: there are no more. */
  next?: number;
}

/** The trail of decisions, in the order of its writing. */
export class AuditTable {
  readonly #insert: StatementSync;
  readonly #insertSome: StatementSync;
  readonly #prune: StatementSync;
  readonly #extent: StatementSync;
  readonly #select: StatementSync;

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(insertText(1));
    this.#insertSome = db.prepare(insertText(INSERT_AT_ONCE));
    // Among the first by their number, so that no index by time is needed: they were written about in that order.
    this.#prune = db.prepare(
      `DELETE FROM redrive_audit WHERE id IN (
         SELECT id FROM (SELECT id, event_type, timestamp FROM redrive_audit ORDER BY id LIMIT ?1)
         WHERE timestamp < iif(event_type = 'policy_registered', ?3, ?2)
       )`,
    );
    this.#extent = prepareRows(
      db,
      `SELECT count(*), min(id), max(timestamp) FROM (
         SELECT id, timestamp FROM redrive_audit WHERE id < ? ORDER BY id DESC LIMIT ?)`,
    );
    this.#select = prepareRows(
      db,
      `SELECT id, event FROM redrive_audit WHERE id < ?1 AND id >= ?2 AND (?3 IS NULL OR event_type = ?3)
         AND (?4 IS NULL OR timestamp >= ?4) AND (?5 IS NULL OR timestamp < ?5) AND (?6 IS NULL OR instr(event, ?6) > 0)
       ORDER BY id DESC LIMIT ?7`,
    );
  }

  write(events: readonly AuditEvent[]): void {
    let i = 0;
    for (; i + INSERT_AT_ONCE <= events.length; i += INSERT_AT_ONCE) {
      this.#insertSome.run(...events.slice(i, i + INSERT_AT_ONCE).flatMap(columnsOf));
    }
    for (; i < events.length; i++) this.#insert.run(...columnsOf(events[i]!));
  }

  /** One step of a page, at most so many events. */
  look(filter: Filter, before: number, most: number): Step {
    const { type, messageId, fromMs, toMs } = filter;
    const isFree = Object.values(filter).every((value) => value === undefined);
    const size = isFree ? most : LOOK_AT_ONCE;
    const extent = this.#extent.get(before, size) as unknown as Row;
    const [lookedAt, lowest, latest] = extent as [number, number | null, string | null];
    const from = fromMs === undefined ? null : isoOf(Math.ceil(fromMs));
    const step = { lookedAt, hasLater: from === null || (latest ?? '') >= from };
    if (lowest === null) return { found: [], ...step };
    const to = toMs === undefined || toMs > MAX_MS ? null : isoOf(Math.ceil(toMs));
    const named = messageId === undefined ? null : `"message_id":${JSON.stringify(messageId)}`;
    const asked = [before, lowest, type ?? null, from, to, named, most] as const;
    const rows = this.#select.all(...asked) as unknown as Row[];
    const found = rows
      .map(([id, event]) => ({ id: id as number, event: parsed(event) }))
      .filter(({ event }) => messageId === undefined || messageIdOf(event) === messageId);
    const isCut = rows.length === most;
    if (!isCut && lookedAt < size) return { found, ...step };
    return { found, ...step, next: isCut ? (rows.at(-1)![0] as number) : lowest };
  }

  prune(beforeMs: number, limit: number): number {
    const before = isoOf(beforeMs);
    return Number(this.#prune.run(limit, before, isoOf(beforeMs - REGISTER_AGAIN_MS)).changes);
  }
}

/** The port over the table, each step of it in a transaction of its own. */
export function auditSink<T extends { audit: AuditTable }>(
  database: Database<T>,
  clock: Clock,
): Required<Omit<AuditSink, 'close'>> {
  return {
    write: (events) => database.writeEnd(({ audit }) => audit.write(events)),
    async read({ before = Infinity, limit, ...filter }) {
      const events: AuditRecord[] = [];
      if (limit <= 0) return { events };
      let next: number | undefined = before;
      let hasLater = false;
      for (let lookedAt = 0; next !== undefined && lookedAt < MAX_LOOKED_AT;) {
        const below: number = next;
        const missing = limit - events.length + 1;
        const step = await database.read(({ audit }) => audit.look(filter, below, missing));
        events.push(...step.found);
        if (events.length > limit) return pageOf(events.slice(0, limit), events[limit - 1]!.id);
        next = step.next;
        hasLater ||= step.hasLater;
        lookedAt += step.lookedAt;
      }
      return pageOf(events, hasLater ? next : undefined);
    },
    async prune(olderThanMs, limit) {
      const beforeMs = clock.now() - olderThanMs;
      let pruned = 0;
      for (;;) {
        const step = Math.min(limit - pruned, PRUNE_AT_ONCE);
        const count = await database.write(({ audit }) => audit.prune(beforeMs, step));
        pruned += count;
        if (count < step || pruned >= limit) return pruned;
      }
    },
  };
}

function insertText(rows: number): string {
  const values = Array.from({ length: rows }, () => '(?, ?, ?, ?, ?)');
  return `INSERT INTO redrive_audit (event_type, timestamp, instance, sequence, event) VALUES ${values.join(', ')}`;
}

/** A strict trail has neither instance nor sequence. */
function columnsOf(event: AuditEvent): [string, string, string, number, string] {
  const { event_type: type, timestamp, redrive } = event;
  const { instance = '', sequence = 0 } = redrive ?? {};
  return [type, timestamp, instance, sequence, JSON.stringify(event)];
}

function pageOf(events: AuditRecord[], next: number | undefined) {
  return { events, ...(next === undefined ? {} : { next }) };
}

function parsed(event: unknown): AuditEvent {
  return JSON.parse(event as string) as AuditEvent;
}

/** The last time whose text has four digits for the year. */
const MAX_MS = 253_402_300_799_999;

/** Texts of one form are in the order of their times. Before the year 0 there is nothing. */
function isoOf(ms: number): string {
  return new Date(Math.min(Math.max(ms, -62_167_219_200_000), MAX_MS)).toISOString();
}
