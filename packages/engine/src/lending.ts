import type { Appetite } from './appetite.ts';
import type { Host } from './host.ts';
import { pause } from './patience.ts';
import type { Policies } from './policies.ts';
import type { Acted, Leased, Loan } from './ports/inbox.ts';

/** A bulk replay waits so long for room at most. Then it goes on without: others may have what it sends. */
const WAIT_MS = 25;

const WOKEN = 'woken';

interface LendingParts {
  host: Host;
  appetite: Appetite;
  policies: Policies;
  leaseMs: number;
  newLease: () => number;
  /** Whether anything may be leased now. */
  isOpen: () => boolean;
  take: (leased: Leased, leaseUntil: number) => void;
  /** Something may have been leased that nobody knows of. */
  lost: (loan: Loan) => void;
}

/** Has bulk replays lease by their own write what can be delivered here at once: it need not be claimed then. */
export class Lending {
  readonly #parts: LendingParts;
  /** Those that are under way. */
  readonly #loans = new Map<Loan, Promise<unknown>>();
  #waiting: AbortController | undefined;

  constructor(parts: LendingParts) {
    this.#parts = parts;
  }

  get isBusy(): boolean {
    return this.#loans.size > 0;
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    this.wake();
    await Promise.all(this.#loans.values());
  }

  /** There may be room. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.abort(WOKEN);
  }

  /** How many of so many a bulk replay should send now: as many as can be lent, where that is worth it. */
  async lendable(count: number): Promise<number> {
    const { host, isOpen } = this.#parts;
    const endAt = host.clock.monotonic() + WAIT_MS;
    while (isOpen()) {
      const { limit, worth, isSoonMore } = this.#room();
      if (count <= worth) break;
      if (limit >= worth) return Math.min(count, limit);
      const leftMs = endAt - host.clock.monotonic();
      if (!isSoonMore || leftMs <= 0) break;
      this.#waiting ??= new AbortController();
      await pause(host, leftMs, this.#waiting.signal);
    }
    return count;
  }

  async lend(act: (loan?: Loan) => Promise<Acted | undefined>): Promise<Acted | undefined> {
    const { leaseMs, newLease, isOpen } = this.#parts;
    const { lanes, limit, maxBytesEach } = this.#room();
    if (!isOpen() || limit === 0) return act();
    const loan: Loan = { lanes, limit, maxBytesEach, lease: newLease(), leaseMs };
    const lending = this.#lend(act, loan);
    this.#loans.set(
      loan,
      lending.catch(() => undefined),
    );
    return lending;
  }

  async #lend(
    act: (loan: Loan) => Promise<Acted | undefined>,
    loan: Loan,
  ): Promise<Acted | undefined> {
    const leaseUntil = this.#parts.host.clock.monotonic() + loan.leaseMs;
    let isTaken = false;
    try {
      const acted = await act(loan);
      // Where nothing was done, it may have been by a try whose answer was lost.
      if (!acted) return undefined;
      isTaken = !acted.leased || (await this.#take(acted.leased, leaseUntil));
      return acted;
    } finally {
      this.#loans.delete(loan);
      if (!isTaken) this.#parts.lost(loan);
    }
  }

  /** Not delivered by a wrong policy: it goes back instead, as what was claimed does. */
  async #take(leased: Leased, leaseUntil: number): Promise<boolean> {
    const { host, policies, take } = this.#parts;
    try {
      await policies.know(leased.tasks);
    } catch (error) {
      host.log.warn({ err: error }, 'replayed, and given back: a policy could not be read');
      return false;
    }
    take(leased, leaseUntil);
    return true;
  }

  #room() {
    let count = 0;
    let bytes = 0;
    for (const { limit, maxBytesEach } of this.#loans.keys()) {
      count += limit;
      bytes += limit * maxBytesEach;
    }
    return this.#parts.appetite.lendable({ count, bytes });
  }
}
