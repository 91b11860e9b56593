/**
 * Times are whole ms since the epoch, yes and no are 1 and 0, a message id is its 16 bytes. What moves stands before
 * what is large: SQLite walks a row from its beginning, and a long payload lies on pages of its own.
 */
export const version1 = `
  CREATE TABLE retry_queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id BLOB NOT NULL,
    original_queue TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'queue',
    address TEXT,
    lane TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    next_retry_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    visible_at INTEGER NOT NULL,
    first_at INTEGER,
    lease INTEGER,
    arrival INTEGER,
    claims INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    uncounted INTEGER NOT NULL DEFAULT 0,
    delay_ms INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    arrived INTEGER NOT NULL DEFAULT 0,
    cancelling INTEGER NOT NULL DEFAULT 0,
    blocked INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER,
    finished_at INTEGER,
    verdict TEXT,
    policy TEXT,
    ordering_key TEXT,
    error_reason TEXT,
    failure TEXT,
    context TEXT,
    original_payload BLOB NOT NULL
  );
  CREATE UNIQUE INDEX retry_queue_identity ON retry_queue (message_id, original_queue, kind);
  CREATE INDEX retry_queue_due ON retry_queue (lane, visible_at, id)
    WHERE status = 'pending' AND blocked = 0 AND claims = 0;
  CREATE INDEX retry_queue_lost ON retry_queue (lane, visible_at, id)
    WHERE status = 'pending' AND blocked = 0 AND claims > 0;
  CREATE INDEX retry_queue_arrived ON retry_queue (lease) WHERE arrived = 1;
  CREATE INDEX retry_queue_expiry ON retry_queue (expires_at)
    WHERE status = 'pending' AND blocked = 0 AND expires_at IS NOT NULL;
  CREATE INDEX retry_queue_finished ON retry_queue (status, finished_at) WHERE finished_at IS NOT NULL;

  CREATE TABLE redrive_attempts (
    id INTEGER PRIMARY KEY,
    task_id INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    failure TEXT NOT NULL,
    answer TEXT
  );
  CREATE INDEX redrive_attempts_task ON redrive_attempts (task_id);

  CREATE TABLE redrive_inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id INTEGER,
    message_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    address TEXT NOT NULL,
    lane TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    reason TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    occurrences INTEGER NOT NULL DEFAULT 1,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    failure TEXT NOT NULL,
    context TEXT,
    payload BLOB
  );
  CREATE UNIQUE INDEX redrive_inbox_task ON redrive_inbox (task_id) WHERE state = 'open' AND task_id IS NOT NULL;
  CREATE UNIQUE INDEX redrive_inbox_raw ON redrive_inbox (message_id) WHERE state = 'open' AND task_id IS NULL;
  CREATE INDEX redrive_inbox_message ON redrive_inbox (message_id);
  CREATE INDEX redrive_inbox_fingerprint ON redrive_inbox (fingerprint);

  CREATE TABLE redrive_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    visible_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    address TEXT NOT NULL,
    headers TEXT NOT NULL,
    payload BLOB NOT NULL
  );

  CREATE TABLE redrive_state (
    key TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    value TEXT NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE redrive_audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    instance TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    event TEXT NOT NULL
  );
`;
