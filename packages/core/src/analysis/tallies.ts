/** Counts with bounds: by name, and by attempt. */

export const OTHER = '(other)';

/** Counts by name. Names past the limit are counted together as `(other)`. */
export class NameCounts {
  readonly #counts = new Map<string, number>();
  readonly #maxNames: number;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  add(name: string): void {
    const known = this.#counts.get(name);
    if (known !== undefined) this.#counts.set(name, known + 1);
    else if (this.#counts.size < this.#maxNames) this.#counts.set(name, 1);
    else this.#counts.set(OTHER, (this.#counts.get(OTHER) ?? 0) + 1);
  }

  /** The most frequent first; equally frequent ones by name. */
  sorted(): { name: string; count: number }[] {
    return [...this.#counts]
      .map(([name, count]) => ({ name, count }))
      .toSorted((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
  }
}

/** Attempts after this one are counted as this one. */
export const MAX_ATTEMPT = 64;

/** Numbers by attempt, 1 to 64. */
export class AttemptCounts {
  readonly #counts: number[] = [];

  add(attempt: number, amount = 1): void {
    const n = Math.min(attempt, MAX_ATTEMPT);
    this.#counts[n] = this.of(n) + amount;
  }

  of(attempt: number): number {
    return this.#counts[attempt] ?? 0;
  }

  get total(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** The last attempt that was counted; 0: none was. */
  get last(): number {
    return Math.max(0, this.#counts.length - 1);
  }
}
