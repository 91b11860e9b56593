/** How many messages the broker may send ahead. It counts messages, while memory counts bytes: their mean size is between the two. */
import type { ConsumeLimits } from '../../ports/broker.ts';

/** What messages are taken for before one was seen. */
const FIRST_BYTES = 64 * 1024;
/** What a message costs beside its payload. */
const OVERHEAD_BYTES = 256;
const MAX_PREFETCH = 65_535;
const MAX_GROWTH = 8;
/** The mean follows about so many messages. */
const MEMORY = 32;

export class Prefetch {
  readonly #limits: ConsumeLimits;
  #meanBytes = FIRST_BYTES;
  #seen = 0;
  #current: number;

  constructor(limits: ConsumeLimits) {
    this.#limits = limits;
    this.#current = this.#wanted();
  }

  see(bytes: number): void {
    const size = bytes + OVERHEAD_BYTES;
    this.#seen = Math.min(this.#seen + 1, MEMORY);
    this.#meanBytes += (size - this.#meanBytes) / this.#seen;
  }

  /** More has come than there is room for: what is coming counts, not what was. */
  overflow(bytes: number): void {
    this.#meanBytes = Math.max(this.#meanBytes, bytes + OVERHEAD_BYTES);
  }

  /** Another value costs time, so it is not asked for because of little. */
  get isFarOff(): boolean {
    const wanted = this.#wanted();
    return wanted >= this.#current * 2 || wanted * 2 <= this.#current;
  }

  /** For the next consumer. It grows in steps: a few small messages say little of those to come. */
  next(): number {
    this.#current = Math.min(this.#wanted(), this.#current * MAX_GROWTH);
    return this.#current;
  }

  #wanted(): number {
    const fitting = Math.floor(this.#limits.maxBytes / this.#meanBytes);
    return Math.max(1, Math.min(this.#limits.maxMessages, MAX_PREFETCH, fitting));
  }
}
