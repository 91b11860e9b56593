import { holdsPlace } from './version-2.ts';

/**
 * Neighbouring items that share this part of their ids share pages of the index: what is opened or closed together
 * touches a few pages, and not one for each cause. Whoever looks for a cause looks into every stripe with open items.
 */
export const stripeOf = (id: string): string => `${id} >> ${STRIPE_BITS}`;
const STRIPE_BITS = 12;
/** Ids in a stripe. */
export const STRIPE_IDS = 2 ** STRIPE_BITS;

/** Whether a task is over for good: one that failed is worked with, and never deleted as it is. */
export const isOver = `finished_at IS NOT NULL AND status <> 'failed'`;

/** Who stands in a line: `holdsPlace`, by the number of the line. Queries repeat it, so that its index is found. */
export const standsInLine = holdsPlace.replace('ordering_key', 'line');

/** Fewer pages and fewer index entries for each item that is closed, and for each task of a line that is done. */
export const version3 = `
  DROP INDEX retry_queue_finished;
  CREATE INDEX retry_queue_finished ON retry_queue (status, finished_at) WHERE ${isOver};

  DROP INDEX redrive_inbox_open_fingerprint;
  CREATE INDEX redrive_inbox_open_fingerprint ON redrive_inbox (${stripeOf('id')}, fingerprint) WHERE state = 'open';

  DROP TRIGGER redrive_inbox_moved;
  CREATE TRIGGER redrive_inbox_moved AFTER UPDATE OF state ON redrive_inbox
  WHEN (old.state = 'open') <> (new.state = 'open') BEGIN
    UPDATE redrive_groups SET open = open + iif(new.state = 'open', 1, -1) WHERE fingerprint = old.fingerprint;
  END;
  DROP TRIGGER redrive_inbox_deleted;
  CREATE TRIGGER redrive_inbox_deleted AFTER DELETE ON redrive_inbox BEGIN
    UPDATE redrive_groups SET open = open - 1 WHERE old.state = 'open' AND fingerprint = old.fingerprint;
    DELETE FROM redrive_groups WHERE fingerprint = old.fingerprint AND note IS NULL AND owner IS NULL
      AND NOT EXISTS (SELECT 1 FROM redrive_inbox WHERE fingerprint = old.fingerprint);
  END;
  -- Indexes follow the flag, which hardly ever changes, and not the count, which does with every item.
  CREATE TRIGGER redrive_groups_counted AFTER UPDATE OF open ON redrive_groups
  WHEN (new.open > 0) <> new.is_open BEGIN
    UPDATE redrive_groups SET is_open = new.open > 0 WHERE fingerprint = new.fingerprint;
  END;

  CREATE TABLE redrive_lines (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lane TEXT NOT NULL,
    ordering_key TEXT NOT NULL,
    UNIQUE (lane, ordering_key)
  );
  INSERT INTO redrive_lines (lane, ordering_key)
    SELECT lane, ordering_key FROM retry_queue WHERE ${holdsPlace} GROUP BY lane, ordering_key ORDER BY min(id);
  ALTER TABLE retry_queue ADD COLUMN line INTEGER;
  UPDATE retry_queue SET line = (
      SELECT line.id FROM redrive_lines line
      WHERE line.lane = retry_queue.lane AND line.ordering_key = retry_queue.ordering_key
    )
    WHERE ${holdsPlace};
  DROP INDEX retry_queue_line;
  CREATE INDEX retry_queue_line ON retry_queue (line, blocked) WHERE ${standsInLine};
`;
