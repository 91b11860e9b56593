import { type Names, quoteName, quoteText } from '../names.ts';

/**
 * The row of a group is written by whoever reads groups, and by housekeeping: in an outage all settlements have one
 * cause, and would queue up for its row. They append what they counted instead.
 */
export function groupTables(names: Names): string {
  return `
    CREATE TABLE ${names.groups} (
      fingerprint text COLLATE "C" PRIMARY KEY,
      lane text COLLATE "C" NOT NULL,
      reason text NOT NULL,
      failure json NOT NULL,
      newest bigint NOT NULL,
      open integer NOT NULL,
      first_seen timestamptz NOT NULL,
      last_seen timestamptz NOT NULL,
      note text,
      owner text
    );
    CREATE INDEX redrive_groups_seen ON ${names.groups} (last_seen, fingerprint);
    CREATE INDEX redrive_groups_open ON ${names.groups} (last_seen, fingerprint) WHERE open > 0;
    CREATE INDEX redrive_groups_lane ON ${names.groups} (lane, last_seen, fingerprint);
    CREATE INDEX redrive_groups_lane_open ON ${names.groups} (lane, last_seen, fingerprint) WHERE open > 0;
    CREATE TABLE ${names.deltas} (
      id bigserial PRIMARY KEY,
      fingerprint text COLLATE "C" NOT NULL,
      open integer NOT NULL,
      first_seen timestamptz,
      last_seen timestamptz,
      newest bigint,
      lane text COLLATE "C",
      reason text,
      failure json
    ) WITH (autovacuum_vacuum_scale_factor = 0.05);
    INSERT INTO ${names.groups} (fingerprint, lane, reason, failure, newest, open, first_seen, last_seen)
      ${sampleText(names.inbox, `count(*) FILTER (WHERE state = 'open')`)};`;
}

/**
 * Nobody who writes items can forget to count them, and each statement says one thing per group: that items came, which
 * are open, that they were seen again, and that they are open no more. Only who opens one again has to say so. Whoever
 * deletes an item deletes what is said of it in the other tables: planned each time, for the tables as they are then.
 */
export function countTriggers(names: Names): string {
  const count = `${quoteName(names.schema)}.redrive_count`;
  const trigger = (name: string, when: string, tables: string, text: string) => `
    CREATE OR REPLACE FUNCTION ${count}_${name}() RETURNS trigger LANGUAGE plpgsql AS $count$
    BEGIN
      ${text};
      RETURN NULL;
    END
    $count$;
    CREATE TRIGGER redrive_count_${name} AFTER ${when} REFERENCING ${tables}
      FOR EACH STATEMENT EXECUTE FUNCTION ${count}_${name}();`;
  const forget = (table: string) =>
    `EXECUTE ${quoteText(`DELETE FROM ${table} WHERE id = ANY ($1)`)} USING ARRAY(SELECT id FROM old)`;
  return [
    trigger(
      'new',
      `INSERT ON ${names.inbox}`,
      'NEW TABLE AS fresh',
      `INSERT INTO ${names.deltas} (fingerprint, lane, reason, failure, newest, open, first_seen, last_seen)
        ${sampleText('fresh', 'count(*)')}`,
    ),
    trigger(
      'changed',
      `UPDATE ON ${names.inbox}`,
      'OLD TABLE AS old NEW TABLE AS fresh',
      `INSERT INTO ${names.deltas} (fingerprint, open, last_seen)
        SELECT fingerprint, 0, max(after) FROM (
          SELECT fingerprint, last_seen AS after, NULL::timestamptz AS before FROM fresh
          UNION ALL SELECT fingerprint, NULL, last_seen FROM old
        ) AS item GROUP BY fingerprint HAVING max(after) > max(before) ORDER BY fingerprint`,
    ),
    trigger(
      'closed',
      `DELETE ON ${names.open}`,
      'OLD TABLE AS old',
      `INSERT INTO ${names.deltas} (fingerprint, open)
        SELECT fingerprint, -count(*) FROM old GROUP BY fingerprint ORDER BY fingerprint`,
    ),
    trigger(
      'deleted',
      `DELETE ON ${names.inbox}`,
      'OLD TABLE AS old',
      [names.open, names.closed].map(forget).join('; '),
    ),
  ].join('');
}

/** For each group what there is of it in a table of items; the newest one says what it is about. */
function sampleText(table: string, open: string): string {
  return `SELECT item.fingerprint, item.lane, item.reason, item.failure, total.newest, total.open, total.first_seen,
      total.last_seen
    FROM (
      SELECT max(id) AS newest, ${open} AS open, min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
      FROM ${table} GROUP BY fingerprint
    ) AS total JOIN ${table} AS item ON item.id = total.newest ORDER BY item.fingerprint`;
}
