import type { DatabaseSync } from 'node:sqlite';
import { EngineError } from '@redrive/engine';

/** The tables have a version of their own: they are used without an engine too, and in the file of one. */
const VERSION = 1;

/** Creates the tables, or makes sure that this program may use them. */
export function migrateNotifications(db: DatabaseSync, file: string): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(`CREATE TABLE IF NOT EXISTS redrive_notifications_schema (
      version INTEGER NOT NULL, oldest INTEGER NOT NULL)`);
    const found = db.prepare('SELECT version, oldest FROM redrive_notifications_schema').get();
    if (found && Number(found['oldest']) > VERSION) {
      throw new EngineError(
        'SCHEMA_TOO_NEW',
        `${file} has notifications of schema ${Number(found['version'])}, which this Redrive does not know: it knows ${VERSION}. Update this program.`,
      );
    }
    if (!found) create(db, file);
    db.exec('COMMIT');
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
}

function create(db: DatabaseSync, file: string): void {
  const foreign = db
    .prepare(`SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name IN
      ('notifications', 'notification_attempts', 'notification_devices')`)
    .get();
  if (foreign) {
    throw new EngineError(
      'TABLE_NOT_OURS',
      `${file} has a table ${String(foreign['name'])} that Redrive did not make. Name another file.`,
    );
  }
  db.exec(tables);
  db.exec(`INSERT INTO redrive_notifications_schema VALUES (${VERSION}, ${VERSION})`);
}

/** The record is the document. The columns beside it are what it is found by, and those of an update. */
const tables = `
  CREATE TABLE notifications (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    user_id TEXT NOT NULL,
    wake_at_ms INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    document TEXT NOT NULL
  );
  CREATE UNIQUE INDEX notifications_key ON notifications (idempotency_key);
  CREATE INDEX notifications_wake ON notifications (wake_at_ms) WHERE wake_at_ms IS NOT NULL;
  CREATE INDEX notifications_over ON notifications (updated_at_ms) WHERE wake_at_ms IS NULL;
  CREATE INDEX notifications_created ON notifications (created_at_ms, id);
  CREATE INDEX notifications_status ON notifications (status, created_at_ms, id);
  CREATE INDEX notifications_user ON notifications (user_id, created_at_ms, id);
  CREATE TABLE notification_attempts (
    notification_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    attempt_number INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (notification_id, device_id, attempt_number)
  ) WITHOUT ROWID;
  CREATE TABLE notification_devices (
    device_id TEXT NOT NULL PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    reason TEXT NOT NULL
  ) WITHOUT ROWID;
`;
