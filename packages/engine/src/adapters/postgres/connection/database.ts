import type { Random } from 'redrive';
import { isEngineError } from '../../../errors.ts';
import {
  DatabaseTimeout,
  faultOf,
  isConnectionFault,
  isContention,
  sqlState,
  unreachable,
} from './faults.ts';
import type { Row } from '../rows.ts';

/** What is needed of a `pg.Pool`. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

/** What is needed of a client of such a pool. */
export interface PostgresClient {
  query(query: { text: string; values?: unknown[] }): Promise<unknown>;
  release(destroy?: boolean): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Something that takes statements, one after the other. */
export interface Session {
  query(text: string, values?: unknown[]): Promise<Row[]>;
}

export interface DatabaseLimits {
  /** How long one statement may take. */
  statementTimeoutMs: number;
  /** How long to wait for a connection. */
  connectTimeoutMs: number;
  /** How long a statement may wait for what somebody else has locked. */
  lockTimeoutMs: number;
}

/** Thrown by the work of a transaction to have it rolled back and run again at once: it has met what came meanwhile. */
export class Restart extends Error {
  override readonly name = 'Restart';
}

const MAX_RESTARTS = 100;
const MAX_TRIES = 5;
/** The server's own limit strikes first where it has one, and leaves the connection usable. */
const GRACE_MS = 1000;

/**
 * Statements on pooled connections, each bounded in time. Nothing is kept in a session (no prepared statement, no
 * setting), so that a pooler may give every transaction another connection to the server.
 */
export class Database implements Session {
  readonly limits: DatabaseLimits;
  readonly #pool: PostgresPool;
  readonly #random: Random;
  readonly #begin: string;

  constructor(pool: PostgresPool, limits: DatabaseLimits, random: Random) {
    this.#pool = pool;
    this.limits = limits;
    this.#random = random;
    const { statementTimeoutMs, lockTimeoutMs } = limits;
    this.#begin = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${lockTimeoutMs};
      SET LOCAL statement_timeout = ${statementTimeoutMs};
      SET LOCAL idle_in_transaction_session_timeout = ${statementTimeoutMs}`;
  }

  /** One statement, committed when it resolves. When its answer is lost, its effect is not known. */
  query(text: string, values?: unknown[]): Promise<Row[]> {
    return this.#persist(() => this.#once(text, values), false);
  }

  /** One statement that may run twice without harm: sent again when a connection turns out to be dead. */
  queryAgain(text: string, values?: unknown[]): Promise<Row[]> {
    return this.#persist(() => this.#once(text, values), true);
  }

  /** All or nothing. `work` is run again when the server gave it up for the sake of others. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#persist(async () => {
      for (let restarts = 0; ; restarts++) {
        try {
          return await this.#transact(work);
        } catch (error) {
          if (!(error instanceof Restart) || restarts === MAX_RESTARTS) throw error;
        }
      }
    }, false);
  }

  async #persist<T>(work: () => Promise<T>, mayRepeat: boolean): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const isLost = mayRepeat && attempt === 1 && isLostConnection(error);
        if (attempt === MAX_TRIES || !(isContention(error) || isLost)) throw faultOf(error);
        await pause(this.#random() * 10 * 2 ** attempt);
      }
    }
  }

  async #once(text: string, values?: unknown[]): Promise<Row[]> {
    const client = await this.#acquire();
    let isBroken = false;
    try {
      return await this.#ask(client, text, values);
    } catch (error) {
      isBroken = isConnectionFault(error);
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  async #transact<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#acquire();
    let isBroken = false;
    try {
      await this.#ask(client, this.#begin);
      const result = await work({ query: (text, values) => this.#ask(client, text, values) });
      await this.#ask(client, 'COMMIT');
      return result;
    } catch (error) {
      const isOurs = error instanceof Restart;
      isBroken = (!isOurs && isConnectionFault(error)) || !(await this.#rollBack(client));
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  /** False: the connection must be thrown away, and with it the transaction. */
  async #rollBack(client: PostgresClient): Promise<boolean> {
    try {
      await this.#ask(client, 'ROLLBACK');
      return true;
    } catch {
      return false;
    }
  }

  #ask(client: PostgresClient, text: string, values?: unknown[]): Promise<Row[]> {
    return rowsOf(client, text, values, this.limits.statementTimeoutMs + GRACE_MS);
  }

  async #acquire(): Promise<PostgresClient> {
    let isLate = false;
    const connecting = this.#pool.connect().then((client) => {
      hearErrors(client);
      if (isLate) client.release();
      return client;
    });
    try {
      return await within(this.limits.connectTimeoutMs + GRACE_MS, connecting);
    } catch (error) {
      isLate = true;
      // The server's own word, such as a wrong password, says more than that it cannot be reached.
      throw sqlState(error) === undefined ? unreachable(error) : error;
    }
  }
}

/** Rows by position, every value as the text that the server sent: `rows.ts` knows what it wants. */
export async function rowsOf(
  client: PostgresClient,
  text: string,
  values: unknown[] | undefined,
  timeoutMs: number,
): Promise<Row[]> {
  const query = { text, ...(values ? { values } : {}), rowMode: 'array', types: asTexts };
  const { rows } = (await within(timeoutMs, client.query(query))) as { rows?: Row[] };
  return rows ?? [];
}

export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

const asTexts = { getTypeParser: () => (text: unknown) => text };

/** A connection that worked and broke: an idle one may have been dead for long, and the next one works. */
function isLostConnection(error: unknown): boolean {
  return isConnectionFault(error) && !(error instanceof DatabaseTimeout) && !isEngineError(error);
}

const heard = new WeakSet<PostgresClient>();

/** A client that breaks while we have it says so by an event too, which would end the process if nobody listened. */
export function hearErrors(client: PostgresClient): void {
  if (heard.has(client)) return;
  heard.add(client);
  client.on('error', () => undefined);
}
