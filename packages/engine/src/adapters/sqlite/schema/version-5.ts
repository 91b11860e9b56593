import { stripeOf } from './version-3.ts';

/** What the table of open items takes from an item, of the inbox as `item`. */
export const openColumns = 'id, task_id, raw_id, edited, reason, lane, fingerprint';
export const openValues = (item: string): string => `${item}.id, ${item}.task_id,
  iif(${item}.task_id IS NULL, ${item}.message_id, NULL), ${item}.edit IS NOT NULL, ${item}.reason, ${item}.lane,
  ${item}.fingerprint`;

/** Replayed by a bulk job, and on its way. Queries repeat it, so that its index is found. */
export const isUnderway = `job IS NOT NULL AND status = 'pending'`;
/** Replayed by a bulk job: handed over to a broker, or cancelled on its way. */
export const isEnded = `job IS NOT NULL AND status NOT IN ('pending', 'failed', 'done')`;

/**
 * The state of an item leaves its row. Whoever is open stands in a small table of its own, whoever is closed in another:
 * to close an item is to delete a short row and to append one. Its own row, which is wide, is not written again.
 */
export const version5 = `
  -- First, so that what comes finds room.
  DROP TRIGGER redrive_inbox_added;
  DROP TRIGGER redrive_inbox_moved;
  DROP TRIGGER redrive_inbox_deleted;
  DROP INDEX redrive_inbox_task;
  DROP INDEX redrive_inbox_raw;
  DROP INDEX redrive_inbox_state;
  DROP INDEX redrive_inbox_open_fingerprint;
  DROP INDEX redrive_inbox_open_lane;
  DROP INDEX redrive_inbox_closed;

  CREATE TABLE redrive_open (
    id INTEGER PRIMARY KEY,
    task_id INTEGER,
    raw_id BLOB,
    edited INTEGER NOT NULL,
    reason TEXT NOT NULL,
    lane TEXT NOT NULL,
    fingerprint TEXT NOT NULL
  );
  CREATE TABLE redrive_closed (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    closed_at INTEGER NOT NULL,
    closed_by TEXT
  );
  INSERT INTO redrive_open (${openColumns})
    SELECT ${openValues('item')} FROM redrive_inbox item WHERE state = 'open' ORDER BY id;
  INSERT INTO redrive_closed (id, state, closed_at, closed_by)
    SELECT id, state, coalesce(closed_at, last_seen), closed_by FROM redrive_inbox WHERE state <> 'open' ORDER BY id;
  CREATE UNIQUE INDEX redrive_open_task ON redrive_open (task_id) WHERE task_id IS NOT NULL;
  CREATE UNIQUE INDEX redrive_open_raw ON redrive_open (raw_id) WHERE raw_id IS NOT NULL;
  CREATE INDEX redrive_open_fingerprint ON redrive_open (${stripeOf('id')}, fingerprint);
  CREATE INDEX redrive_open_lane ON redrive_open (lane);
  CREATE INDEX redrive_closed_state ON redrive_closed (state);
  CREATE INDEX redrive_closed_at ON redrive_closed (closed_at);

  -- Written twice for every task that is replayed: short, and without texts.
  DROP INDEX retry_queue_job;
  CREATE INDEX retry_queue_underway ON retry_queue (job, blocked) WHERE ${isUnderway};
  CREATE INDEX retry_queue_ended ON retry_queue (job, status, finished_at) WHERE ${isEnded};

  ALTER TABLE redrive_inbox DROP COLUMN state;
  ALTER TABLE redrive_inbox DROP COLUMN closed_at;
  ALTER TABLE redrive_inbox DROP COLUMN closed_by;

  -- Whoever opens or closes one later counts it: for many at once, which a trigger cannot.
  CREATE TRIGGER redrive_inbox_added AFTER INSERT ON redrive_inbox BEGIN
    INSERT INTO redrive_open (${openColumns}) VALUES (${openValues('new')});
    INSERT INTO redrive_groups (fingerprint, lane, reason, open, is_open, first_seen, last_seen, failure)
      VALUES (new.fingerprint, new.lane, new.reason, 1, 1, new.first_seen, new.last_seen, new.failure)
      ON CONFLICT (fingerprint) DO UPDATE SET
        lane = excluded.lane, reason = excluded.reason, failure = excluded.failure, open = open + 1, is_open = 1,
        first_seen = min(first_seen, excluded.first_seen), last_seen = excluded.last_seen;
  END;
  CREATE TRIGGER redrive_inbox_deleted AFTER DELETE ON redrive_inbox BEGIN
    UPDATE redrive_groups SET open = open - 1
      WHERE fingerprint = old.fingerprint AND EXISTS (SELECT 1 FROM redrive_open WHERE id = old.id);
    DELETE FROM redrive_open WHERE id = old.id;
    DELETE FROM redrive_closed WHERE id = old.id;
    DELETE FROM redrive_groups WHERE fingerprint = old.fingerprint AND note IS NULL AND owner IS NULL
      AND NOT EXISTS (SELECT 1 FROM redrive_inbox WHERE fingerprint = old.fingerprint);
  END;
`;
