/** Counts over time for many rows, in any order of times and in bounded memory. */

const FIRST_STEP_MS = 1000;
const MAX_STEPS = 256;
const MINUTE_MS = 60_000;

/** The time that a grid covers, in steps of equal width. */
interface TimeSpan {
  /** When the first step begins. */
  fromMs: number;
  stepMs: number;
  steps: number;
}

/** One row of a grid. */
export class TimeRow {
  /** Counts by the number of the step since the epoch. */
  counts = new Map<number, number>();
}

/**
 * All rows share one axis. It starts with steps of a second. Steps become twice as wide whenever there would be more than
 * 256 of them, so a row never holds more than 256 numbers.
 */
export class TimeGrid {
  readonly #rows: TimeRow[] = [];
  #stepMs = FIRST_STEP_MS;
  #first = Infinity;
  #last = -Infinity;

  row(): TimeRow {
    const row = new TimeRow();
    this.#rows.push(row);
    return row;
  }

  /** Makes the axis long enough for this moment. */
  see(atMs: number): void {
    const step = Math.floor(atMs / this.#stepMs);
    if (step >= this.#first && step <= this.#last) return;
    this.#first = Math.min(this.#first, step);
    this.#last = Math.max(this.#last, step);
    while (this.#last - this.#first >= MAX_STEPS) this.#widen();
  }

  /** Counts one at a moment that `see` was told of. */
  count(row: TimeRow, atMs: number): void {
    const step = Math.floor(atMs / this.#stepMs);
    row.counts.set(step, (row.counts.get(step) ?? 0) + 1);
  }

  get span(): TimeSpan {
    if (this.#first > this.#last) return { fromMs: 0, stepMs: this.#stepMs, steps: 0 };
    const steps = this.#last - this.#first + 1;
    return { fromMs: this.#first * this.#stepMs, stepMs: this.#stepMs, steps };
  }

  /** The counts of a row, step by step. */
  read({ counts }: TimeRow): number[] {
    return Array.from({ length: this.span.steps }, (_, i) => counts.get(this.#first + i) ?? 0);
  }

  #widen(): void {
    this.#stepMs *= 2;
    this.#first = Math.floor(this.#first / 2);
    this.#last = Math.floor(this.#last / 2);
    for (const row of this.#rows) {
      const counts = new Map<number, number>();
      for (const [step, count] of row.counts) {
        const wider = Math.floor(step / 2);
        counts.set(wider, (counts.get(wider) ?? 0) + count);
      }
      row.counts = counts;
    }
  }
}

/** The most in any minute. Where a step is longer than a minute: the most in a step, as a mean per minute. */
export function peakPerMinute(load: readonly number[], stepMs: number): number {
  const steps = Math.max(1, Math.floor(MINUTE_MS / stepMs));
  let sum = 0;
  let most = 0;
  for (const [i, count] of load.entries()) {
    sum += count - (i >= steps ? load[i - steps]! : 0);
    most = Math.max(most, sum);
  }
  return stepMs <= MINUTE_MS ? most : (most * MINUTE_MS) / stepMs;
}
