import { type Appetite, WORTH_LENDING } from './appetite.ts';
import type { Host } from './host.ts';
import { pause } from './patience.ts';
import type { Policies } from './policies.ts';
import type { Acted, Leased, Loan } from './ports/inbox.ts';

/** A bulk replay waits so long for room at most. Then it goes on without: other instances may have what it sends. */
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
  /** A loan is over, whatever came of it. */
  ended: () => void;
}

/** Has bulk replays lease by their own write what can be delivered here at once, so that it need not be claimed. */
export class Lending {
  readonly #parts: LendingParts;
  readonly #underway = new Set<Promise<unknown>>();
  #waiting: AbortController | undefined;

  constructor(parts: LendingParts) {
    this.#parts = parts;
  }

  get isBusy(): boolean {
    return this.#underway.size > 0;
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    this.wake();
    await Promise.all(this.#underway);
  }

  /** There may be room. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.abort(WOKEN);
  }

  /** How many of so many a bulk replay should send now: as many as can be lent, where that is worth it. */
  async batchSize(count: number): Promise<number> {
    const { host, appetite, isOpen } = this.#parts;
    const endAt = host.clock.monotonic() + WAIT_MS;
    if (count <= WORTH_LENDING) return count;
    while (isOpen()) {
      const { limit, isFast } = appetite.roomToLend(host.clock.monotonic());
      if (limit >= WORTH_LENDING) return Math.min(count, limit);
      const leftMs = endAt - host.clock.monotonic();
      if (!isFast || leftMs <= 0) break;
      this.#waiting ??= new AbortController();
      await pause(host, leftMs, this.#waiting.signal);
    }
    return count;
  }

  /** Has it act with a loan, if there is room for one, and takes what was leased. */
  async lend(act: (loan?: Loan) => Promise<Acted | undefined>): Promise<Acted | undefined> {
    const { host, appetite, leaseMs, newLease, isOpen } = this.#parts;
    const { lanes, limit, maxBytesEach } = appetite.roomToLend(host.clock.monotonic());
    if (!isOpen() || limit === 0) return act();
    const loan: Loan = { lanes, limit, maxBytesEach, lease: newLease(), leaseMs };
    appetite.loans.add(loan);
    const lending = this.#lend(act, loan);
    const over = lending
      .catch(() => undefined)
      .then(() => {
        appetite.loans.delete(loan);
        this.#underway.delete(over);
        this.#parts.ended();
      });
    this.#underway.add(over);
    return lending;
  }

  async #lend(
    act: (loan: Loan) => Promise<Acted | undefined>,
    loan: Loan,
  ): Promise<Acted | undefined> {
    const { host, policies, take, lost } = this.#parts;
    const leaseUntil = host.clock.monotonic() + loan.leaseMs;
    let acted: Acted | undefined;
    try {
      acted = await act(loan);
    } catch (error) {
      lost(loan);
      throw error;
    }
    if (!acted?.leased) return acted;
    try {
      // Not delivered by a wrong policy: it goes back instead, as what was claimed does.
      await policies.know(acted.leased.tasks);
      take(acted.leased, leaseUntil);
    } catch (error) {
      host.log.warn({ err: error }, 'replayed, and given back: a policy could not be read');
      lost(loan);
    }
    return acted;
  }
}
