/** Who holds a place in a line: `holdsPlace` of the pure lines, word for word, so that its index is found. */
export const holdsPlace = `ordering_key IS NOT NULL AND (status = 'pending' OR (status = 'failed' AND on_dead IS NULL))`;

/** Its own statement: indexes follow the flag, which hardly ever changes, and not the count, which does with every item. */
const flagOpen = `UPDATE redrive_groups SET is_open = open > 0 WHERE fingerprint = old.fingerprint AND is_open <> (open > 0);`;

/**
 * Order by key, and an inbox that is worked with. New columns stand after the payload: where they are empty, as in nearly
 * all rows, reading them does not touch its pages.
 */
export const version2 = `
  ALTER TABLE retry_queue ADD COLUMN on_dead TEXT;
  ALTER TABLE retry_queue ADD COLUMN job INTEGER;
  ALTER TABLE retry_queue ADD COLUMN trial INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE retry_queue ADD COLUMN edited INTEGER;
  DROP INDEX retry_queue_expiry;
  CREATE INDEX retry_queue_expiry ON retry_queue (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;
  CREATE INDEX retry_queue_line ON retry_queue (lane, ordering_key, blocked) WHERE ${holdsPlace};
  CREATE INDEX retry_queue_overtaking ON retry_queue (lease) WHERE blocked = 1 AND lease IS NOT NULL;
  CREATE INDEX retry_queue_job ON retry_queue (job, status, finished_at, blocked) WHERE job IS NOT NULL AND status <> 'done';
  UPDATE retry_queue SET blocked = id <> (
      SELECT min(ahead.id) FROM retry_queue ahead INDEXED BY retry_queue_line
      WHERE ahead.lane = retry_queue.lane AND ahead.ordering_key = retry_queue.ordering_key
        AND ${holdsPlace.replace(/\b(ordering_key|status|on_dead)\b/g, 'ahead.$1')}
    )
    WHERE ordering_key IS NOT NULL AND status = 'pending';

  ALTER TABLE redrive_inbox ADD COLUMN closed_at INTEGER;
  ALTER TABLE redrive_inbox ADD COLUMN closed_by TEXT;
  ALTER TABLE redrive_inbox ADD COLUMN job INTEGER;
  ALTER TABLE redrive_inbox ADD COLUMN ordering_key TEXT;
  ALTER TABLE redrive_inbox ADD COLUMN edit TEXT;
  ALTER TABLE redrive_inbox ADD COLUMN edit_payload BLOB;
  UPDATE redrive_inbox SET ordering_key = (SELECT ordering_key FROM retry_queue WHERE id = task_id)
    WHERE task_id IS NOT NULL;
  CREATE INDEX redrive_inbox_state ON redrive_inbox (state);
  CREATE INDEX redrive_inbox_lane ON redrive_inbox (lane);
  CREATE INDEX redrive_inbox_open_fingerprint ON redrive_inbox (fingerprint) WHERE state = 'open';
  CREATE INDEX redrive_inbox_open_lane ON redrive_inbox (lane) WHERE state = 'open';
  CREATE INDEX redrive_inbox_job ON redrive_inbox (job) WHERE job IS NOT NULL;
  CREATE INDEX redrive_inbox_closed ON redrive_inbox (closed_at) WHERE closed_at IS NOT NULL;

  CREATE TABLE redrive_groups (
    fingerprint TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    reason TEXT NOT NULL,
    open INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    note TEXT,
    owner TEXT,
    failure TEXT NOT NULL
  );
  CREATE INDEX redrive_groups_seen ON redrive_groups (last_seen, fingerprint);
  CREATE INDEX redrive_groups_open ON redrive_groups (last_seen, fingerprint) WHERE is_open = 1;
  CREATE INDEX redrive_groups_open_lane ON redrive_groups (lane, last_seen, fingerprint) WHERE is_open = 1;
  INSERT INTO redrive_groups (fingerprint, lane, reason, open, is_open, first_seen, last_seen, failure)
    SELECT item.fingerprint, item.lane, item.reason, found.open, found.open > 0, found.first_seen, found.last_seen, item.failure
    FROM (
      SELECT max(id) AS id, sum(state = 'open') AS open, min(first_seen) AS first_seen, max(last_seen) AS last_seen
      FROM redrive_inbox GROUP BY fingerprint
    ) found JOIN redrive_inbox item ON item.id = found.id;

  CREATE TRIGGER redrive_inbox_added AFTER INSERT ON redrive_inbox BEGIN
    INSERT INTO redrive_groups (fingerprint, lane, reason, open, is_open, first_seen, last_seen, failure)
      VALUES (new.fingerprint, new.lane, new.reason, new.state = 'open', new.state = 'open', new.first_seen,
        new.last_seen, new.failure)
      ON CONFLICT (fingerprint) DO UPDATE SET
        lane = excluded.lane, reason = excluded.reason, failure = excluded.failure,
        open = open + excluded.open, is_open = max(is_open, excluded.open),
        first_seen = min(first_seen, excluded.first_seen), last_seen = excluded.last_seen;
  END;
  CREATE TRIGGER redrive_inbox_moved AFTER UPDATE OF state ON redrive_inbox
  WHEN (old.state = 'open') <> (new.state = 'open') BEGIN
    UPDATE redrive_groups SET open = open + iif(new.state = 'open', 1, -1) WHERE fingerprint = old.fingerprint;
    ${flagOpen}
  END;
  CREATE TRIGGER redrive_inbox_seen AFTER UPDATE OF last_seen ON redrive_inbox
  WHEN old.last_seen <> new.last_seen BEGIN
    UPDATE redrive_groups SET last_seen = new.last_seen WHERE fingerprint = old.fingerprint;
  END;
  CREATE TRIGGER redrive_inbox_regrouped BEFORE UPDATE OF fingerprint ON redrive_inbox
  WHEN old.fingerprint <> new.fingerprint BEGIN
    SELECT raise(ABORT, 'The fingerprint of an item cannot change.');
  END;
  CREATE TRIGGER redrive_inbox_deleted AFTER DELETE ON redrive_inbox BEGIN
    UPDATE redrive_groups SET open = open - 1 WHERE old.state = 'open' AND fingerprint = old.fingerprint;
    ${flagOpen}
    DELETE FROM redrive_groups WHERE fingerprint = old.fingerprint AND note IS NULL AND owner IS NULL
      AND NOT EXISTS (SELECT 1 FROM redrive_inbox WHERE fingerprint = old.fingerprint);
  END;
  CREATE TRIGGER redrive_groups_forgotten AFTER UPDATE OF note, owner ON redrive_groups
  WHEN new.note IS NULL AND new.owner IS NULL BEGIN
    DELETE FROM redrive_groups WHERE fingerprint = old.fingerprint
      AND NOT EXISTS (SELECT 1 FROM redrive_inbox WHERE fingerprint = old.fingerprint);
  END;

  CREATE TABLE redrive_members (
    job INTEGER NOT NULL,
    item_id INTEGER NOT NULL,
    result TEXT,
    PRIMARY KEY (job, item_id)
  ) WITHOUT ROWID;
  CREATE INDEX redrive_members_undone ON redrive_members (job, result, item_id)
    WHERE result IS NOT NULL AND result <> 'done';

  ALTER TABLE redrive_outbox ADD COLUMN message_id BLOB;
  CREATE INDEX redrive_outbox_message ON redrive_outbox (message_id) WHERE message_id IS NOT NULL;
`;
