import type { Names } from '../names.ts';
import { active, claimed, due, holding } from '../schedule/sets.ts';
import { msOf, NOW } from '../times.ts';

/**
 * One statement, so that all is of one moment. Tasks are counted by indexes alone, but for the few in delivery. In a line
 * stand those who are pending and those who failed; the latter have an open item, so that no row must be read to see which.
 * Of those who are pending there, the ones that have their turn are counted with the others. Items by reason are in no index.
 */
export function censusText({ queue, open }: Names): string {
  return `SELECT waiting.count + held.count + lined.count - active.count AS pending,
      ${msOf(`least(waiting.first, held.first) - ${NOW}`)} AS wait,
      (SELECT json_object_agg(reason, count) FROM (
        SELECT reason, count(*) AS count FROM ${open} GROUP BY reason
      ) AS item) AS open
    FROM (SELECT count(*) AS count, min(visible_at) AS first FROM ${queue} WHERE ${due}) AS waiting
    CROSS JOIN (
      SELECT count(*) AS count, min(visible_at) FILTER (WHERE lease IS NULL OR visible_at <= ${NOW}) AS first
      FROM ${queue} WHERE ${claimed} AND NOT blocked
    ) AS held
    CROSS JOIN (
      SELECT count(*) AS count FROM ${queue} AS q WHERE ${holding} AND NOT EXISTS (
        SELECT FROM ${open} AS item WHERE item.task_id = q.id AND item.task_id IS NOT NULL
      )
    ) AS lined
    CROSS JOIN (SELECT count(*) AS count FROM ${queue} WHERE ${active}) AS active`;
}
