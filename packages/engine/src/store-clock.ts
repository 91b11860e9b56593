import type { Clock } from 'redrive';

/** Two clocks may drift apart by this much of the time that passes. */
const DRIFT = 0.0005;
/** A store may tell whole ms only. */
const GRAIN_MS = 1;

/**
 * The store's time, as its answers tell it. One answer that lay about in this process for a while must not set the clock
 * back: the true distance lies between what the sending and what the receipt of each answer allow, so between all of them.
 */
export class StoreClock {
  readonly #clock: Clock;
  /** The store's time minus the local monotonic one: at least, and at most. */
  #leastMs = NaN;
  #mostMs = NaN;
  #sawAt = NaN;
  /** When the newest of the questions was asked whose answers are known. */
  #sentAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Never ahead of the store's time, but for what clocks drift. */
  get nowMs(): number {
    return Number.isNaN(this.#leastMs)
      ? this.#clock.now()
      : this.#leastMs + this.#clock.monotonic();
  }

  /** How far `nowMs` may be behind. */
  get doubtMs(): number {
    return Number.isNaN(this.#mostMs) ? Infinity : this.#mostMs - this.#leastMs;
  }

  /** How far the local wall clock is ahead of the store's, as far as that is certain; undefined: no answer came yet. */
  get skewMs(): number | undefined {
    if (Number.isNaN(this.#leastMs)) return undefined;
    const now = this.#clock.now() - this.#clock.monotonic();
    // What the two clocks drift apart since the last answer is no skew.
    const driftMs = (this.#clock.monotonic() - this.#sawAt) * DRIFT;
    const [leastMs, mostMs] = [this.#leastMs - driftMs, this.#mostMs + driftMs];
    if (now > mostMs) return now - mostMs;
    // The local clock shows whole ms only, too.
    return Math.min(0, now + GRAIN_MS - leastMs);
  }

  /** Learns from an answer that just came, to what was asked at `sentAt`. */
  saw(nowMs: number, sentAt: number): void {
    const now = this.#clock.monotonic();
    const leastMs = nowMs - now;
    const mostMs = nowMs - sentAt + GRAIN_MS;
    const driftMs = (now - this.#sawAt) * DRIFT;
    const knownLeastMs = this.#leastMs - driftMs;
    const knownMostMs = this.#mostMs + driftMs;
    // False also at first. Where the two contradict each other, the store's clock was set: the newer one holds. An answer
    // may come after those to later questions; it may be from before the clock was set, and is not the newer one.
    const isSame = leastMs <= knownMostMs && knownLeastMs <= mostMs;
    if (!isSame && sentAt < this.#sentAt) return;
    this.#sentAt = Math.max(this.#sentAt, sentAt);
    this.#leastMs = isSame ? Math.max(leastMs, knownLeastMs) : leastMs;
    this.#mostMs = isSame ? Math.min(mostMs, knownMostMs) : mostMs;
    this.#sawAt = now;
  }
}
