import type { Names } from './names.ts';

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
      ${sampleText(names.inbox)};`;
}

/** Nobody who writes items can forget to count them, by whatever statement. Each says one thing per group. */
export function countTriggers(names: Names): string {
  const schema = names.inbox.slice(0, names.inbox.lastIndexOf('.'));
  const count = `${schema}.redrive_count`;
  const changed = `SELECT fingerprint, sum(open), max(last_seen) FROM (
      SELECT fingerprint, (state = 'open')::integer AS open, last_seen, last_seen AS after, NULL::timestamptz AS before
      FROM fresh UNION ALL
      SELECT fingerprint, -(state = 'open')::integer, NULL, NULL, last_seen FROM old
    ) AS item GROUP BY fingerprint HAVING sum(open) <> 0 OR max(after) > max(before) ORDER BY fingerprint`;
  return `
    CREATE OR REPLACE FUNCTION ${count}_new() RETURNS trigger LANGUAGE plpgsql AS $count$
    BEGIN
      INSERT INTO ${names.deltas} (fingerprint, lane, reason, failure, newest, open, first_seen, last_seen)
        ${sampleText('fresh')};
      RETURN NULL;
    END
    $count$;
    CREATE OR REPLACE FUNCTION ${count}_changed() RETURNS trigger LANGUAGE plpgsql AS $count$
    BEGIN
      INSERT INTO ${names.deltas} (fingerprint, open, last_seen) ${changed};
      RETURN NULL;
    END
    $count$;
    CREATE OR REPLACE FUNCTION ${count}_deleted() RETURNS trigger LANGUAGE plpgsql AS $count$
    BEGIN
      INSERT INTO ${names.deltas} (fingerprint, open)
        SELECT fingerprint, -count(*) FROM old WHERE state = 'open' GROUP BY fingerprint ORDER BY fingerprint;
      RETURN NULL;
    END
    $count$;
    CREATE TRIGGER redrive_count_new AFTER INSERT ON ${names.inbox} REFERENCING NEW TABLE AS fresh
      FOR EACH STATEMENT EXECUTE FUNCTION ${count}_new();
    CREATE TRIGGER redrive_count_changed AFTER UPDATE ON ${names.inbox} REFERENCING OLD TABLE AS old NEW TABLE AS fresh
      FOR EACH STATEMENT EXECUTE FUNCTION ${count}_changed();
    CREATE TRIGGER redrive_count_deleted AFTER DELETE ON ${names.inbox} REFERENCING OLD TABLE AS old
      FOR EACH STATEMENT EXECUTE FUNCTION ${count}_deleted();`;
}

/** For each group what there is of it in a table of items; the newest one says what it is about. */
function sampleText(table: string): string {
  return `SELECT item.fingerprint, item.lane, item.reason, item.failure, total.newest, total.open, total.first_seen,
      total.last_seen
    FROM (
      SELECT max(id) AS newest, count(*) FILTER (WHERE state = 'open') AS open, min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
      FROM ${table} GROUP BY fingerprint
    ) AS total JOIN ${table} AS item ON item.id = total.newest ORDER BY item.fingerprint`;
}
