import type { BlockedLane, BlockedLimits } from '../../../ports/schedule.ts';
import { countOf } from '../bounds.ts';
import type { Database } from '../connection/database.ts';
import { firstText } from './lines-text.ts';
import type { Names } from '../names.ts';
import { numberOf } from '../rows.ts';
import { holding } from './sets.ts';

/** By the index of open items with an ordering key, and of each of them by the index of its line. */
export async function blockedLanes(
  database: Database,
  names: Names,
  { items, tasks }: BlockedLimits,
): Promise<BlockedLane[]> {
  const rows = await database.queryAgain(
    `SELECT u.lane, count(*) AS items, sum(behind.count) AS tasks FROM (
       SELECT task_id, lane, ordering_key FROM ${names.open}
       WHERE ordering_key IS NOT NULL ORDER BY id LIMIT $1::int4
     ) AS u CROSS JOIN LATERAL (${firstText(names)}) AS first CROSS JOIN LATERAL (
       SELECT count(*) AS count FROM (
         SELECT FROM ${names.queue} AS q WHERE q.lane = u.lane AND q.ordering_key = u.ordering_key
           AND ${holding} AND q.blocked AND q.status = 'pending' LIMIT $2::int4
       ) AS q
     ) AS behind
     WHERE first.id = u.task_id AND behind.count > 0 GROUP BY u.lane ORDER BY u.lane`,
    [countOf(items), countOf(tasks)],
  );
  return rows.map(([lane, itemCount, taskCount]) => ({
    lane: lane as string,
    items: numberOf(itemCount),
    tasks: numberOf(taskCount),
  }));
}
