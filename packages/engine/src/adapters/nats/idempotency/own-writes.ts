import type { KeyEntry } from 'redrive/internal';

/** What is under a key at a revision. */
export interface Found {
  entry: KeyEntry;
  leaseMs: number;
}

interface Written extends Found {
  revision: number;
}

/**
 * What this store wrote last under the keys that it claimed. A write at that revision needs no look first: it fails where
 * somebody else has written since.
 */
export class OwnWrites {
  readonly #written = new Map<string, Written>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, owner: string): Written | undefined {
    const written = this.#written.get(key);
    return written?.entry.owner === owner ? written : undefined;
  }

  set(key: string, written: Written): void {
    this.#written.delete(key);
    this.#written.set(key, written);
    // One that is forgotten is looked at again.
    if (this.#written.size > this.#limit) this.forget(this.#written.keys().next().value!);
  }

  forget(key: string): void {
    this.#written.delete(key);
  }
}
