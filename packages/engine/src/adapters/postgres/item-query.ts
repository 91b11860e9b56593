import type { ItemFilter } from '../../ports/inbox.ts';
import { encodeArray } from './arrays.ts';
import type { Params } from './batch.ts';
import { boundedMs, countOf, idOf } from './bounds.ts';
import { isUuid } from './columns.ts';
import type { Names } from './names.ts';
import { kept } from './rows.ts';
import { timeAt } from './times.ts';

/** So many items at most are looked at for one page: where many match, a few will do. */
export const FEW_SCANNED = 1000;
export const MAX_SCANNED = 10_000;
const states = ['open', 'replayed', 'resolved', 'discarded', 'erased'];

/**
 * Two parts of a statement. `scanned`: the ids that are looked at, the highest first, found by an index. `found`: those of
 * them that match, one more than the limit where there are more.
 */
export function pageText(
  names: Names,
  filter: ItemFilter,
  { before = Infinity, limit }: { before?: number; limit: number },
  params: Params,
  maxScanned: number,
): string {
  const most = countOf(limit) + 1;
  const rest = restOf(filter).map((name) => conditionOf(filter, name, params));
  const bounds = {
    before: `${params.add(idOf(before))}::bigint`,
    most: `${params.add(rest.length > 0 ? Math.max(maxScanned, most) : most)}::int4`,
  };
  const matching =
    rest.length === 0
      ? 'SELECT id FROM scanned'
      : `SELECT scanned.id FROM scanned CROSS JOIN LATERAL (
           SELECT FROM ${names.inbox} AS item WHERE item.id = scanned.id AND ${rest.join(' AND ')} OFFSET 0
         ) AS item`;
  return `scanned AS MATERIALIZED (${scanText(names, filter, bounds, params)}),
    found AS MATERIALIZED (${matching} ORDER BY id DESC LIMIT ${params.add(most)}::int4)`;
}

/**
 * Every way leads through one index, whatever the planner thinks of the table: it must neither walk down the ids for the
 * few that match, nor read and sort all that match for a few of them. So what an index begins with is a bound, not an
 * equation, and sorted by; and it is not told how many are wanted.
 */
function scanText(
  names: Names,
  filter: ItemFilter,
  { before, most }: { before: string; most: string },
  params: Params,
): string {
  const last = `ORDER BY item.id DESC LIMIT ${most}`;
  const way = wayOf(filter);
  switch (way) {
    case undefined:
      return `SELECT item.id FROM ${names.inbox} AS item WHERE item.id < ${before} ${last}`;
    case 'ids':
    case 'messageId':
      return `SELECT item.id FROM (
          SELECT id FROM ${names.inbox} AS item WHERE ${conditionOf(filter, way, params)} OFFSET 0
        ) AS item WHERE item.id < ${before} ${last}`;
    case 'fingerprint':
    case 'lane':
    case 'state': {
      const wanted = filter.state === undefined ? states : [filter.state];
      const first = way === 'state' ? undefined : `${params.add(kept(filter[way]))}::text`;
      const columns = [...(way === 'state' ? [] : [way]), 'state', 'id'].map(
        (name) => `item.${name}`,
      );
      const bound = (id: string) => [...(first ? [first] : []), 'one.state', id].join(', ');
      return `SELECT item.id FROM unnest(${params.add(encodeArray('text', wanted))}::text[]) AS one(state)
        CROSS JOIN LATERAL (
          SELECT item.id FROM ${names.inbox} AS item
          WHERE (${columns.join(', ')}) < (${bound(before)}) AND (${columns.join(', ')}) >= (${bound('0::bigint')})
          ORDER BY ${columns.map((name) => `${name} DESC`).join(', ')} LIMIT (SELECT ${most})
        ) AS item ${last}`;
    }
  }
}

/** Where the next page begins, given what `pageText` has found and looked at; undefined: there are no more. */
export function nextOf(
  filter: ItemFilter,
  limit: number,
  { found, scanned, lowest }: { found: number; scanned: number; lowest: number },
  lastId: number | undefined,
  maxScanned: number,
): number | undefined {
  if (found > limit) return lastId;
  const isCut = restOf(filter).length > 0 && scanned >= Math.max(maxScanned, limit + 1);
  return isCut ? lowest : undefined;
}

export function countText(names: Names, filter: ItemFilter, params: Params): string {
  const conditions = askedOf(filter).map((name) => conditionOf(filter, name, params));
  return `SELECT count(*) FROM ${names.inbox} AS item WHERE ${conditions.join(' AND ') || 'true'}`;
}

/** False: no item can match. */
export function isPossible({ messageId }: ItemFilter): boolean {
  return messageId === undefined || isUuid(messageId);
}

type Name = keyof ItemFilter;

/** What there is an index for, the best first. */
const ways = ['ids', 'messageId', 'fingerprint', 'lane', 'state'] as const satisfies Name[];

function wayOf(filter: ItemFilter): (typeof ways)[number] | undefined {
  return ways.find((name) => filter[name] !== undefined);
}

/** What the index does not know. */
function restOf(filter: ItemFilter): Name[] {
  const way = wayOf(filter);
  const hasState = way === 'fingerprint' || way === 'lane';
  return askedOf(filter).filter((name) => name !== way && !(hasState && name === 'state'));
}

function askedOf(filter: ItemFilter): Name[] {
  return fields.filter((name) => filter[name] !== undefined);
}

const fields: readonly Name[] = [
  ...ways,
  'reason',
  'orderingKey',
  'class',
  'text',
  'fromMs',
  'toMs',
];

function conditionOf(filter: ItemFilter, name: Name, params: Params): string {
  const value = () => params.add(kept(filter[name] as string));
  switch (name) {
    case 'ids':
      return `item.id = ANY (${params.add(encodeArray('int8', (filter.ids ?? []).map(idOf)))}::int8[])`;
    case 'messageId':
      return `item.message_id = ${value()}::uuid`;
    case 'orderingKey':
      return `item.ordering_key = ${value()}`;
    case 'class':
      return `item.failure ->> 'class' = ${value()}`;
    case 'text': {
      const wanted = `lower(${value()}::text)`;
      const inField = (field: string) =>
        `strpos(lower(coalesce(item.failure ->> '${field}', '')), ${wanted}) > 0`;
      return `(${inField('message')} OR ${inField('code')})`;
    }
    case 'fromMs':
      return `item.last_seen >= ${timeAt(`${params.add(boundedMs(filter.fromMs))}::float8`)}`;
    case 'toMs':
      return `item.last_seen < ${timeAt(`${params.add(boundedMs(filter.toMs))}::float8`)}`;
    case 'state':
    case 'reason':
    case 'lane':
    case 'fingerprint':
      return `item.${name} = ${value()}`;
  }
}
