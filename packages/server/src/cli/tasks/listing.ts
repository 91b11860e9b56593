/** A list of the server, as a table or one object per line. */
import type { Guard } from '../answers.ts';
import type { Client, Query } from '../client.ts';
import { type Cell, type Column, grid, type Output } from '../terminal/output.ts';

export const limit = {
  kind: 'number',
  value: 'n',
  min: 1,
  max: 100_000,
  whole: true,
  default: 50,
  summary: 'At most so many.',
} as const;

interface Listing<T> {
  isOne: Guard<T>;
  path: string;
  query: Query;
  limit: number;
  columns: readonly Column[];
  rowOf: (one: T, nowMs: number) => readonly Cell[];
  /** Said where there are none. */
  none?: string;
  /** Which of them come first (`newest`). */
  first?: 'oldest' | 'first';
  /** What a program gets; absent: all of it. */
  dataOf?: (one: T) => unknown;
}

/** Prints it, and answers what a table was made of. A program gets each as it comes: nothing is kept. */
export async function printList<T>(
  client: Client,
  output: Output,
  json: boolean,
  listing: Listing<T>,
): Promise<T[]> {
  const { isOne, path, query, columns, rowOf, none = 'There are none.', dataOf } = listing;
  const kept: T[] = [];
  for await (const one of client.items(isOne, path, query, listing.limit)) {
    if (json) output.data(dataOf ? dataOf(one) : one);
    else kept.push(one);
  }
  const nowMs = client.nowMs();
  const rows = kept.map((one) => rowOf(one, nowMs));
  output.say(...(rows.length > 0 ? grid(columns, rows, output) : [none]));
  if (kept.length === listing.limit) {
    output.say(
      '',
      `These are the ${listing.first ?? 'newest'} ${listing.limit}; --limit shows more.`,
    );
  }
  return kept;
}
