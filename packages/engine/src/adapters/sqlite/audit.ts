import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from 'redrive';
import { type AuditEvent, type AuditSink, REGISTER_AGAIN_MS } from '../../ports/audit.ts';
import type { Database } from './database.ts';

/** Short transactions: other processes wait for them, and so does the event loop. */
const PRUNE_AT_ONCE = 250;

/** The trail of decisions, in the order of its writing. */
export class AuditTable {
  readonly #insert: StatementSync;
  readonly #prune: StatementSync;

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(
      'INSERT INTO redrive_audit (event_type, timestamp, instance, sequence, event) VALUES (?, ?, ?, ?, ?)',
    );
    // Among the first by their number, so that no index by time is needed: they were written about in that order.
    this.#prune = db.prepare(
      `DELETE FROM redrive_audit WHERE id IN (
         SELECT id FROM (SELECT id, event_type, timestamp FROM redrive_audit ORDER BY id LIMIT ?1)
         WHERE timestamp < iif(event_type = 'policy_registered', ?3, ?2)
       )`,
    );
  }

  write(events: readonly AuditEvent[]): void {
    for (const event of events) {
      const { event_type: type, timestamp, redrive } = event;
      const { instance = '', sequence = 0 } = redrive ?? {};
      this.#insert.run(type, timestamp, instance, sequence, JSON.stringify(event));
    }
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
): AuditSink {
  return {
    write: (events) => database.write(({ audit }) => audit.write(events)),
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

/** Texts of one form are in the order of their times. Before the year 0 there is nothing. */
function isoOf(ms: number): string {
  return new Date(Math.max(ms, -62_167_219_200_000)).toISOString();
}
