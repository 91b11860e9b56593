import type { Line } from '../../../model/line.ts';
import { type Column, few, type Params, rowsOf } from '../batch.ts';
import type { Names } from '../names.ts';
import { active, holding } from './sets.ts';
import { msOf, NOW } from '../times.ts';

/**
 * Locks lines, in the order in which they are given. The row is written, not only locked: a transaction with an older
 * snapshot gets a serialization error instead of an old view of the line.
 */
export function lockLinesText(
  names: Names,
  lines: readonly Line[],
  params: Params,
  patience = '',
): string {
  return `INSERT INTO ${names.lines} AS line (lane, ordering_key, version, touched_at)
    SELECT u.lane, u.ordering_key, 1, ${NOW} FROM (${rowsOf(lineColumns(lines), params)}) AS u ${patience} ORDER BY u.n
    ON CONFLICT (lane, ordering_key) DO UPDATE SET version = line.version + 1, touched_at = excluded.touched_at`;
}

/**
 * Those of the lines that nobody else has locked: their numbers. One that has no row is not among them, and one that
 * somebody has just written may not be: a statement does not see the new place of a row.
 */
export function takeLinesText(names: Names, lines: readonly Line[], params: Params): string {
  return `WITH free AS MATERIALIZED (
      SELECT u.n, line.place FROM (${few(`(${rowsOf(lineColumns(lines), params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT line.ctid AS place FROM ${names.lines} AS line
        WHERE line.lane = u.lane AND line.ordering_key = u.ordering_key FOR UPDATE SKIP LOCKED
      ) AS line
    )
    UPDATE ${names.lines} AS line SET version = line.version + 1, touched_at = ${NOW}
    FROM (${few('free', 'n')}) AS t WHERE line.ctid = t.place RETURNING t.n`;
}

/** Gives rows to lines that have none, so that they can be locked without waiting. */
export function addLinesText(names: Names, lines: readonly Line[], params: Params): string {
  return `INSERT INTO ${names.lines} (lane, ordering_key, version, touched_at)
    SELECT u.lane, u.ordering_key, 1, ${NOW} FROM (${rowsOf(lineColumns(lines), params)}) AS u
    WHERE NOT EXISTS (
      SELECT FROM ${names.lines} AS line WHERE line.lane = u.lane AND line.ordering_key = u.ordering_key
    ) ORDER BY u.n ON CONFLICT DO NOTHING`;
}

/**
 * Does to lines what `turnOf` says of one, and answers the lanes of those whose turn it is now, and in how many ms the
 * first of each is visible. It must be a statement of its own, after the lines are locked and their tasks are written:
 * only then does it see all of them.
 *
 * Where another one than the first has the turn, that is read again under a lock: a claim, which asks for no line, may
 * just be taking it. Where the first has it, or nobody can have it, no row is touched.
 */
export function advanceText(names: Names, lines: readonly Line[], params: Params): string {
  return `WITH u AS MATERIALIZED (${rowsOf(lineColumns(lines), params)}),
    place AS MATERIALIZED (
      SELECT u.n, coalesce(ahead.ids, '{}') AS ids, least(ahead.first, waiting.id) AS first,
        waiting.status = 'pending' AND (ahead.first IS NULL OR waiting.id < ahead.first) AS is_waiting
      FROM (${few('u', 'n')}) AS u CROSS JOIN LATERAL (
        SELECT min(q.id) AS first, array_agg(q.id) FILTER (WHERE q.status = 'pending') AS ids FROM ${names.queue} AS q
        WHERE q.lane = u.lane AND q.ordering_key = u.ordering_key AND ${holding} AND NOT q.blocked
      ) AS ahead LEFT JOIN LATERAL ${firstOf(names, 'q.blocked')} AS waiting ON true
    ),
    free AS MATERIALIZED (SELECT first AS id FROM place WHERE ids = '{}' AND is_waiting ORDER BY id),
    wanted AS MATERIALIZED (
      SELECT DISTINCT n, first, unnest(ids || first) AS id FROM place
      WHERE ids <> '{}' AND ids <> ARRAY[first] OR ${isOldView} ORDER BY id
    ),
    locked AS MATERIALIZED (
      SELECT wanted.n, wanted.first, q.* FROM wanted CROSS JOIN LATERAL (
        SELECT q.id, q.status, q.blocked, q.lease FROM ${names.queue} AS q WHERE q.id = wanted.id FOR UPDATE
      ) AS q
    ),
    turn AS MATERIALIZED (
      SELECT id FROM (
        SELECT *, bool_or(id <> first AND lease IS NOT NULL) OVER (PARTITION BY n) AS awaited FROM locked
      ) AS one
      WHERE CASE WHEN id = first THEN status = 'pending' AND blocked AND NOT awaited ELSE lease IS NULL END
      UNION SELECT id FROM free
    ),
    moved AS (
      UPDATE ${names.queue} AS q SET blocked = NOT q.blocked
      FROM (${few('turn', 'id')}) AS t WHERE q.id = ANY (ARRAY[t.id])
      RETURNING q.lane, q.blocked, q.lease, q.visible_at
    )
    SELECT lane, ${msOf(`min(visible_at) - ${NOW}`)} AS wait FROM moved
    WHERE NOT blocked AND lease IS NULL GROUP BY lane`;
}

/**
 * A caller's transaction may see what was when it began. Where the row of a line was deleted since, nothing else would
 * tell: so the first is always locked, which fails if somebody has changed it.
 */
const isOldView = `current_setting('transaction_isolation') <> 'read committed'`;

/** Lines after that one, in order, each with whether it is old, and whether its turn was forgotten. */
export function sweepText(names: Names): string {
  return `SELECT u.lane, u.ordering_key, u.touched_at < ${NOW} - INTERVAL '1 day' AS is_old,
      first.id IS NULL AS is_empty,
      first.status = 'pending' AND first.blocked AND NOT EXISTS (
        SELECT FROM ${names.queue} AS q WHERE q.lane = u.lane AND q.ordering_key = u.ordering_key AND ${active}
      ) AS is_forgotten
    FROM (
      SELECT lane, ordering_key, touched_at FROM ${names.lines}
      WHERE (lane, ordering_key) > ($1::text, $2::text) ORDER BY lane, ordering_key LIMIT $3::int4
    ) AS u LEFT JOIN LATERAL (${firstText(names)}) AS first ON true
    ORDER BY u.lane, u.ordering_key`;
}

/** Deletes those of the lines that nobody holds a place in. They must be locked by an earlier statement. */
export function dropLinesText(names: Names, lines: readonly Line[], params: Params): string {
  return `DELETE FROM ${names.lines} WHERE ctid = ANY (ARRAY(
      SELECT line.place FROM (${few(`(${rowsOf(lineColumns(lines), params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT line.ctid AS place FROM ${names.lines} AS line
        WHERE line.lane = u.lane AND line.ordering_key = u.ordering_key OFFSET 0
      ) AS line WHERE NOT EXISTS (SELECT FROM (${firstText(names)}) AS first)
    ))`;
}

/**
 * Who has the first place of line `u`: the first of those who wait, or of the others. Sorted by all that the index has:
 * sorted by the id alone, the planner would walk through the primary key until it meets one of this line.
 */
export function firstText(names: Names): string {
  return `SELECT * FROM (${firstOf(names, 'NOT q.blocked')} UNION ALL ${firstOf(names, 'q.blocked')}) AS q
    ORDER BY id LIMIT 1`;
}

function firstOf({ queue }: Names, which: string): string {
  return `(SELECT q.id, q.status, q.blocked FROM ${queue} AS q
    WHERE q.lane = u.lane AND q.ordering_key = u.ordering_key AND ${holding} AND ${which}
    ORDER BY q.lane, q.ordering_key, q.blocked, q.id LIMIT 1)`;
}

/** The key goes row by row even where it is the same throughout, as everything else that an index is asked for. */
function lineColumns(lines: readonly Line[]): Column[] {
  return [
    { name: 'lane', type: 'text', values: lines.map(({ lane }) => lane), isKey: true },
    { name: 'ordering_key', type: 'text', values: lines.map(({ key }) => key), isKey: true },
  ];
}
