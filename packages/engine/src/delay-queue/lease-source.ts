import type { DueEntry } from '../ports/delay-queue.ts';

/** Where a consumer gets its entries, for queues that lease each entry by itself. */
export interface LeaseSource<L extends Leased = Leased> {
  readonly leaseMs: number;
  /** Leases entries that are due, at most so many. */
  take(limit: number): Promise<Taken<L>>;
  /** Prolongs leases from now on. For each: whether it is still held. */
  renew(leased: readonly L[]): Promise<boolean[]>;
  /** Ends leases, and resolves when that is durable. What is not held any more changes nothing. Safe to repeat. */
  end(leased: readonly L[], ends: readonly LeaseEnd[]): Promise<void>;
  /** Calls back when something may be due in so many ms. Returns the end of it. */
  watch(listener: (inMs: number) => void): () => void;
}

/** An entry under a lease. Adapters add what they need to end it. */
export interface Leased {
  readonly entry: DueEntry;
}

export interface Taken<L extends Leased = Leased> {
  leased: L[];
  /** Ms until there may be more; 0: perhaps now; Infinity: nothing is known, and `watch` tells. */
  nextInMs: number;
}

/**
 * `again`: due once more after the delay, answered for. `unanswered`: the same, and one redelivery more. `released`: it was
 * never handed over, so all is as before the lease.
 */
export type LeaseEnd =
  | { type: 'done' }
  | { type: 'again'; delayMs: number }
  | { type: 'unanswered'; delayMs: number }
  | { type: 'released' };
