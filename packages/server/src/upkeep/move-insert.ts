/** Rows of the file as PostgreSQL takes them, many in one statement. */
import type pg from 'pg';
import type { ColumnType, MovedColumn } from './move-columns.ts';
import type { SourceRow } from './move-source.ts';

/** Where the tables of a service are. */
export const SCHEMA = 'public';

/** As large as times and counts may be there. */
const MAX_INT4 = 2 ** 31 - 1;
const MAX_MS = 8e15;

/** One array per column, in one statement; answers what `returning` asks for, of the rows that were written. */
export async function insertRows(
  client: pg.Client,
  name: string,
  columns: readonly MovedColumn[],
  rows: readonly SourceRow[],
  how: { conflict?: string; update?: string; returning?: string },
): Promise<string[]> {
  if (rows.length === 0) return [];
  const given = columns.map(({ type }, i) => `$${i + 1}::${sent[type]}[]`);
  const taken = columns.map((column) =>
    column.type === 'time' ? timeOf(column.name) : cast(column),
  );
  const action = how.update === undefined ? 'NOTHING' : `UPDATE SET ${how.update}`;
  const conflict = how.conflict === undefined ? '' : `ON CONFLICT ${how.conflict} DO ${action}`;
  const result = await client.query<Record<string, string>>(
    `INSERT INTO ${table(name)} AS t (${columns.map(({ name: from, to = from }) => to).join(', ')})
     SELECT ${taken.join(', ')}
     FROM unnest(${given.join(', ')}) WITH ORDINALITY AS u (${columns.map((one) => one.name).join(', ')}, n)
     ORDER BY u.n ${conflict} ${how.returning === undefined ? '' : `RETURNING t.${how.returning}`}`,
    columns.map(({ name: from, type }) => rows.map((row) => valueOf(row[from], type))),
  );
  return how.returning === undefined ? [] : result.rows.map((row) => row[how.returning!]!);
}

/** What arrays of it are sent as. */
const sent: Readonly<Record<ColumnType, string>> = {
  int4: 'int4',
  int8: 'int8',
  float8: 'float8',
  text: 'text',
  json: 'text',
  bool: 'bool',
  bytea: 'bytea',
  uuid: 'uuid',
  time: 'float8',
};

export function table(name: string): string {
  return `${SCHEMA}.${name}`;
}

function timeOf(name: string): string {
  return `TIMESTAMPTZ 'epoch' + u.${name} * INTERVAL '1 millisecond'`;
}

function cast({ name, type, to }: MovedColumn): string {
  if (type === 'json') return `u.${name}::json`;
  return to === 'at' ? `u.${name}::timestamptz` : `u.${name}`;
}

/** As PostgreSQL takes it: no zero in a text, no number past its type. */
export function valueOf(value: SourceRow[string] | undefined, type: ColumnType): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'uuid': {
      const hex = Buffer.from(value as Uint8Array).toString('hex');
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    }
    case 'bytea':
      return Buffer.from(value as Uint8Array);
    case 'bool':
      return value === 1;
    case 'int4':
      return Math.min(Math.max(Math.trunc(Number(value)), -MAX_INT4), MAX_INT4);
    case 'time':
      return Math.min(Math.max(Number(value), 0), MAX_MS);
    case 'text':
      return String(value).replaceAll('\0', '\uFFFD');
    case 'json':
    case 'int8':
    case 'float8':
      return value;
  }
}
