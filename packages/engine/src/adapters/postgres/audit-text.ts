import type { AuditQuery } from '../../ports/audit.ts';
import { auditKeyOf } from '../../erase/audit-key.ts';
import { messageKey, namesMessage } from './schema/audit-schema.ts';
import type { Params } from './batch.ts';
import { boundedMs, idOf } from './bounds.ts';
import type { Names } from './names.ts';
import { kept } from './rows.ts';
import { timeAt } from './times.ts';

/** So many events at most are looked at for one page. */
export const MAX_LOOKED_AT = 50_000;

export type AuditFilter = Omit<AuditQuery, 'before' | 'limit'>;

/**
 * Rows of: how many events were looked at, the lowest id of them, whether one of them is not before `fromMs`; and an event
 * that matches with its id, the highest first, or NULL.
 *
 * Of one message only its events are looked at, which have an index. All others are walked down by their ids, whatever the
 * planner thinks: it must not find events by the index of their
 * times, nor read and sort many for a few of them. So the filter stands behind a limit, and it is not told how many that are.
 */
export function auditText(
  { audit }: Names,
  filter: AuditFilter,
  { before, most }: { before: number | undefined; most: number },
  params: Params,
): string {
  const conditions = conditionsOf(filter, params);
  const size = conditions.length === 0 ? Math.min(most, MAX_LOOKED_AT) : MAX_LOOKED_AT;
  const ofMessage =
    filter.messageId === undefined
      ? ''
      : `AND ${namesMessage} AND ${messageKey} COLLATE "C" = ${params.add(auditKeyOf(filter.messageId))}`;
  const last = `FROM ${audit} WHERE id < ${params.add(idOf(before ?? Infinity))}::bigint ${ofMessage}
    ORDER BY id DESC LIMIT (SELECT ${params.add(size)}::int4)`;
  const { fromMs } = filter;
  const hasLater =
    fromMs === undefined
      ? 'true'
      : `EXISTS (SELECT FROM (SELECT at ${last}) AS event WHERE at >= ${timeOf(fromMs, params)})`;
  return `SELECT extent.looked_at, extent.lowest, ${hasLater} AS has_later, found.id, found.event
    FROM (SELECT count(*) AS looked_at, min(id) AS lowest FROM (SELECT id ${last}) AS event) AS extent
    LEFT JOIN (
      SELECT id, event FROM (SELECT * ${last}) AS event
      ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
      ORDER BY id DESC LIMIT ${params.add(most)}::int4
    ) AS found ON true ORDER BY found.id DESC`;
}

function conditionsOf({ type, fromMs, toMs }: AuditFilter, params: Params): string[] {
  return [
    ...(type === undefined ? [] : [`event_type = ${params.add(kept(type))}`]),
    ...(fromMs === undefined ? [] : [`at >= ${timeOf(fromMs, params)}`]),
    ...(toMs === undefined ? [] : [`at < ${timeOf(toMs, params)}`]),
  ];
}

function timeOf(ms: number, params: Params): string {
  return timeAt(`${params.add(boundedMs(ms))}::float8`);
}
