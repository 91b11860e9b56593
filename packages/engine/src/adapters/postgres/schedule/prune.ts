import type { PruneRequest } from '../../../ports/schedule.ts';
import { encodeArray } from '../arrays.ts';
import type { Database } from '../connection/database.ts';
import type { GroupTable } from '../inbox/groups.ts';
import { KEPT } from '../inbox/item-rows.ts';
import type { Names } from '../names.ts';
import { numberOf } from '../rows.ts';
import { NOW } from '../times.ts';
import { agoMs, countOf } from '../bounds.ts';

/** One open item belongs to every failed task: none of them may go. */
const statuses = ['done', 'retried', 'cancelled'] as const;

/**
 * Deletes what is over, with its attempts. Its items, where it has some, keep what was in it, and its attempts. Rows that somebody looks at under a lock are
 * left for the next time.
 */
export async function prune(
  database: Database,
  names: Names,
  { olderThanMs, limit }: PruneRequest,
): Promise<number> {
  const kept = statuses.map((status, i) => `('${status}', $${i + 2}::float8)`);
  const [row] = await database.queryAgain(
    `WITH old AS MATERIALIZED (
       SELECT q.id FROM (VALUES ${kept.join(', ')}) AS kept(status, ms) CROSS JOIN LATERAL (
         SELECT id FROM ${names.queue} WHERE status = kept.status AND finished_at IS NOT NULL
         AND finished_at <= ${NOW} - kept.ms * INTERVAL '1 millisecond'
         ORDER BY finished_at LIMIT $1::int4 FOR UPDATE SKIP LOCKED
       ) AS q LIMIT $1::int4
     ),
     attempt AS (DELETE FROM ${names.attempts} WHERE task_id = ANY (ARRAY(
       SELECT id FROM old WHERE NOT EXISTS (SELECT FROM ${names.inbox} AS item WHERE item.task_id = old.id)
     ))),
     item AS MATERIALIZED (
       SELECT item.id, item.task_id FROM ${names.inbox} AS item
       WHERE item.task_id = ANY (ARRAY(SELECT id FROM old)) AND item.payload IS NULL ORDER BY item.id FOR UPDATE
     ),
     filled AS (
       UPDATE ${names.inbox} AS item SET ${KEPT}
       FROM ${names.queue} AS q WHERE item.id = ANY (ARRAY(SELECT id FROM item)) AND q.id = item.task_id
     ),
     task AS (DELETE FROM ${names.queue} WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id)
     SELECT count(*) FROM task`,
    [countOf(limit), ...statuses.map((status) => agoMs(olderThanMs[status]))],
  );
  return numberOf(row![0]);
}

/** Deletes items that were closed so long ago, the oldest first, and groups that nothing is left of. */
export async function pruneItems(
  database: Database,
  names: Names,
  groups: GroupTable,
  { closedForMs, limit }: { closedForMs: number; limit: number },
): Promise<number> {
  const rows = await database.queryAgain(
    `WITH old AS MATERIALIZED (
       SELECT closed.id FROM (
         SELECT id FROM ${names.closed} WHERE closed_at <= ${NOW} - $2::float8 * INTERVAL '1 millisecond'
         ORDER BY closed_at LIMIT $1::int4
       ) AS closed CROSS JOIN LATERAL (
         SELECT FROM ${names.inbox} AS item WHERE item.id = closed.id FOR UPDATE SKIP LOCKED
       ) AS item
     ),
     gone AS (DELETE FROM ${names.closed} WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id)
     DELETE FROM ${names.inbox} WHERE id = ANY (ARRAY(SELECT id FROM gone)) RETURNING fingerprint, task_id`,
    [countOf(limit), agoMs(closedForMs)],
  );
  const taskIds = rows.flatMap(([, id]) => (id === null ? [] : [numberOf(id)]));
  if (taskIds.length > 0) await forgetAttempts(database, names, taskIds);
  await groups.fold();
  await groups.prune([...new Set(rows.map(([fingerprint]) => fingerprint as string))]);
  return rows.length;
}

/** Of tasks that are gone, and of which no item is left. */
async function forgetAttempts(
  database: Database,
  names: Names,
  taskIds: readonly number[],
): Promise<void> {
  await database.queryAgain(
    `DELETE FROM ${names.attempts} WHERE task_id = ANY (ARRAY(
       SELECT old.id FROM unnest($1::int8[]) AS old(id)
       WHERE NOT EXISTS (SELECT FROM ${names.queue} AS q WHERE q.id = old.id)
         AND NOT EXISTS (SELECT FROM ${names.inbox} AS item WHERE item.task_id = old.id)
     ))`,
    [encodeArray('int8', [...new Set(taskIds)])],
  );
}
