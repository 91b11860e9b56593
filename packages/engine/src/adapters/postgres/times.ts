/** Times in statements. What Redrive writes is whole ms. */

/** A point in time as ms since the epoch. */
export function msOf(expression: string): string {
  return `date_part('epoch', ${expression}) * 1000`;
}

/** The point in time that so many ms since the epoch are. */
export function timeAt(ms: string): string {
  return `TIMESTAMPTZ 'epoch' + ${ms} * INTERVAL '1 millisecond'`;
}

/**
 * The time of the statement, in whole ms. In brackets of its own, so that it is worked out once for all rows; not the
 * transaction's time, which is old where the caller's own transaction is.
 */
export const NOW = `(SELECT date_trunc('milliseconds', statement_timestamp()))`;

/** The time when the transaction began, in whole ms: the same for all that it writes. */
export const BEGUN = `(SELECT date_trunc('milliseconds', transaction_timestamp()))`;

export function later(ms: string): string {
  return `${NOW} + ${ms} * INTERVAL '1 millisecond'`;
}
