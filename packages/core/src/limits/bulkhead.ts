import { ConfigError, type Fault } from '../errors.ts';
import { type Fields, readFields } from '../options/fields.ts';

export interface BulkheadOptions {
  /** Attempts that may run at once. */
  maxConcurrent: number;
  /** Attempts that may wait for a place; 0 by default, and then a call that finds no place fails at once. */
  maxQueue?: number;
}

/**
 * Bounds how much runs at once over all calls that share it, so that one slow dependency cannot take every connection of a
 * process. An attempt holds a place while it runs, not while its call waits for the next one.
 */
export interface Bulkhead {
  readonly maxConcurrent: number;
  readonly maxQueue: number;
  readonly running: number;
  readonly queued: number;
  /** A place for one attempt, to be left when the attempt is over; undefined where the queue is full too. */
  enter(): BulkheadPlace | undefined;
  /** Why there is no place, in a sentence for the error of an attempt that found none. */
  toString(): string;
}

export interface BulkheadPlace {
  /** Resolves when it is this place's turn; undefined where that is now. */
  readonly turn: Promise<void> | undefined;
  /** Frees the place, or leaves the queue. Once is enough, more does no harm. */
  leave(): void;
}

const bulkheadFields = {
  maxConcurrent: { kind: 'integer', min: 1, max: 1_000_000 },
  maxQueue: { kind: 'integer', min: 0, max: 1_000_000, default: 0 },
} as const satisfies Fields;

/**
 * @example
 * const bulkhead = createBulkhead({ maxConcurrent: 10, maxQueue: 100 });
 * await retry(() => query(sql), policy, { bulkhead });
 */
export function createBulkhead(options: BulkheadOptions): Bulkhead {
  const faults: Fault[] = [];
  const values = readFields(options, bulkheadFields, Object.keys(bulkheadFields), '', faults);
  const { maxConcurrent, maxQueue = 0 } = values as Partial<BulkheadOptions>;
  if (maxConcurrent === undefined && faults.length === 0) {
    const message = 'is missing: how many attempts may run at once?';
    faults.push({ path: 'maxConcurrent', code: 'INVALID_VALUE', message });
  }
  if (faults.length > 0 || maxConcurrent === undefined)
    throw new ConfigError('INVALID_CONFIG', 'The bulkhead has faults:', faults);
  return new Places(maxConcurrent, maxQueue);
}

class Places implements Bulkhead {
  readonly maxConcurrent: number;
  readonly maxQueue: number;
  running = 0;
  /** In the order they came. A set, so that one who gives up leaves from the middle at no cost. */
  readonly #queue = new Set<() => void>();

  constructor(maxConcurrent: number, maxQueue: number) {
    this.maxConcurrent = maxConcurrent;
    this.maxQueue = maxQueue;
  }

  get queued(): number {
    return this.#queue.size;
  }

  // Here and not in the loop, so that a bundle without a bulkhead does not carry it.
  toString(): string {
    return `the bulkhead is full (${this.running} running, ${this.queued} queued). Raise its maxConcurrent or maxQueue, or call later.`;
  }

  enter(): BulkheadPlace | undefined {
    if (this.running < this.maxConcurrent) {
      this.running += 1;
      return this.#place(undefined, undefined);
    }
    if (this.#queue.size >= this.maxQueue) return undefined;
    let begin!: () => void;
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    this.#queue.add(begin);
    return this.#place(turn, begin);
  }

  #place(turn: Promise<void> | undefined, begin: (() => void) | undefined): BulkheadPlace {
    let isHeld = true;
    return {
      turn,
      leave: () => {
        if (!isHeld) return;
        isHeld = false;
        if (!begin || !this.#queue.delete(begin)) this.#pass();
      },
    };
  }

  /** A place that was left goes to the first in the queue. */
  #pass(): void {
    for (const begin of this.#queue) {
      this.#queue.delete(begin);
      return begin();
    }
    this.running -= 1;
  }
}
