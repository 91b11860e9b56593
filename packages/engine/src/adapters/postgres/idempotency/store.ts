import type {
  ClaimAnswer,
  ClaimRequest,
  IdempotencyEntry,
  IdempotencyStore,
  NewRecord,
  Outcome,
} from 'redrive';
import type { TransactionClient } from '../../../ports/schedule.ts';
import { connectionsOf } from '../connection/connections.ts';
import { Database, type PostgresPool, type Session } from '../connection/database.ts';
import { join } from '../join.ts';
import { type PostgresOptions, readOptions } from '../connection/options.ts';
import type { Row } from '../rows.ts';
import { isInPlace, type KeyNames, keyNamesIn, prepareKeys } from './schema.ts';
import { type KeyTexts, textsFor } from './text.ts';

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

export interface PostgresIdempotency extends IdempotencyStore {
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
  const options = typeof given === 'object' && 'connect' in given ? { pool: given } : given;
  const { source, maxConnections, limits, schema, migrate, random } = readOptions(options);
  const connections = connectionsOf(source, limits, maxConnections);
  const database = new Database(connections, limits, random);
  const names = keyNamesIn(schema);
  const texts = textsFor(names);
  const ready = onceReady(database, names, migrate === 'auto', () => connections.begin());
  const ask: Ask = async (text, values) => {
    await ready();
    // Statements with the owner's token may run twice without harm. To clear has none.
    const isClear = text === texts.clear;
    return isClear ? database.query(text, values) : database.queryAgain(text, values);
  };
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
      return Object.assign(new PostgresKeys(inside, texts), { transactional: true });
    },
    close: () => connections.end(),
  });
}

type Ask = (text: string, values: unknown[]) => Promise<Row[]>;

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

/** A claim that met a row which changed under it is made again. */
const MAX_CLAIMS = 5;
const MAX_PRUNED = 10_000;

class PostgresKeys implements IdempotencyStore {
  readonly #ask: Ask;
  readonly #texts: KeyTexts;

  constructor(ask: Ask, texts: KeyTexts) {
    this.#ask = ask;
    this.#texts = texts;
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, owner, fingerprint, leaseMs, takeOver } = request;
    const fresh = [key, owner, fingerprint, leaseMs];
    const [inserted] = await this.#ask(this.#texts.insert, fresh);
    if (inserted) return { state: 'claimed', fencingToken: Number(inserted[0]), claims: 1 };
    for (let attempt = 1; ; attempt++) {
      const values = [...fresh, takeOver];
      const [row = []] = await this.#ask(this.#texts.claim, values);
      const [mine, token, claims, ...columns] = row;
      if (token != null) {
        return { state: 'claimed', fencingToken: Number(token), claims: Number(claims) };
      }
      const found = entryOf(columns);
      // What the snapshot shows may be over: then the row is looked at once more, or somebody else is claiming it.
      const isStale =
        !found ||
        (found.state === 'abandoned' && takeOver && isSame(found.fingerprint, fingerprint));
      if (!isStale) return found;
      if (mine !== '1' || attempt === MAX_CLAIMS) {
        return { state: 'held', fingerprint: found?.fingerprint ?? '', remainingMs: 0 };
      }
    }
  }

  async renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return isOne(await this.#ask(this.#texts.renew, [key, owner, leaseMs]));
  }

  async record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const { outcome, metadata = null, expiresInMs = null } = record;
    const values = [key, owner, outcome.kind, outcome.text, metadata, expiresInMs];
    return isOne(await this.#ask(this.#texts.record, values));
  }

  async read(key: string): Promise<IdempotencyEntry | undefined> {
    const [row] = await this.#ask(this.#texts.read, [key]);
    return row && entryOf(row);
  }

  async release(key: string, owner?: string): Promise<boolean> {
    const { release, clear } = this.#texts;
    return isOne(
      owner === undefined ? await this.#ask(clear, [key]) : await this.#ask(release, [key, owner]),
    );
  }

  async prune(limit: number): Promise<number> {
    const most = Math.min(Math.max(0, Math.floor(limit)), MAX_PRUNED);
    return (await this.#ask(this.#texts.prune, [most])).length;
  }
}

function isOne(rows: readonly Row[]): boolean {
  return rows.length === 1;
}

function isSame(one: string, other: string): boolean {
  return one === '' || other === '' || one === other;
}

/** Undefined: there is no row. */
function entryOf(columns: Row): IdempotencyEntry | undefined {
  const [fingerprint, remaining, kind, text, metadata, recordedAt] = columns as (string | null)[];
  if (fingerprint == null) return undefined;
  if (kind != null) {
    const outcome = { kind, text } as Outcome;
    const more = metadata == null ? {} : { metadata };
    return { state: 'done', fingerprint, outcome, ...more, recordedAtMs: Number(recordedAt) };
  }
  const remainingMs = Number(remaining);
  return remainingMs > 0
    ? { state: 'held', fingerprint, remainingMs }
    : { state: 'abandoned', fingerprint };
}
