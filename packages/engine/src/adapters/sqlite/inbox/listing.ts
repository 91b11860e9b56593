import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { TaskQuery } from '../../../ports/schedule.ts';
import { prepareRows, type Row } from '../connection.ts';
import { bytesOfUuidOrNone } from '../uuid.ts';

/** Ids looked at in one go: a search for something rare must not hold up the event loop. */
const WINDOW = 20_000;

/** What a row must be or not be, by column; undefined: anything. */
export type Filters = Readonly<Record<string, SQLInputValue | Not | undefined>>;
type Not = { readonly not: string };

export interface Page<T> {
  found: T[];
  /** The search goes on below this id; undefined: it is over. */
  before: number | undefined;
}

/** Newest first by id, some ids at a time. */
export class Listing<T> {
  readonly #db: DatabaseSync;
  readonly #select: string;
  readonly #table: string;
  readonly #of: (row: Row) => T;
  readonly #last: StatementSync;

  /** `select` is a query without its WHERE, in which `table` names the table with the ids. */
  constructor(db: DatabaseSync, table: string, select: string, of: (row: Row) => T) {
    this.#db = db;
    this.#select = select;
    this.#table = table.split(' ').at(-1)!;
    this.#of = of;
    this.#last = prepareRows(db, `SELECT max(id) FROM ${table} WHERE id < ?`);
  }

  page(filters: Filters, before: number, limit: number): Page<T> {
    const lastId = (this.#last.get(before) as unknown as Row)[0] as number | null;
    if (lastId === null || limit <= 0) return { found: [], before: undefined };
    const wanted = Object.entries(filters).filter(([, value]) => value !== undefined);
    // By its message an index finds everything at once, and without a condition nothing is passed over.
    const isDirect = wanted.length === 0 || filters['message_id'] !== undefined;
    const fromId = isDirect ? 0 : lastId - WINDOW + 1;
    const compared = wanted.map(([column, value]) => `${column} ${isNot(value) ? '<>' : '='} ?`);
    const conditions = ['id >= ?', 'id <= ?', ...compared];
    const where = conditions.map((condition) => `${this.#table}.${condition}`).join(' AND ');
    const sql = `${this.#select} WHERE ${where} ORDER BY ${this.#table}.id DESC LIMIT ?`;
    const values = wanted.map(([, value]) => (isNot(value) ? value.not : (value as SQLInputValue)));
    const rows = prepareRows(this.#db, sql).all(fromId, lastId, ...values, limit);
    const found = (rows as unknown as Row[]).map(this.#of);
    return { found, before: isDirect || found.length === limit ? undefined : fromId };
  }
}

/** Undefined: what is asked for cannot exist. */
export function taskFilters(query: TaskQuery): Filters | undefined {
  const { status, lane, messageId, exceptKind } = query;
  const filters = {
    status,
    lane,
    kind: exceptKind === undefined ? undefined : { not: exceptKind },
  };
  if (messageId === undefined) return filters;
  const bytes = bytesOfUuidOrNone(messageId);
  return bytes && { ...filters, message_id: bytes };
}

function isNot(value: Filters[string]): value is Not {
  return typeof value === 'object' && value !== null && 'not' in value;
}
