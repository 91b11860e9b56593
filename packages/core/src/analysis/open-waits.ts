import type { AttemptCounts } from './tallies.ts';

interface Wait {
  dueMs: number;
  retried: AttemptCounts;
  attempt: number;
}

const MAX_WAITS = 100_000;

/**
 * Retries whose next attempt is due after the newest event that was read. At the end of a trail they are neither failed
 * nor recovered: they wait. Others are forgotten, so that only what is waiting takes memory.
 */
export class OpenWaits {
  #waits: Wait[] = [];
  #newestMs = -Infinity;
  #sweepAt = 1000;

  see(atMs: number): void {
    if (atMs > this.#newestMs) this.#newestMs = atMs;
  }

  add(wait: Wait): void {
    if (wait.dueMs <= this.#newestMs) return;
    this.#waits.push(wait);
    if (this.#waits.length < this.#sweepAt) return;
    this.#sweep();
    // More than this many cannot be told apart from those that recovered: they are left out.
    if (this.#waits.length > MAX_WAITS) this.#waits.length = MAX_WAITS;
    this.#sweepAt = Math.max(1000, 2 * this.#waits.length);
  }

  /** How many wait after each attempt, of those that belong to these counts. */
  waiting(retried: AttemptCounts): (attempt: number) => number {
    this.#sweep();
    const counts = new Map<number, number>();
    for (const wait of this.#waits) {
      if (wait.retried !== retried) continue;
      counts.set(wait.attempt, (counts.get(wait.attempt) ?? 0) + 1);
    }
    return (attempt) => counts.get(attempt) ?? 0;
  }

  #sweep(): void {
    this.#waits = this.#waits.filter(({ dueMs }) => dueMs > this.#newestMs);
  }
}
