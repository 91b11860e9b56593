import type { IdempotencyStore } from 'redrive';

/**
 * A client inside of a transaction that the engine begins and ends. After its end it takes no more statements, so that a
 * handler that comes late cannot write outside of it. Savepoints are allowed, `COMMIT` and `ROLLBACK` are not.
 */
export interface Transaction {
  query<Row = Record<string, unknown>>(
    text: string | TransactionQuery,
    values?: unknown[],
  ): Promise<TransactionResult<Row>>;
}

export interface TransactionQuery {
  text: string;
  values?: unknown[];
}

export interface TransactionResult<Row> {
  rows: Row[];
  rowCount: number | null;
}

export interface TransactionLimits {
  /** How long it may stay open. The server ends it if this process cannot. */
  timeoutMs: number;
  /** Aborted: the transaction is rolled back at once, and its connection given up. */
  signal: AbortSignal;
}

/** Keys beside which effects can be written: both commit together. */
export interface TransactionalIdempotency extends IdempotencyStore {
  /**
   * Runs `work` in a transaction of its own connection, with the same keys inside of it. Commits when `work` resolves, and
   * rolls back when it rejects or the signal aborts.
   */
  transaction<T>(
    work: (tx: Transaction, keys: IdempotencyStore) => Promise<T>,
    limits: TransactionLimits,
  ): Promise<T>;
}

export function isTransactional(keys: IdempotencyStore): keys is TransactionalIdempotency {
  return typeof (keys as Partial<TransactionalIdempotency>).transaction === 'function';
}
