import type { ItemFilter, MemberQuery } from '../../../ports/inbox.ts';
import type { Params } from '../batch.ts';
import { countOf, idOf } from '../bounds.ts';
import { MAX_SCANNED, pageText } from './item-query.ts';
import type { Names } from '../names.ts';
import { msOf } from '../times.ts';

/** Makes a page of items members. Answers what `nextOf` asks for, how many there are on the page, and the last of it. */
export function freezeText(
  names: Names,
  filter: ItemFilter,
  page: { before: number; limit: number },
  job: number,
  params: Params,
): string {
  const { members } = names;
  const parts = pageText(names, filter, page, params, MAX_SCANNED);
  const number = `${params.add(job)}::bigint`;
  const insert = `INSERT INTO ${members} (job, item_id) SELECT ${number}, id FROM page`;
  // The pages of a job hardly ever overlap: to look for a conflict with each would cost as much as to insert it. Sorted,
  // so that it is the index that is asked, and not the whole table.
  return `WITH ${parts},
    page AS MATERIALIZED (SELECT id FROM found ORDER BY id DESC LIMIT ${params.add(countOf(page.limit))}::int4),
    overlap AS MATERIALIZED (
      SELECT FROM ${members} WHERE job = ${number} AND item_id >= (SELECT min(id) FROM page)
        AND item_id <= (SELECT max(id) FROM page) ORDER BY job, item_id LIMIT 1
    ),
    fresh AS (${insert} WHERE NOT EXISTS (SELECT FROM overlap) ORDER BY id),
    other AS (${insert} WHERE EXISTS (SELECT FROM overlap) ORDER BY id ON CONFLICT DO NOTHING)
    SELECT (SELECT count(*) FROM found) AS found, (SELECT count(*) FROM scanned) AS scanned,
      (SELECT min(id) FROM scanned) AS lowest, (SELECT count(*) FROM page) AS added, (SELECT min(id) FROM page) AS last`;
}

/** By the index, in its order: the limit is not told, or the planner might read and sort all of a job for a few of it. */
export function membersText(
  { members }: Names,
  { job, result, after, upTo = Infinity, limit }: MemberQuery,
  params: Params,
): string {
  const number = `${params.add(job)}::bigint`;
  const from = `(${number}, ${params.add(idOf(after))}::bigint)`;
  const to = `(${number}, ${params.add(idOf(upTo))}::bigint)`;
  const wanted =
    result === undefined ? '' : `AND coalesce(result, 'done') = ${params.add(result)}::text`;
  return `SELECT item_id, result FROM ${members} WHERE (job, item_id) > ${from} AND (job, item_id) <= ${to} ${wanted}
    ORDER BY job, item_id LIMIT (SELECT ${params.add(countOf(limit))}::int4)`;
}

/**
 * What became of what a job, $1, has sent; not more than $2 of what is under way. In one statement, so that nothing is
 * counted twice or not at all on its way from one to the other.
 */
export function tallyText({ queue, inbox }: Names): string {
  const tasks = (status: string) => `FROM ${queue} WHERE job = $1::bigint AND status = '${status}'`;
  return `SELECT (SELECT count(*) FROM (SELECT ${tasks('pending')} LIMIT $2::int4) AS task),
    (SELECT count(*) FROM (SELECT ${tasks('pending')} AND blocked LIMIT $2::int4) AS task),
    (SELECT count(*) FROM (SELECT ${tasks('retried')} LIMIT $2::int4) AS task),
    (SELECT ${msOf('max(finished_at)')} ${tasks('retried')}),
    (SELECT count(*) ${tasks('cancelled')}),
    (SELECT count(*) FROM ${inbox} WHERE job = $1::bigint),
    (SELECT failure FROM ${inbox} WHERE job = $1::bigint ORDER BY job DESC, id DESC LIMIT 1)`;
}
