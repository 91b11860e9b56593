import type { Clock } from 'redrive';
import type { Leased, LeaseEnd, Taken } from '../../delay-queue/lease-source.ts';
import { EngineError } from '../../errors.ts';
import { Agenda } from '../../lanes/agenda.ts';
import type { DelayedEntry } from '../../ports/delay-queue.ts';

export interface MemoryLease extends Leased {
  readonly row: number;
  readonly token: number;
}

interface Row {
  number: number;
  id: string;
  payload: Uint8Array;
  key: string;
  dueAtMs: number;
  redeliveries: number;
  /** Of the consumer that has it in hand; absent: it waits. */
  token?: number;
}

/** Entries by the time at which they can be taken: when they are due, or when their lease is over. */
export class DelayTable {
  readonly #clock: Clock;
  readonly #maxEntries: number;
  readonly #deduplicates: boolean;
  readonly #rows = new Map<number, Row>();
  readonly #byId = new Map<string, Row>();
  readonly #agenda = new Agenda();
  readonly #listeners = new Set<(inMs: number) => void>();
  #lastRow = 0;
  #lastToken = 0;

  constructor(clock: Clock, maxEntries: number, deduplicates: boolean) {
    this.#clock = clock;
    this.#maxEntries = maxEntries;
    this.#deduplicates = deduplicates;
  }

  get size(): number {
    return this.#rows.size;
  }

  ids(): string[] {
    return Array.from(this.#rows.values(), ({ id }) => id);
  }

  add(entries: readonly DelayedEntry[]): void {
    const count = entries.filter(({ id }) => !this.#isKnown(id)).length;
    if (this.#rows.size + count > this.#maxEntries) {
      const message = `The delay queue holds ${this.#rows.size} entries, and at most ${this.#maxEntries} fit. Consume it, or raise maxEntries.`;
      throw new EngineError('STORE_FULL', message);
    }
    for (const { id, delayMs, payload, key = id } of entries) {
      // Asked once more: the same id may stand twice in one call.
      if (this.#isKnown(id)) continue;
      // The caller's bytes are the caller's.
      const bytes = new Uint8Array(payload);
      const row = { number: ++this.#lastRow, id, payload: bytes, key, dueAtMs: 0, redeliveries: 0 };
      this.#rows.set(row.number, row);
      this.#byId.set(id, row);
      this.#wait(row, this.#nowMs + delayMs);
    }
    this.#tell();
  }

  cancel(id: string): boolean {
    const row = this.#byId.get(id);
    if (!row || this.#isHeld(row)) return false;
    this.#drop(row);
    return true;
  }

  take(limit: number, leaseMs: number): Taken<MemoryLease> {
    const nowMs = this.#nowMs;
    const token = ++this.#lastToken;
    const leased: MemoryLease[] = [];
    let next = this.#agenda.first();
    for (; next && next.atMs <= nowMs && leased.length < limit; next = this.#agenda.first()) {
      const row = this.#rows.get(next.id)!;
      // A lease that is over: whoever had it gave no answer.
      if (row.token !== undefined) row.redeliveries += 1;
      row.token = token;
      this.#agenda.set(row.number, nowMs + leaseMs);
      const { number, id, key, redeliveries, dueAtMs } = row;
      const payload = new Uint8Array(row.payload);
      const entry = { id, payload, key, redeliveries, lateMs: nowMs - dueAtMs };
      leased.push({ entry, row: number, token });
    }
    return { leased, nextInMs: next ? Math.max(0, next.atMs - nowMs) : Infinity };
  }

  renew(leased: readonly MemoryLease[], leaseMs: number): boolean[] {
    return leased.map((lease) => {
      const row = this.#heldBy(lease);
      if (row) this.#agenda.set(row.number, this.#nowMs + leaseMs);
      return row !== undefined;
    });
  }

  end(leased: readonly MemoryLease[], ends: readonly LeaseEnd[]): void {
    for (const [i, lease] of leased.entries()) {
      const row = this.#heldBy(lease);
      if (row) this.#endOne(row, ends[i]!);
    }
    this.#tell();
  }

  expireLeases(): void {
    for (const row of this.#rows.values()) {
      if (row.token === undefined) continue;
      // Nobody's: who had it can neither renew nor answer.
      row.token = 0;
      this.#agenda.set(row.number, this.#nowMs);
    }
    this.#tell();
  }

  watch(listener: (inMs: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Monotonic: a wall clock that jumps would hand over early. */
  get #nowMs(): number {
    return this.#clock.monotonic();
  }

  #isKnown(id: string): boolean {
    return this.#deduplicates && this.#byId.has(id);
  }

  #endOne(row: Row, end: LeaseEnd): void {
    switch (end.type) {
      case 'done':
        return this.#drop(row);
      case 'again':
        row.redeliveries = 0;
        return this.#wait(row, this.#nowMs + end.delayMs);
      case 'unanswered':
        row.redeliveries += 1;
        return this.#wait(row, this.#nowMs + end.delayMs);
      case 'released':
        return this.#wait(row, row.dueAtMs);
    }
  }

  #wait(row: Row, dueAtMs: number): void {
    delete row.token;
    row.dueAtMs = dueAtMs;
    this.#agenda.set(row.number, dueAtMs);
  }

  #drop(row: Row): void {
    this.#rows.delete(row.number);
    this.#agenda.delete(row.number);
    if (this.#byId.get(row.id) === row) this.#byId.delete(row.id);
  }

  /** A late answer counts as long as nobody else has the entry. */
  #heldBy(lease: MemoryLease): Row | undefined {
    const row = this.#rows.get(lease.row);
    return row?.token === lease.token ? row : undefined;
  }

  #isHeld(row: Row): boolean {
    return row.token !== undefined && this.#agenda.at(row.number)! > this.#nowMs;
  }

  #tell(): void {
    const first = this.#agenda.first();
    if (!first) return;
    const inMs = Math.max(0, first.atMs - this.#nowMs);
    for (const listener of this.#listeners) listener(inMs);
  }
}
