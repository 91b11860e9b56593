import { DatabaseSync } from 'node:sqlite';
import type { BareWrites } from './reported.ts';

/** The bare statements on the tables of Redrive itself, with the same settings of the connection. */
export function bareSqlite(file: string): BareWrites {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 3000; PRAGMA cache_size = -16384;
    PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY`);
  const update = db.prepare(
    `UPDATE notifications SET version = version + 1, status = 'retrying', wake_at_ms = ?, updated_at_ms = ?, document = ?
     WHERE id = ? AND version = ?`,
  );
  const addAttempt = db.prepare(
    `INSERT INTO notification_attempts (notification_id, device_id, attempt_number, document)
     VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const schedule = db.prepare(
    `INSERT INTO retry_queue (message_id, original_queue, kind, lane, next_retry_at, visible_at, created_at, context, original_payload)
     VALUES (?1, 'urgent', 'delay-queue', 'delay-queue:urgent', ?2, ?2, ?3, ?4, ?5)
     ON CONFLICT (message_id, original_queue, kind) DO NOTHING`,
  );
  return {
    write(rows) {
      let changes = 0;
      const count = (result: { changes: number | bigint }) => {
        changes += Number(result.changes);
      };
      db.exec('BEGIN IMMEDIATE');
      for (const row of rows) {
        const { dueAtMs, updatedAtMs, recordText, id, version } = row;
        count(update.run(dueAtMs, updatedAtMs, recordText, id, version));
      }
      for (const { id, deviceId, attempt, attemptText } of rows)
        count(addAttempt.run(id, deviceId, attempt, attemptText));
      db.exec('COMMIT; BEGIN IMMEDIATE');
      for (const { entryId, dueAtMs, updatedAtMs, context, payload } of rows)
        count(schedule.run(entryId, dueAtMs, updatedAtMs, context, payload));
      db.exec('COMMIT');
      return Promise.resolve(changes === 3 * rows.length);
    },
    close() {
      db.close();
      return Promise.resolve();
    },
  };
}
