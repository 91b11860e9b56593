import { type Clock, type IdempotencyStore, memoryIdempotency, type NewRecord } from 'redrive';
import type {
  Transaction,
  TransactionalIdempotency,
  TransactionLimits,
} from '../../../ports/idempotency.ts';
import { suffer, type Weather } from '../faults.ts';
import type { Instance } from '../instance.ts';
import type { OnceLedger } from './once-ledger.ts';
import type { World } from '../world.ts';

/** What one transaction has written, and which keys it has. It ends with its instance. */
interface OpenTransaction {
  instance: Instance;
  records: [key: string, owner: string, record: NewRecord][];
  effects: string[];
}

/** Idempotency keys that all instances share, with or without transactions of the effects. */
export class KeyWorld {
  readonly #world: World;
  readonly #weather: Weather;
  readonly #ledger: OnceLedger;
  readonly #keys: IdempotencyStore;
  readonly #held = new Map<string, OpenTransaction>();

  constructor(world: World, weather: Weather, clock: Clock, ledger: OnceLedger) {
    this.#world = world;
    this.#weather = weather;
    this.#ledger = ledger;
    this.#keys = memoryIdempotency({ clock });
  }

  /** As one instance sees them. */
  seenBy(instance: Instance, isTransactional: boolean): IdempotencyStore {
    const keys = this.#keys;
    const faulty = <T>(what: string, work: () => T | PromiseLike<T>) =>
      this.#suffer(instance, what, work);
    const plain: IdempotencyStore = {
      claim: (request) => faulty(`claim ${request.key}`, () => keys.claim(request)),
      renew: (...args) => faulty(`renew ${args[0]}`, () => keys.renew(...args)),
      record: async (key, owner, record) => {
        this.#ledger.recording(key);
        const isMine = await faulty(`record ${key}`, () => this.#record(key, owner, record));
        if (isMine) this.#ledger.answered(key);
        return isMine;
      },
      read: (key) => faulty(`read ${key}`, () => keys.read(key)),
      release: (...args) => faulty(`release ${args[0]}`, () => keys.release(...args)),
      prune: (limit) => faulty('prune', () => keys.prune(limit)),
    };
    if (!isTransactional) return plain;
    const transactional: TransactionalIdempotency = {
      ...plain,
      transaction: (work, limits) => this.#transact(instance, work, limits),
    };
    return transactional;
  }

  async #transact<T>(
    instance: Instance,
    work: (tx: Transaction, keys: IdempotencyStore) => Promise<T>,
    { signal }: TransactionLimits,
  ): Promise<T> {
    const open: OpenTransaction = { instance, records: [], effects: [] };
    let isOver = false;
    const whileOpen = <R>(what: string, call: () => R | PromiseLike<R>) =>
      this.#suffer(instance, `tx ${what}`, () => {
        if (isOver) throw new Error('made up: the transaction is over');
        return call();
      });
    const inside: IdempotencyStore = {
      transactional: true,
      claim: (request) => whileOpen(`claim ${request.key}`, () => this.#claim(open, request)),
      renew: () => true,
      record: (key, owner, record) =>
        whileOpen(`record ${key}`, () => {
          open.records.push([key, owner, record]);
          return true;
        }),
      read: (key) => whileOpen(`read ${key}`, () => this.#keys.read(key)),
      release: (key) => whileOpen(`release ${key}`, () => true),
      prune: () => 0,
    };
    const tx: Transaction = {
      query: (text) =>
        whileOpen('effect', () => {
          open.effects.push(text as string);
          return { rows: [], rowCount: 1 };
        }),
    };
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
    aborted.catch(nothing);
    try {
      const result = await Promise.race([work(tx, inside), aborted]);
      isOver = true;
      await this.#suffer(instance, 'commit', () => this.#commit(open));
      return result;
    } finally {
      isOver = true;
      this.#free(open);
    }
  }

  /** Nobody waits for a transaction of somebody else: the key is held, and nobody knows for how long. */
  async #claim(open: OpenTransaction, request: Parameters<IdempotencyStore['claim']>[0]) {
    const { key } = request;
    const holder = this.#held.get(key);
    if (holder && holder !== open && holder.instance.isAlive) {
      return { state: 'held', fingerprint: '', remainingMs: 0 } as const;
    }
    const found = await this.#keys.read(key);
    if (found?.state === 'done') return found;
    this.#held.set(key, open);
    return { state: 'claimed', fencingToken: 1, claims: 1 } as const;
  }

  /** Effects and records at once. */
  async #commit(open: OpenTransaction): Promise<void> {
    for (const [key, owner, record] of open.records) {
      const request = { key, owner, fingerprint: '', leaseMs: 1, takeOver: true };
      await this.#keys.claim(request);
      await this.#record(key, owner, record);
    }
    for (const effect of open.effects) this.#ledger.committed(effect);
    this.#free(open);
  }

  #free(open: OpenTransaction): void {
    for (const [key, holder] of this.#held) if (holder === open) this.#held.delete(key);
  }

  #suffer<T>(instance: Instance, what: string, work: () => T | PromiseLike<T>): Promise<T> {
    return suffer(this.#world, this.#weather, instance, async () => {
      const result = await work();
      this.#ledger.tell(`${instance.name} ${what}`, result);
      return result;
    });
  }

  async #record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const isMine = await this.#keys.record(key, owner, record);
    if (isMine) this.#ledger.recorded(key);
    return isMine;
  }
}

function nothing(): void {}
