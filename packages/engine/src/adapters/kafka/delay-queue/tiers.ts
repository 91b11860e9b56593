/** Which topic an entry waits in. Pure. */

export interface Tier {
  readonly topic: string;
  /** How long every record stays in it. */
  readonly holdMs: number;
}

/**
 * Topics of fixed delays, each twice the one before. All records of a topic stay there for the same time, so the first one
 * is ready first, and the rest need not be looked at. The last part of a wait is spent in `due`, whose reader keeps it in
 * memory.
 */
export class Tiers {
  readonly due: string;
  /** From the shortest to the longest. */
  readonly waits: readonly Tier[];
  readonly #marginMs: number;

  constructor(prefix: string, unitMs: number, count: number) {
    this.due = `${prefix}.due`;
    this.waits = Array.from({ length: count }, (_, i) => ({
      topic: `${prefix}.wait-${2 ** i}`,
      holdMs: unitMs * 2 ** i,
    }));
    // Time to go on to the next topic, so that an entry is in `due` before it is due.
    this.#marginMs = Math.min(2000, unitMs / 4);
  }

  get topics(): string[] {
    return [this.due, ...this.waits.map(({ topic }) => topic)];
  }

  /** The longest wait that ends before the entry is due. */
  topicFor(leftMs: number): string {
    return this.#waitFor(leftMs)?.topic ?? this.due;
  }

  /** How often an entry is written, from its schedule to its handover, when each hop is in time. */
  writesOf(delayMs: number): number {
    let leftMs = delayMs;
    let writes = 1;
    for (let wait = this.#waitFor(leftMs); wait; wait = this.#waitFor(leftMs)) {
      leftMs -= wait.holdMs;
      writes += 1;
    }
    return writes;
  }

  #waitFor(leftMs: number): Tier | undefined {
    return this.waits.findLast(({ holdMs }) => holdMs <= leftMs - this.#marginMs);
  }
}
