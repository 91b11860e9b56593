import type {
  ClaimAnswer,
  ClaimRequest,
  Clock,
  IdempotencyEntry,
  IdempotencyStore,
  NewRecord,
} from 'redrive';
import { answerOf, claimOf, isHeldBy, recordedOf } from 'redrive/internal';
import type { Database } from '../database.ts';
import type { KeyTable } from './key-table.ts';

/** The keys in the file of a store, which opens and closes it: their commits are those of the store. */
export function keysOn<T extends { keys: KeyTable }>(
  database: Database<T>,
  clock: Clock,
): IdempotencyStore {
  return new SqliteIdempotency(
    database,
    ({ keys }) => keys,
    clock,
    async () => {},
  );
}

/** Apart from `store.ts`, whose types users get: those of this file need `node:sqlite`. */
export class SqliteIdempotency<T> implements IdempotencyStore {
  readonly #database: Database<T>;
  readonly #tableOf: (statements: T) => KeyTable;
  readonly #clock: Clock;
  readonly #open: () => Promise<void>;

  constructor(
    database: Database<T>,
    tableOf: (statements: T) => KeyTable,
    clock: Clock,
    open: () => Promise<void>,
  ) {
    this.#database = database;
    this.#tableOf = tableOf;
    this.#clock = clock;
    this.#open = open;
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    // A result is found without a lock.
    return this.#write<ClaimAnswer>(
      (table, nowMs) => {
        const found = table.find(request.key, nowMs);
        const claimed = claimOf(found, request, nowMs, table.nextToken(nowMs));
        if ('answer' in claimed) return claimed.answer;
        const { entry } = claimed;
        table.save(request.key, entry);
        return { state: 'claimed', fencingToken: entry.fencingToken, claims: entry.claims };
      },
      (table, nowMs) => {
        const found = table.find(request.key, nowMs);
        return found?.outcome && answerOf(found, nowMs);
      },
    );
  }

  renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return this.#write((table, nowMs) => {
      const entry = table.find(key, nowMs);
      if (!isHeldBy(entry, owner)) return false;
      table.save(key, { ...entry, leaseEndMs: nowMs + leaseMs });
      return true;
    });
  }

  async record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    await this.#open();
    return this.#database.writeEnd((statements) => {
      const table = this.#tableOf(statements);
      const nowMs = this.#now();
      const entry = table.find(key, nowMs);
      if (entry?.owner !== owner) return false;
      table.save(key, recordedOf(entry, record, nowMs, nowMs));
      return true;
    });
  }

  async read(key: string): Promise<IdempotencyEntry | undefined> {
    await this.#open();
    return this.#database.read((statements) => {
      const nowMs = this.#now();
      const entry = this.#tableOf(statements).find(key, nowMs);
      return entry && answerOf(entry, nowMs);
    });
  }

  release(key: string, owner?: string): Promise<boolean> {
    return this.#write((table, nowMs) => {
      const entry = table.find(key, nowMs);
      if (!entry || (owner !== undefined && !isHeldBy(entry, owner))) return false;
      table.delete(key, entry);
      return true;
    });
  }

  prune(limit: number): Promise<number> {
    return this.#write((table, nowMs) => table.prune(nowMs, limit));
  }

  /** The time is that of the lock, not of the call. `work` may be called again. */
  async #write<R>(
    work: (table: KeyTable, nowMs: number) => R,
    glance?: (table: KeyTable, nowMs: number) => R | undefined,
  ): Promise<R> {
    await this.#open();
    return this.#database.write(
      (statements) => work(this.#tableOf(statements), this.#now()),
      glance && ((statements) => glance(this.#tableOf(statements), this.#now())),
    );
  }

  #now(): number {
    return Math.floor(this.#clock.now());
  }
}
