import type { ClaimFrom, ClaimRequest } from '../../../ports/schedule.ts';
import { encodeArray } from '../arrays.ts';
import { few, type Params } from '../batch.ts';
import type { Names } from '../names.ts';
import { claimedColumns } from '../rows.ts';
import { arrived, claimed, due } from './sets.ts';
import { later, msOf, NOW } from '../times.ts';
import { boundedMs, bytesUpTo, countOf } from '../bounds.ts';

/**
 * A statement that leases, and answers the tasks, earliest first in each lane, each with the time at the end. `all`: all
 * that was asked for, or nothing where that is more than the bytes allow. `fitting`: as much as they allow, and always one.
 */
export function claimText(
  names: Names,
  { from, lease, leaseMs, maxBytes }: ClaimRequest,
  what: 'all' | 'fitting',
  params: Params,
): string {
  const pick = pickText(names, from, params);
  const most = `${params.add(bytesUpTo(maxBytes))}::bigint`;
  // In brackets, as the time at the end: worked out once, not for every row.
  const until = `(SELECT ${later(`${params.add(boundedMs(leaseMs))}::float8`)})`;
  const token = `${params.add(lease)}::bigint`;
  const fit = what === 'fitting' ? `, fit AS MATERIALIZED (${fitText(most)})` : '';
  const [source, condition] = fit
    ? ['fit', 'true']
    : ['pick', `(SELECT sum(bytes) FROM pick) <= ${most}`];
  // The fence is needed: without it the planner may run the subquery again and again, and lease more than was asked for.
  // By place, not by id: the rows are locked there. One that somebody changed since the statement began has a new place,
  // which the statement does not see: it is left out, and due at the next look.
  return `WITH pick AS MATERIALIZED (${pick})${fit}
    UPDATE ${names.queue} AS q SET visible_at = ${until}, lease = ${token}, claims = claims + 1, arrived = false
    FROM (${few(source, 'id')}) AS t WHERE q.ctid = t.place AND ${condition}
    RETURNING ${claimedColumns.join(', ')}, (SELECT (${msOf(NOW)})::text) AS now`;
}

/** The time first; then for each lane (`lost`: for all of them together) when its first is visible, after that claim. */
export function peekText(names: Names, { from, lease }: ClaimRequest, params: Params): string {
  const now = `SELECT ${msOf('statement_timestamp()')} AS at, 0::bigint AS n`;
  switch (from.kind) {
    case 'due': {
      const lanes = params.add(
        encodeArray(
          'text',
          from.lanes.map(({ lane }) => lane),
        ),
      );
      return `${now} UNION ALL SELECT ${msOf('t.visible_at')}, asked.n
        FROM unnest(${lanes}::text[]) WITH ORDINALITY AS asked(lane, n) LEFT JOIN LATERAL (
          SELECT visible_at FROM ${names.queue} AS q WHERE ${due} AND q.lane = asked.lane
          ORDER BY visible_at, id LIMIT 1
        ) AS t ON true ORDER BY n`;
    }
    case 'lost': {
      const lanes = params.add(encodeArray('text', from.lanes));
      return `${now} UNION ALL SELECT ${msOf('min(t.visible_at)')}, 1
        FROM unnest(${lanes}::text[]) AS asked(lane) CROSS JOIN LATERAL (
          SELECT visible_at FROM ${names.queue} AS q WHERE ${claimed} AND NOT blocked AND q.lane = asked.lane
          AND lease IS DISTINCT FROM ${params.add(lease)}::bigint ORDER BY visible_at, id LIMIT 1
        ) AS t ORDER BY n`;
    }
    case 'expired':
      return now;
  }
}

/**
 * As if nothing had been leased under the token. What somebody else has locked is left to the end of its lease. `alone`:
 * only what is in no line, and it answers the lines of the rest too; `ordered`: what is in these lines, which are locked.
 */
export function abandonText({ queue }: Names, which: 'alone' | Ordered): string {
  const condition = which === 'alone' ? 'ordering_key IS NULL' : `NOT (${which.notHeld})`;
  return `WITH mine AS MATERIALIZED (
      SELECT id, lane, ordering_key FROM ${queue} WHERE ${claimed} AND lease = $1
      UNION SELECT id, lane, ordering_key FROM ${queue} WHERE ${arrived} AND lease = $1 ORDER BY id
    ),
    held AS MATERIALIZED (
      SELECT mine.id FROM mine CROSS JOIN LATERAL (
        SELECT FROM ${queue} AS q
        WHERE q.id = mine.id AND q.lease = $1 AND q.status = 'pending' FOR UPDATE SKIP LOCKED
      ) AS q WHERE ${condition}
    ),
    freed AS (
      UPDATE ${queue} AS q SET lease = NULL,
        visible_at = CASE WHEN cancelling THEN visible_at ELSE next_retry_at END,
        claims = CASE WHEN cancelling THEN 0 ELSE greatest(claims - 1, 0) END,
        status = CASE WHEN cancelling THEN 'cancelled' ELSE status END,
        finished_at = CASE WHEN cancelling THEN ${NOW} END,
        verdict = CASE WHEN cancelling THEN NULL ELSE verdict END,
        cancelling = false
      FROM (${few('held', 'id')}) AS t WHERE q.id = ANY (ARRAY[t.id]) RETURNING lane
    )
    SELECT lane, NULL AS ordering_key FROM freed ${which === 'alone' ? orderedLines : ''}`;
}

const orderedLines = `UNION SELECT lane, ordering_key FROM mine WHERE ordering_key IS NOT NULL`;

/** A condition on \`lane\` and \`ordering_key\` that leaves out what may be given back. */
interface Ordered {
  notHeld: string;
}

/** What may be leased, locked: the number of its lane, its place in the table, its id, when it is visible and how large it is. */
function pickText(names: Names, from: ClaimFrom, params: Params): string {
  const columns = 'ctid AS place, id, visible_at, octet_length(original_payload) AS bytes';
  switch (from.kind) {
    case 'due': {
      const lanes = params.add(
        encodeArray(
          'text',
          from.lanes.map(({ lane }) => lane),
        ),
      );
      const limits = params.add(
        encodeArray(
          'int4',
          from.lanes.map(({ limit }) => countOf(limit)),
        ),
      );
      return `SELECT asked.n, t.*
        FROM unnest(${lanes}::text[], ${limits}::int4[]) WITH ORDINALITY AS asked(lane, most, n)
        CROSS JOIN LATERAL (
          SELECT ${columns} FROM ${names.queue} AS q
          WHERE ${due} AND q.lane = asked.lane AND visible_at <= statement_timestamp()
          ORDER BY visible_at, id LIMIT asked.most FOR UPDATE SKIP LOCKED
        ) AS t`;
    }
    case 'lost': {
      const lanes = params.add(encodeArray('text', from.lanes));
      const most = `${params.add(countOf(from.limit))}::int4`;
      return `SELECT 1 AS n, t.* FROM unnest(${lanes}::text[]) AS asked(lane) CROSS JOIN LATERAL (
          SELECT ${columns} FROM ${names.queue} AS q
          WHERE ${claimed} AND NOT blocked AND q.lane = asked.lane AND visible_at <= statement_timestamp()
          ORDER BY visible_at, id LIMIT ${most} FOR UPDATE SKIP LOCKED
        ) AS t ORDER BY t.visible_at, t.id LIMIT ${most}`;
    }
    case 'expired':
      return `SELECT 1 AS n, ctid AS place, id, expires_at AS visible_at, octet_length(original_payload) AS bytes
        FROM ${names.queue}
        WHERE status = 'pending' AND expires_at <= statement_timestamp()
          AND (lease IS NULL OR visible_at <= statement_timestamp())
        ORDER BY expires_at, id LIMIT ${params.add(countOf(from.limit))}::int4 FOR UPDATE SKIP LOCKED`;
  }
}

/** Every lane's first before any lane's second, up to the bytes. */
function fitText(most: string): string {
  return `SELECT id, place FROM (
      SELECT id, place, n, rank, sum(bytes) OVER byRank AS upTo, row_number() OVER byRank AS nth FROM (
        SELECT id, place, n, bytes, row_number() OVER (PARTITION BY n ORDER BY visible_at, id) AS rank FROM pick
      ) AS ranked WINDOW byRank AS (ORDER BY rank, n)
    ) AS summed WHERE upTo <= ${most} OR nth = 1 ORDER BY n, rank`;
}
