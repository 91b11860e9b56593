import type { DatabaseSync } from 'node:sqlite';
import { EngineError } from '../../../errors.ts';

/** The table of keys has a version of its own: it is used without an engine too, and in the file of one. */
const VERSION = 1;

/** Creates the table, or makes sure that this program may use it. */
export function migrateIdempotency(db: DatabaseSync, file: string): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    db.exec(`CREATE TABLE IF NOT EXISTS redrive_idempotency_schema (
      version INTEGER NOT NULL, oldest INTEGER NOT NULL)`);
    // The largest fencing token of the keys that were let go or cleared: theirs must not come again.
    db.exec('CREATE TABLE IF NOT EXISTS redrive_idempotency_token (last INTEGER NOT NULL)');
    const found = db.prepare('SELECT version, oldest FROM redrive_idempotency_schema').get();
    if (found && Number(found['oldest']) > VERSION) {
      throw new EngineError(
        'SCHEMA_TOO_NEW',
        `${file} has idempotency keys of schema ${Number(found['version'])}, which this Redrive does not know: it knows ${VERSION}. Update this program.`,
      );
    }
    if (!found) {
      db.exec(table);
      db.exec('INSERT INTO redrive_idempotency_token VALUES (0)');
      db.exec(`INSERT INTO redrive_idempotency_schema VALUES (${VERSION}, ${VERSION})`);
    }
    db.exec('COMMIT');
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
}

const table = `
  CREATE TABLE redrive_idempotency (
    key TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    fencing_token INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    lease_end_ms INTEGER NOT NULL,
    outcome TEXT,
    text TEXT,
    metadata TEXT,
    recorded_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER
  );
  CREATE INDEX redrive_idempotency_expiry ON redrive_idempotency (expires_at_ms)
    WHERE expires_at_ms IS NOT NULL;
`;
