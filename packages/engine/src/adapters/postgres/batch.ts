import { type Element, type ElementType, encodeArray } from './arrays.ts';

/** The values of one statement, numbered as they are added. */
export class Params {
  readonly values: unknown[] = [];

  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

/** One column of a batch: a value for every row. */
export interface Column {
  name: string;
  type: ElementType;
  values: readonly (Element | null | undefined)[];
  /** Sent row by row even where it is the same throughout: the planner would start from a constant, at any price. */
  isKey?: boolean;
}

/**
 * A batch as a table, in order, with the row's number as `n`. Only what differs from row to row is sent as an array: most
 * columns of most batches are empty or the same throughout.
 */
export function rowsOf(columns: readonly Column[], params: Params): string {
  const arrays: { name: string; sql: string }[] = [];
  const selected: string[] = [];
  for (const { name, type, values, isKey } of columns) {
    const first = values[0];
    if (values.length > 1 && (arrays.length === 0 || isKey || !isUniform(values))) {
      const sql = `${params.add(encodeArray(type, values))}::${type}[]`;
      arrays.push({ name, sql });
      selected.push(`a.${name}`);
    } else if (first == null) {
      selected.push(`NULL::${type} AS ${name}`);
    } else {
      const value = first instanceof Uint8Array ? first : String(first);
      selected.push(`${params.add(value)}::${type} AS ${name}`);
    }
  }
  if (arrays.length === 0) return `SELECT ${selected.join(', ')}, 1::bigint AS n`;
  const unnest = `unnest(${arrays.map(({ sql }) => sql).join(', ')})`;
  const names = arrays.map(({ name }) => name).join(', ');
  return `SELECT ${selected.join(', ')}, a.n FROM ${unnest} WITH ORDINALITY AS a(${names}, n)`;
}

/**
 * The same rows, which the planner takes for one: then it looks each of them up by its index. Knowing that they are many
 * it might read the whole table and compare each of its rows with each of these, which for a small or a freshly filled
 * table it thinks to be cheaper. The number is whole, so that the conditions hold always.
 */
export function few(from: string, number: string): string {
  return `SELECT * FROM ${from} AS few WHERE ${number} % 1 = 0 AND (${number} + 1) % 1 = 0`;
}

function isUniform(values: Column['values']): boolean {
  const first = values[0] ?? null;
  // Bytes are compared by identity: equal payloads in one batch are not worth looking for.
  for (const value of values) if ((value ?? null) !== first) return false;
  return true;
}
