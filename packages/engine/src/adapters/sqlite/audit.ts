import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { AuditEvent } from '../../ports/audit.ts';

/** The trail of decisions, in the order of its writing. */
export class AuditTable {
  readonly #insert: StatementSync;

  constructor(db: DatabaseSync) {
    this.#insert = db.prepare(
      'INSERT INTO redrive_audit (event_type, timestamp, instance, sequence, event) VALUES (?, ?, ?, ?, ?)',
    );
  }

  write(events: readonly AuditEvent[]): void {
    for (const event of events) {
      const { event_type: type, timestamp, instance, sequence } = event;
      this.#insert.run(type, timestamp, instance, sequence, JSON.stringify(event));
    }
  }
}
