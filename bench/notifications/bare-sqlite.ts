import { DatabaseSync } from 'node:sqlite';
import type { BareWrites, ReportRows } from './reported.ts';

/** The bare statements on the tables of Redrive itself, with the same settings of the connection. */
export function bareSqlite(file: string): BareWrites {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16384;
    PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 67108864`);
  const addAttempt = db.prepare(
    `INSERT INTO notification_attempts (notification_id, device_id, attempt_number, document)
     VALUES (?, 'd', ?, ?) ON CONFLICT DO NOTHING`,
  );
  const update = db.prepare(
    `UPDATE notifications SET version = version + 1, status = 'retrying', wake_at_ms = ?, updated_at_ms = ?, document = ?
     WHERE id = ? AND version = ?`,
  );
  const schedule = db.prepare(
    `INSERT INTO retry_queue (message_id, original_queue, kind, lane, next_retry_at, visible_at, created_at, context, original_payload)
     VALUES (?1, 'urgent', 'delay-queue', 'delay-queue:urgent', ?2, ?2, ?3, ?4, ?5)
     ON CONFLICT (message_id, original_queue, kind) DO NOTHING`,
  );
  return {
    write(rows) {
      let changes = 0;
      const commit = (run: (row: ReportRows) => { changes: number | bigint }) => {
        db.exec('BEGIN IMMEDIATE');
        for (const row of rows) changes += Number(run(row).changes);
        db.exec('COMMIT');
      };
      commit((row) => addAttempt.run(row.id, row.attempt, row.attemptText));
      commit((row) =>
        update.run(row.dueAtMs, row.updatedAtMs, row.recordText, row.id, row.version),
      );
      commit((row) =>
        schedule.run(row.entryId, row.dueAtMs, row.updatedAtMs, row.context, row.payload),
      );
      return Promise.resolve(changes === 3 * rows.length);
    },
    close() {
      db.close();
      return Promise.resolve();
    },
  };
}
