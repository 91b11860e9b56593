import type { MemberQuery } from '../../ports/inbox.ts';
import type { Params } from './batch.ts';
import { countOf, idOf } from './bounds.ts';
import type { Names } from './names.ts';

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
