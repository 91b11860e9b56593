import type { ItemFilter } from '../../../ports/inbox.ts';
import { encodeArray } from '../arrays.ts';
import type { Params } from '../batch.ts';
import { boundedMs, countOf, idOf } from '../bounds.ts';
import { isUuid } from '../columns.ts';
import { type Names, quoteText } from '../names.ts';
import { kept } from '../rows.ts';
import { timeAt } from '../times.ts';

/** So many items at most are looked at for one page: where many match, a few will do. */
export const FEW_SCANNED = 1000;
export const MAX_SCANNED = 10_000;

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
  const rest = restOf(filter).map((name) => conditionOf(names, filter, name, params));
  const bounds = {
    before: `${params.add(idOf(before))}::bigint`,
    most: `${params.add(rest.length > 0 ? Math.max(maxScanned, most) : most)}::int4`,
  };
  if (rest.length === 0) {
    return `scanned AS MATERIALIZED (${scanText(names, filter, bounds, params)}), found AS (SELECT id FROM scanned)`;
  }
  const matching = `SELECT scanned.id FROM scanned CROSS JOIN LATERAL (
      SELECT FROM ${names.inbox} AS item WHERE item.id = scanned.id AND ${rest.join(' AND ')} OFFSET 0
    ) AS item`;
  return `scanned AS MATERIALIZED (${scanText(names, filter, bounds, params)}),
    found AS MATERIALIZED (${matching} ORDER BY id DESC LIMIT ${params.add(most)}::int4)`;
}

/**
 * Every way leads through one index, whatever the planner thinks of the table: it must neither walk down the ids for the
 * few that match, nor read and sort all that match for a few of them. So what an index begins with is a bound, not an
 * equation, and sorted by; and it is not told how many are wanted. Open items are few and have a table of their own; closed
 * ones have an index for each state.
 */
function scanText(
  names: Names,
  filter: ItemFilter,
  { before, most }: { before: string; most: string },
  params: Params,
): string {
  const { by, of } = wayOf(filter);
  const table = names[of];
  switch (by) {
    case undefined:
      return `SELECT id FROM ${table} AS item WHERE id < ${before} ORDER BY id DESC LIMIT ${most}`;
    case 'ids':
    case 'messageId':
      return `SELECT id FROM (
          SELECT id FROM ${table} AS item WHERE ${conditionOf(names, filter, by, params)} OFFSET 0
        ) AS item WHERE id < ${before} ORDER BY id DESC LIMIT ${most}`;
    case 'state':
      return `SELECT id FROM ${table} AS item WHERE state = ${quoteText(filter.state!)} AND id < ${before}
        ORDER BY id DESC LIMIT (SELECT ${most})`;
    case 'fingerprint':
    case 'lane': {
      const value = `${params.add(kept(filter[by]))}::text`;
      return `SELECT id FROM ${table} AS item
        WHERE (${by}, id) < (${value}, ${before}) AND (${by}, id) >= (${value}, 0::bigint)
        ORDER BY ${by} DESC, id DESC LIMIT (SELECT ${most})`;
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
  const asked = askedOf(filter);
  const others = asked.filter((name) => name !== 'state');
  const isShort = filter.state === 'open' && others.every((name) => inOpen.includes(name));
  const conditions = (isShort ? others : asked).map((name) =>
    conditionOf(names, filter, name, params),
  );
  return `SELECT count(*) FROM ${isShort ? names.open : names.inbox} AS item WHERE ${conditions.join(' AND ') || 'true'}`;
}

/** False: no item can match. */
export function isPossible({ messageId }: ItemFilter): boolean {
  return messageId === undefined || isUuid(messageId);
}

type Name = keyof ItemFilter;

/** What there is an index for, the best first. */
const ways = ['ids', 'messageId', 'fingerprint', 'lane', 'state'] as const satisfies Name[];

/** What the table of open items knows of them. */
const inOpen: readonly Name[] = ['ids', 'fingerprint', 'lane', 'reason'];

/** In which table to look, and by which index: that of the ids where none is named. */
interface Way {
  of: 'inbox' | 'open' | 'closed';
  by: (typeof ways)[number] | undefined;
}

function wayOf(filter: ItemFilter): Way {
  const by = ways.find((name) => filter[name] !== undefined);
  switch (by) {
    case undefined:
    case 'ids':
    case 'messageId':
      return { of: 'inbox', by };
    case 'fingerprint':
    case 'lane':
      return { of: filter.state === 'open' ? 'open' : 'inbox', by };
    case 'state':
      return filter.state === 'open' ? { of: 'open', by: undefined } : { of: 'closed', by };
  }
}

/** What the index does not know. */
function restOf(filter: ItemFilter): Name[] {
  const { of, by } = wayOf(filter);
  return askedOf(filter).filter((name) => name !== by && !(of === 'open' && name === 'state'));
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

function conditionOf(names: Names, filter: ItemFilter, name: Name, params: Params): string {
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
      return filter.state === 'open'
        ? `EXISTS (SELECT FROM ${names.open} AS open WHERE open.id = item.id)`
        : `EXISTS (SELECT FROM ${names.closed} AS closed WHERE closed.id = item.id AND closed.state = ${value()})`;
    case 'reason':
    case 'lane':
    case 'fingerprint':
      return `item.${name} = ${value()}`;
  }
}
