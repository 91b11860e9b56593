import { EngineError } from '../../../errors.ts';
import type {
  Transaction,
  TransactionLimits,
  TransactionQuery,
  TransactionResult,
} from '../../../ports/idempotency.ts';
import type { Connections } from '../connection/connections.ts';
import {
  type DatabaseLimits,
  hearErrors,
  type PostgresClient,
  rowsOf,
  within,
} from '../connection/database.ts';
import { faultOf, isConnectionFault, sqlState, unreachable } from '../connection/faults.ts';
import type { Ask } from './keys.ts';
import { Slots } from './slots.ts';

/** The server's own limit strikes first where it can, and leaves the connection usable. */
const GRACE_MS = 1000;

/** Transactions that a handler writes in, each on a connection of its own and never longer than its limits. */
export class Transactions {
  readonly #connections: Connections;
  readonly #limits: DatabaseLimits;
  readonly #slots: Slots;

  /** At most `most` at once. */
  constructor(connections: Connections, limits: DatabaseLimits, most: number) {
    this.#connections = connections;
    this.#limits = limits;
    this.#slots = new Slots(most);
  }

  async run<T>(
    work: (tx: Transaction, ask: Ask) => Promise<T>,
    { timeoutMs, signal }: TransactionLimits,
  ): Promise<T> {
    signal.throwIfAborted();
    // Half of the time at most, so that an execution is not taken for one that ran out of it.
    const free = await this.#slots.take(timeoutMs / 2, signal);
    try {
      return await this.#transact(await this.#connect(), work, timeoutMs, signal);
    } finally {
      free();
    }
  }

  close(): Promise<void> {
    return this.#connections.end();
  }

  async #connect(): Promise<PostgresClient> {
    this.#connections.begin();
    let isLate = false;
    const connecting = this.#connections.connect().then((client) => {
      hearErrors(client);
      if (isLate) client.release();
      return client;
    });
    try {
      return await within(this.#limits.connectTimeoutMs + GRACE_MS, connecting);
    } catch (error) {
      isLate = true;
      throw sqlState(error) === undefined ? unreachable(error) : faultOf(error);
    }
  }

  async #transact<T>(
    client: PostgresClient,
    work: (tx: Transaction, ask: Ask) => Promise<T>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<T> {
    const tx = new OpenTransaction(client);
    const answerMs = this.#limits.statementTimeoutMs + GRACE_MS;
    const ask: Ask = (text, values) => tx.whileOpen(() => rowsOf(client, text, values, answerMs));
    const abort = abortOf(signal);
    let isBroken = true;
    try {
      const begun = rowsOf(client, begin(timeoutMs), undefined, answerMs);
      const result = await Promise.race([begun.then(() => work(tx, ask)), abort.aborted]);
      tx.end();
      // From here on the server decides. Whoever comes for the key waits for that, so that a late commit does no harm.
      await commit(client, answerMs);
      isBroken = false;
      return result;
    } catch (error) {
      tx.end();
      isBroken = signal.aborted || isConnectionFault(error) || !(await rollBack(client, answerMs));
      throw error;
    } finally {
      abort.forget();
      client.release(isBroken);
    }
  }
}

/** Limits also by the server: a process that stands still must not hold a key for longer. */
function begin(timeoutMs: number): string {
  const most = Math.ceil(timeoutMs) + GRACE_MS;
  return `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${most};
    SET LOCAL idle_in_transaction_session_timeout = ${most}`;
}

async function commit(client: PostgresClient, timeoutMs: number): Promise<void> {
  const committed = await within(timeoutMs, client.query({ text: 'COMMIT' }));
  // The server says ROLLBACK, and no error, where a statement had failed of which nobody took notice.
  if ((committed as { command?: string }).command === 'COMMIT') return;
  throw new Error('A statement of the transaction had failed, so the server rolled it back.');
}

/** False: the connection must be thrown away, and with it the transaction. */
async function rollBack(client: PostgresClient, timeoutMs: number): Promise<boolean> {
  try {
    await within(timeoutMs, client.query({ text: 'ROLLBACK' }));
    return true;
  } catch {
    return false;
  }
}

/** Rejects when the signal aborts. */
function abortOf(signal: AbortSignal): { aborted: Promise<never>; forget: () => void } {
  let forget = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    forget = () => signal.removeEventListener('abort', onAbort);
  });
  // Nobody may be waiting for it any more.
  aborted.catch(() => undefined);
  return { aborted, forget };
}

/** The client as a handler sees it. Its connection goes to somebody else afterwards. */
class OpenTransaction implements Transaction {
  readonly #client: PostgresClient;
  #isOver = false;

  constructor(client: PostgresClient) {
    this.#client = client;
  }

  end(): void {
    this.#isOver = true;
  }

  async whileOpen<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isOver) return work();
    throw new EngineError(
      'TRANSACTION_OVER',
      'The transaction of this handler has ended: its work was done or failed, its time was up, or its lease was lost. Await every statement, and heed the signal.',
    );
  }

  query<Row>(text: string | TransactionQuery, values?: unknown[]): Promise<TransactionResult<Row>> {
    return this.whileOpen(async () => {
      const query = typeof text === 'string' ? { text } : text;
      if (control.test(query.text)) {
        throw new EngineError(
          'TRANSACTION_CONTROL',
          `The handler sent ${query.text.trim().slice(0, 40)}. The engine begins and ends this transaction, together with the record of the task. Use SAVEPOINT for a part of it, and throw to roll back all of it.`,
        );
      }
      const sent = { ...query, ...(values ? { values } : {}) };
      return (await this.#client.query(sent)) as TransactionResult<Row>;
    });
  }
}

const control =
  /^\s*(begin|start\s+transaction|commit|end|abort|rollback(?!\s+(work\s+|transaction\s+)?to\b)|prepare\s+transaction)\b/i;
