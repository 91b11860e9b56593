import { EngineError } from '../../errors.ts';
import type { TransactionClient } from '../../ports/schedule.ts';
import type { Session } from './connection/database.ts';
import { faultOf, sqlState } from './connection/faults.ts';
import type { Row } from './rows.ts';

/** One round trip that changes nothing: outside of a transaction the server refuses it. */
const PROBE = 'SAVEPOINT redrive; RELEASE SAVEPOINT redrive';

/**
 * The caller's own transaction, whose client parses values in its own way. What is written outside of one is committed at
 * once, and stays where the caller rolls back: so that is refused before anything is written.
 */
export async function join(tx: unknown): Promise<Session> {
  const client = tx as Partial<Omit<TransactionClient, 'totalCount'>> | null | undefined;
  if (typeof client?.query !== 'function') {
    throw refusal(
      '`tx` is no client of `pg`: it has no query(text, values). Pass the client on which you have called BEGIN.',
    );
  }
  if ('totalCount' in client) {
    throw refusal(
      '`tx` is a pool: each of its queries may go to another connection, so it cannot be in a transaction. Pass the client of pool.connect() on which you have called BEGIN.',
    );
  }
  const session: Session = {
    async query(text, values) {
      try {
        const { rows } = (await client.query!(text, values)) as { rows: object[] };
        return rows.map((row) => (Array.isArray(row) ? (row as Row) : Object.values(row)));
      } catch (error) {
        throw faultOf(error);
      }
    },
  };
  try {
    await client.query(PROBE);
  } catch (error) {
    throw unusable(error) ?? faultOf(error);
  }
  return session;
}

function unusable(error: unknown): EngineError | undefined {
  const code = sqlState(error);
  if (code === '25P01') {
    return refusal(
      '`tx` is not in a transaction, so the task would stay where you roll back. Call BEGIN on this client first, or leave `tx` out.',
      error,
    );
  }
  if (code === '25P02') {
    return refusal(
      'The transaction of `tx` has failed: PostgreSQL takes no more statements in it. Roll it back, and submit in a new one.',
      error,
    );
  }
  return undefined;
}

function refusal(message: string, cause?: unknown): EngineError {
  return new EngineError(
    'NOT_IN_TRANSACTION',
    message,
    cause === undefined ? undefined : { cause },
  );
}
