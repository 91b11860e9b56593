import type { IdempotencyStore } from 'redrive';
import type {
  Transaction,
  TransactionalIdempotency,
  TransactionLimits,
} from '../../../ports/idempotency.ts';
import type { TransactionClient } from '../../../ports/schedule.ts';
import { connectionsOf } from '../connection/connections.ts';
import { Database, type PostgresPool, type Session } from '../connection/database.ts';
import { join } from '../join.ts';
import { type PostgresOptions, type PostgresSettings, readOptions } from '../connection/options.ts';
import { type Ask, PostgresKeys } from './keys.ts';
import { isInPlace, type KeyNames, keyNamesIn, prepareKeys } from './schema.ts';
import { textsFor } from './text.ts';
import { Transactions } from './transactions.ts';

export type PostgresIdempotencyOptions = Pick<
  PostgresOptions,
  | 'url'
  | 'pool'
  | 'schema'
  | 'migrate'
  | 'maxConnections'
  | 'statementTimeoutMs'
  | 'connectTimeoutMs'
  | 'random'
>;

export interface PostgresIdempotency extends TransactionalIdempotency {
  /**
   * The same keys within a transaction of yours, on its own client: the record commits together with what the work writes
   * there, or not at all. An effect in this database then happens exactly once. Roll back where `idempotent` rejects.
   */
  within(tx: TransactionClient): IdempotencyStore;
  close(): Promise<void>;
}

/**
 * Idempotency keys in PostgreSQL 13 or later, which any number of processes may share. A URL, a pool of `pg`, or options.
 * The table is created at the first use.
 */
export function postgresIdempotency(
  given: string | PostgresPool | PostgresIdempotencyOptions,
): PostgresIdempotency {
  const isPool = typeof given === 'object' && given !== null && 'connect' in given;
  const options = isPool ? { pool: given } : given;
  const settings = readOptions(options);
  const { source, maxConnections, limits, random } = settings;
  const connections = connectionsOf(source, limits, maxConnections);
  return keysOn(new Database(connections, limits, random), settings, {
    begin: () => connections.begin(),
    end: () => connections.end(),
  });
}

/** The keys on connections that are begun and ended as told: those of a store end with the store. */
export function keysOn(
  database: Database,
  settings: PostgresSettings,
  { begin, end }: { begin: () => void; end: () => Promise<void> },
): PostgresIdempotency {
  const names = keyNamesIn(settings.schema);
  const texts = textsFor(names);
  const ready = onceReady(database, names, settings.migrate === 'auto', begin);
  const ask: Ask = async (text, values) => {
    await ready();
    // Statements with the owner's token may run twice without harm. To clear has none.
    const isClear = text === texts.clear;
    return isClear ? database.query(text, values) : database.queryAgain(text, values);
  };
  const transactions = transactionsOf(settings);
  return Object.assign(new PostgresKeys(ask, texts), {
    within(tx: TransactionClient): IdempotencyStore {
      let joined: ReturnType<typeof join> | undefined;
      const inside: Ask = async (text, values) => {
        // Every claim begins with the insert: the client may be in another transaction by then, or in none.
        if (text === texts.insert) joined = undefined;
        const session = await (joined ??= join(tx));
        await ready(session);
        return session.query(text, values);
      };
      return transactional(inside);
    },
    async transaction<T>(
      work: (tx: Transaction, keys: IdempotencyStore) => Promise<T>,
      limits: TransactionLimits,
    ): Promise<T> {
      // Before a connection is held: the callers may hold all others.
      await ready();
      return transactions.run((tx, inside) => work(tx, transactional(inside)), limits);
    },
    async close() {
      await transactions.close();
      await end();
    },
  });

  function transactional(inside: Ask): IdempotencyStore {
    return Object.assign(new PostgresKeys(inside, texts), { transactional: true });
  }
}

/** Housekeeping, heartbeats and settles need connections while handlers hold theirs. */
const SPARED = 2;
/** What a pool of `pg` has unless it is told otherwise. */
const USUAL_POOL = 10;

/** Connections of their own, or of a pool that is lent all but a few. */
function transactionsOf({ source, maxConnections, limits }: PostgresSettings): Transactions {
  const connections = connectionsOf(source, limits, maxConnections);
  if ('url' in source) return new Transactions(connections, limits, maxConnections);
  const { options } = source.pool as { options?: { max?: number } };
  const most = Math.max(1, (options?.max ?? USUAL_POOL) - SPARED);
  return new Transactions(connections, limits, most);
}

/** Tries again after a failure, and not any more after a success. */
function onceReady(
  database: Database,
  names: KeyNames,
  mayCreate: boolean,
  begin: () => void,
): (session?: Session) => Promise<void> {
  let preparing: Promise<void> | undefined;
  let isReady = false;
  return async (session) => {
    if (isReady) return;
    // In a transaction its own connection is asked first: the callers may hold all others of the pool.
    if (session && (await isInPlace(session, names))) {
      isReady = true;
      return;
    }
    preparing ??= (async () => {
      begin();
      await prepareKeys(database, names, mayCreate);
    })().catch((error: unknown) => {
      preparing = undefined;
      throw error;
    });
    await preparing;
    isReady = true;
  };
}
