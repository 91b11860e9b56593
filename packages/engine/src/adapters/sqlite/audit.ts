import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Clock, eraseEvent } from 'redrive';
import { auditKeyOf } from '../../erase/audit-key.ts';
import {
  type AuditEvent,
  type AuditQuery,
  type AuditRecord,
  type AuditSink,
  ERASED_FOR_MS,
  messageIdOf,
  REGISTER_AGAIN_MS,
} from '../../ports/audit.ts';
import { prepareRows, type Row } from './connection.ts';
import type { Database } from './database.ts';
import { messageKey, namesMessage } from './schema/version-6.ts';

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
  readonly #ofMessage: StatementSync;
  readonly #erased: StatementSync;
  readonly #markErased: StatementSync;
  readonly #forgetErased: StatementSync;
  readonly #rewrite: StatementSync;

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
      `SELECT id, event FROM redrive_audit WHERE id < ?1 AND id >= ?2 AND ${matching} ORDER BY id DESC LIMIT ?6`,
    );
    this.#ofMessage = prepareRows(
      db,
      `SELECT id, event FROM redrive_audit INDEXED BY redrive_audit_message WHERE ${namesMessage} AND ${messageKey} = ?2
         AND id < ?1 AND ${matching} ORDER BY id DESC LIMIT ?6`,
    );
    this.#erased = prepareRows(db, 'SELECT message_id FROM redrive_erased WHERE erased_at > ?');
    this.#markErased = db.prepare(
      `INSERT INTO redrive_erased (message_id, erased_at) VALUES (?1, ?2)
       ON CONFLICT (message_id) DO UPDATE SET erased_at = excluded.erased_at`,
    );
    this.#forgetErased = db.prepare('DELETE FROM redrive_erased WHERE erased_at <= ?');
    this.#rewrite = db.prepare('UPDATE redrive_audit SET event = ?2 WHERE id = ?1');
  }

  write(given: readonly AuditEvent[], nowMs: number): void {
    const events = this.#kept(given, nowMs);
    let i = 0;
    for (; i + INSERT_AT_ONCE <= events.length; i += INSERT_AT_ONCE) {
      this.#insertSome.run(...events.slice(i, i + INSERT_AT_ONCE).flatMap(columnsOf));
    }
    for (; i < events.length; i++) this.#insert.run(...columnsOf(events[i]!));
  }

  /** One step of a page, at most so many events. */
  look(filter: Filter, before: number, most: number): Step {
    const { type, messageId, fromMs, toMs } = filter;
    const from = fromMs === undefined ? null : isoOf(Math.ceil(fromMs));
    const to = toMs === undefined || toMs > MAX_MS ? null : isoOf(Math.ceil(toMs));
    const asked = [type ?? null, from, to, most] as const;
    if (messageId !== undefined) return this.#lookAt(messageId, before, asked);
    const isFree = Object.values(filter).every((value) => value === undefined);
    const size = isFree ? most : LOOK_AT_ONCE;
    const extent = this.#extent.get(before, size) as unknown as Row;
    const [lookedAt, lowest, latest] = extent as [number, number | null, string | null];
    const step = { lookedAt, hasLater: from === null || (latest ?? '') >= from };
    if (lowest === null) return { found: [], ...step };
    const rows = this.#select.all(before, lowest, ...asked) as unknown as Row[];
    const found = rows.map(recordOf);
    const isCut = rows.length === most;
    if (!isCut && lookedAt < size) return { found, ...step };
    return { found, ...step, next: isCut ? (rows.at(-1)![0] as number) : lowest };
  }

  /** Rewrites the events of a message, and marks the message so that its late events are erased too. */
  erase(messageId: string, nowMs: number): number {
    this.#forgetErased.run(nowMs - ERASED_FOR_MS);
    this.#markErased.run(messageId, nowMs);
    const { found } = this.#lookAt(messageId, Infinity, [null, null, null, -1]);
    let count = 0;
    for (const { id, event } of found) {
      const erased = eraseEvent(event, nowMs);
      if (erased === event) continue;
      this.#rewrite.run(id, JSON.stringify(erased));
      count += 1;
    }
    return count;
  }

  prune(beforeMs: number, limit: number): number {
    const before = isoOf(beforeMs);
    return Number(this.#prune.run(limit, before, isoOf(beforeMs - REGISTER_AGAIN_MS)).changes);
  }

  /** Events of one message. Another one may have the same key. */
  #lookAt(
    messageId: string,
    before: number,
    asked: readonly [string | null, string | null, string | null, number],
  ): Step {
    const most = asked[3];
    const rows = this.#ofMessage.all(before, auditKeyOf(messageId), ...asked) as unknown as Row[];
    const found = rows.map(recordOf).filter(({ event }) => messageIdOf(event) === messageId);
    const step = { found, lookedAt: rows.length, hasLater: true };
    return rows.length === most ? { ...step, next: rows.at(-1)![0] as number } : step;
  }

  /** An instance may have held back events of a message that was erased meanwhile. */
  #kept(events: readonly AuditEvent[], nowMs: number): readonly AuditEvent[] {
    const rows = this.#erased.all(nowMs - ERASED_FOR_MS) as unknown as Row[];
    if (rows.length === 0) return events;
    const erased = new Set(rows.map(([id]) => id as string));
    return events.map((event) =>
      erased.has(messageIdOf(event) ?? '') ? eraseEvent(event, nowMs) : event,
    );
  }
}

/** The port over the table, each step of it in a transaction of its own. */
export function auditSink<T extends { audit: AuditTable }>(
  database: Database<T>,
  clock: Clock,
): Required<Omit<AuditSink, 'close'>> {
  return {
    write: (events) => database.writeEnd(({ audit }) => audit.write(events, clock.now())),
    erase: (messageId) => database.write(({ audit }) => audit.erase(messageId, clock.now())),
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

/** What an event must be, apart from its place. */
const matching = `(?3 IS NULL OR event_type = ?3) AND (?4 IS NULL OR timestamp >= ?4) AND (?5 IS NULL OR timestamp < ?5)`;

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

function recordOf([id, event]: Row): AuditRecord {
  return { id: id as number, event: JSON.parse(event as string) as AuditEvent };
}

/** The last time whose text has four digits for the year. */
const MAX_MS = 253_402_300_799_999;

/** Texts of one form are in the order of their times. Before the year 0 there is nothing. */
function isoOf(ms: number): string {
  return new Date(Math.min(Math.max(ms, -62_167_219_200_000), MAX_MS)).toISOString();
}
