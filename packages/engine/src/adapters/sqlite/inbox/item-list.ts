import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import type { ItemFilter, ItemQuery } from '../../../ports/inbox.ts';
import { prepareRows, type Row } from '../connection.ts';
import { bytesOfUuidOrNone } from '../uuid.ts';
import { STRIPE_IDS, stripeOf } from '../schema/version-3.ts';

/** Items that one page looks at, and index entries that one step of a count passes: the event loop stands still meanwhile. */
const MAX_SCANNED = 10_000;
const MAX_COUNTED = 100_000;
const READ_ROWS = 500;

/** Where the items of a filter are found: one table, by one index, or their ids. */
type Way = { ids: readonly number[] } | TableWay;

interface TableWay {
  table: 'redrive_inbox' | 'redrive_open' | 'redrive_closed';
  index: string;
  /** Of the table as `way`. */
  where: string;
  values: SQLInputValue[];
  /** The index begins with the stripe of the id, and is read stripe by stripe. */
  isStriped?: true;
}

interface Plan {
  way: Way;
  /** What is read of each item after its id: texts that nobody looks at would cost more than all the rest. */
  columns: readonly string[];
  /** Says the rest of the filter of a row; absent: the way says it all. */
  isWanted?: (row: Row) => boolean;
}

/** Newest first by id. Every way into the table ends with the id, so that a page begins where the last one ended. */
export class ItemList {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  page({ before = Infinity, limit, ...filter }: ItemQuery): { ids: number[]; next?: number } {
    const plan = planOf(filter);
    const ids: number[] = [];
    if (!plan || limit <= 0) return { ids };
    let below = before;
    for (let scanned = 0; scanned < MAX_SCANNED;) {
      const size = Math.min(plan.isWanted ? READ_ROWS : limit + 1, MAX_SCANNED - scanned);
      const rows = this.#read(plan, below, size);
      for (const row of rows) {
        below = row.id;
        if (row.values && (!plan.isWanted || plan.isWanted(row.values))) ids.push(row.id);
        if (ids.length > limit) return { ids: ids.slice(0, limit), next: ids[limit - 1]! };
      }
      if (rows.length < size) return { ids };
      scanned += rows.length;
    }
    return { ids, next: below };
  }

  /** Of a part of them; `next`: where to go on. */
  count(filter: ItemFilter, before: number): Counted {
    const plan = planOf(filter);
    if (!plan) return { count: 0 };
    if (plan.isWanted || 'ids' in plan.way) {
      const { ids, next } = this.page({ ...filter, before, limit: MAX_SCANNED });
      return { count: ids.length, ...(next === undefined ? {} : { next }) };
    }
    return plan.way.isStriped
      ? this.#countStripes(plan.way, before)
      : this.#countAll(plan.way, before);
  }

  #countAll({ table, index, where, values }: TableWay, before: number): Counted {
    const counted = this.#prepared(
      `SELECT count(*), min(id) FROM (
         SELECT id FROM ${table} way ${index} WHERE ${where} AND id < ? ORDER BY id DESC LIMIT ?)`,
    );
    const row = counted.get(...values, before, MAX_COUNTED) as unknown as Row;
    const [count, next] = row as [number, number | null];
    return { count, ...(count === MAX_COUNTED && next !== null ? { next } : {}) };
  }

  #countStripes(way: TableWay, before: number): Counted {
    const { table, index, where, values } = way;
    const counted = this.#prepared(
      `SELECT count(*) FROM ${table} way ${index} WHERE ${where} AND ${inStripe} AND id < ?`,
    );
    let count = 0;
    for (const stripe of this.#stripes(way, before)) {
      const row = counted.get(...values, stripe, before) as unknown as Row;
      count += row[0] as number;
      if (count >= MAX_COUNTED) return { count, next: stripe * STRIPE_IDS };
    }
    return { count };
  }

  #read({ way, columns }: Plan, before: number, limit: number): { id: number; values?: Row }[] {
    if ('ids' in way) {
      const byId = this.#prepared(
        `SELECT ${['way.id', ...columns].join()} FROM redrive_inbox way WHERE way.id = ?`,
      );
      const ids = way.ids.filter((id) => id < before).slice(0, limit);
      return ids.map((id) => {
        const values = byId.get(id) as unknown as Row | undefined;
        return values ? { id, values } : { id };
      });
    }
    const select = selectText(way, columns);
    const rows = way.isStriped
      ? this.#readStripes(select, way, before, limit)
      : this.#readAll(select, way, before, limit);
    return rows.map((row) => ({ id: row[0] as number, values: row }));
  }

  #readAll(select: string, { where, values }: TableWay, before: number, limit: number): Row[] {
    const found = this.#prepared(
      `${select} WHERE ${where} AND way.id < ? ORDER BY way.id DESC LIMIT ?`,
    );
    return found.all(...values, before, limit) as unknown as Row[];
  }

  #readStripes(select: string, way: TableWay, before: number, limit: number): Row[] {
    const { where, values } = way;
    const found = this.#prepared(
      `${select} WHERE ${where} AND ${inStripe} AND way.id < ? ORDER BY way.id DESC LIMIT ?`,
    );
    const rows: Row[] = [];
    for (const stripe of this.#stripes(way, before)) {
      const some = found.all(...values, stripe, before, limit - rows.length) as unknown as Row[];
      rows.push(...some);
      if (rows.length === limit) break;
    }
    return rows;
  }

  /** The stripes with open items from that id down, by one seek each. */
  *#stripes({ table, index }: TableWay, before: number): Generator<number> {
    const stripe = stripeOf('way.id');
    const last = this.#prepared(
      `SELECT ${stripe} FROM ${table} way ${index} WHERE ${stripe} < ? ORDER BY ${stripe} DESC LIMIT 1`,
    );
    for (let above = Math.ceil(before / STRIPE_IDS); ;) {
      const row = last.get(above) as unknown as Row | undefined;
      if (!row) return;
      above = row[0] as number;
      yield above;
    }
  }

  /** There are as many of these as there are ways. */
  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = prepareRows(this.#db, sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

interface Counted {
  count: number;
  next?: number;
}

const inStripe = `${stripeOf('way.id')} = ?`;

/** The row of an item, as `item`, is read only where something of it is asked for. */
function selectText({ table, index }: TableWay, columns: readonly string[]): string {
  const select = `SELECT ${['way.id', ...columns].join()} FROM ${table} way ${index}`;
  const hasRow = table === 'redrive_inbox' || columns.length === 0;
  return hasRow ? select : `${select} CROSS JOIN redrive_inbox item ON item.id = way.id`;
}

/** Undefined: what is asked for cannot exist. */
function planOf(filter: ItemFilter): Plan | undefined {
  const found = wayOf(filter);
  if (!found) return undefined;
  const { way, ...rest } = found;
  if (!hasConditions(rest)) return { way, columns: [] };
  const row = 'ids' in way || way.table === 'redrive_inbox' ? 'way' : 'item';
  const state = `coalesce((SELECT state FROM redrive_closed closed WHERE closed.id = way.id), 'open')`;
  const facts = ['reason', 'lane', 'fingerprint', 'ordering_key', 'last_seen'];
  const hasText = rest.class !== undefined || rest.text !== undefined;
  const columns = [
    rest.state === undefined ? 'NULL' : state,
    ...facts.map((name) => `${row}.${name}`),
    hasText ? `${row}.failure` : 'NULL',
  ];
  return { way, columns, isWanted: wanted(rest) };
}

/** The best way to what is asked for, and what it leaves to be asked. */
function wayOf(filter: ItemFilter): (ItemFilter & { way: Way }) | undefined {
  const { ids, messageId, fingerprint, lane, state, ...rest } = filter;
  const by = (
    table: TableWay['table'],
    index: string,
    where: string,
    ...values: SQLInputValue[]
  ): TableWay => ({ table, index: index && `INDEXED BY ${table}_${index}`, where, values });
  if (messageId !== undefined) {
    const bytes = bytesOfUuidOrNone(messageId);
    const way = bytes && by('redrive_inbox', 'message', 'way.message_id = ?', bytes);
    const { messageId: _, ...others } = filter;
    return way && { ...others, way };
  }
  if (ids) {
    const { ids: _, ...others } = filter;
    return { ...others, way: { ids: [...new Set(ids)].sort((a, b) => b - a) } };
  }
  const isOpen = state === 'open';
  const table = isOpen ? 'redrive_open' : 'redrive_inbox';
  const closed = isOpen || state === undefined ? {} : { state };
  if (fingerprint !== undefined) {
    const found = by(table, 'fingerprint', 'way.fingerprint = ?', fingerprint);
    const way = isOpen ? { ...found, isStriped: true as const } : found;
    return { ...rest, ...closed, ...(lane === undefined ? {} : { lane }), way };
  }
  if (lane !== undefined) {
    const way = by(table, 'lane', 'way.lane = ?', lane);
    return { ...rest, ...closed, way };
  }
  const way =
    state === undefined || isOpen
      ? by(table, '', 'true')
      : by('redrive_closed', 'state', 'way.state = ?', state);
  return { ...rest, way };
}

function hasConditions(filter: ItemFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}

/** In this program, not in SQL: capitals mean the same in every language here, and each row is read once. */
function wanted(filter: ItemFilter): (row: Row) => boolean {
  const { ids, state, reason, lane, fingerprint, orderingKey, fromMs, toMs } = filter;
  const { class: kind } = filter;
  const among = ids && new Set(ids);
  const text = filter.text?.toLowerCase();
  const says = (part: string | undefined) => part?.toLowerCase().includes(text!) ?? text === '';
  return (row) => {
    const lastSeenMs = row[6] as number;
    if (among && !among.has(row[0] as number)) return false;
    if (state !== undefined && row[1] !== state) return false;
    if (reason !== undefined && row[2] !== reason) return false;
    if (lane !== undefined && row[3] !== lane) return false;
    if (fingerprint !== undefined && row[4] !== fingerprint) return false;
    if (orderingKey !== undefined && row[5] !== orderingKey) return false;
    if (fromMs !== undefined && lastSeenMs < fromMs) return false;
    if (toMs !== undefined && lastSeenMs >= toMs) return false;
    if (kind === undefined && text === undefined) return true;
    const failure = JSON.parse(row[7] as string) as Failure;
    if (kind !== undefined && failure.class !== kind) return false;
    return text === undefined || says(failure.message) || says(failure.code);
  };
}
