import { countTriggers } from './groups-schema.ts';
import type { Names } from '../names.ts';

/**
 * From schema 3 to schema 4, in one transaction: the state of an item leaves its row. Whoever is open stands in a small
 * table of its own, whoever is closed in another. To close an item is to delete a short row and to append one; its own
 * row, which is wide and in many indexes, is not written again.
 *
 * A program of an older schema finds the column of the state no more: it fails, and says so, and loses nothing.
 */
export function splitState(names: Names): string {
  const { inbox, open, closed, members, version } = names;
  return `
    LOCK TABLE ${inbox} IN ACCESS EXCLUSIVE MODE;
    CREATE TABLE ${open} (
      id bigint PRIMARY KEY,
      task_id bigint,
      raw_id uuid,
      generation integer NOT NULL,
      edited boolean NOT NULL,
      reason text NOT NULL,
      lane text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      ordering_key text
    ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
    CREATE TABLE ${closed} (
      id bigint PRIMARY KEY,
      state text COLLATE "C" NOT NULL,
      closed_at timestamptz NOT NULL,
      closed_by text
    );
    INSERT INTO ${open} (${openColumns})
      SELECT ${openValues} FROM ${inbox} AS item WHERE state = 'open' ORDER BY id;
    INSERT INTO ${closed} (id, state, closed_at, closed_by)
      SELECT id, state, coalesce(closed_at, last_seen), closed_by FROM ${inbox} WHERE state <> 'open' ORDER BY id;
    CREATE UNIQUE INDEX redrive_open_task ON ${open} (task_id) WHERE task_id IS NOT NULL;
    CREATE UNIQUE INDEX redrive_open_raw ON ${open} (raw_id) WHERE raw_id IS NOT NULL;
    CREATE INDEX redrive_open_fingerprint ON ${open} (fingerprint, id);
    CREATE INDEX redrive_open_lane ON ${open} (lane, id);
    CREATE INDEX redrive_open_ordered ON ${open} (id) WHERE ordering_key IS NOT NULL;
    CREATE INDEX redrive_closed_state ON ${closed} (state, id);
    CREATE INDEX redrive_closed_at ON ${closed} (closed_at);
    DROP TRIGGER IF EXISTS redrive_count_new ON ${inbox};
    DROP TRIGGER IF EXISTS redrive_count_changed ON ${inbox};
    DROP TRIGGER IF EXISTS redrive_count_deleted ON ${inbox};
    ALTER TABLE ${inbox} DROP COLUMN state, DROP COLUMN closed_at, DROP COLUMN closed_by;
    ${countTriggers(names)}
    -- Hardly any of them is written again.
    ALTER TABLE ${members} RESET (fillfactor);
    UPDATE ${version} SET oldest = 4;`;
}

/** What an item keeps of its task beside payload and context, so that a task made anew from it is the same. */
export function addKept({ inbox }: Names): string {
  return `ALTER TABLE ${inbox} ADD COLUMN IF NOT EXISTS task_edited integer, ADD COLUMN IF NOT EXISTS task_on_dead text;`;
}

/** What the table of open items takes from an item, of the inbox as `item` or of something with its columns. */
export const openColumns =
  'id, task_id, raw_id, generation, edited, reason, lane, fingerprint, ordering_key';
export const openValues = `item.id, item.task_id, CASE WHEN item.task_id IS NULL THEN item.message_id END, item.generation,
  item.edit IS NOT NULL, item.reason, item.lane, item.fingerprint, item.ordering_key`;
