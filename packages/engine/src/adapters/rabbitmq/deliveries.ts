/** What one channel has brought and nobody has settled yet. Pure. */
import type { ConsumeLimits } from '../../ports/broker.ts';

/** One word to the broker: about one message, or about all up to it. */
interface Settling {
  readonly tag: number;
  readonly isMultiple: boolean;
}

interface Delivery<T> {
  readonly message: T;
  readonly bytes: number;
  isHeld: boolean;
}

export class Deliveries<T> {
  readonly #limits: ConsumeLimits;
  /** By tag, which the broker counts up: the oldest stands first. */
  readonly #unsettled = new Map<number, Delivery<T>>();
  readonly #held: number[] = [];
  #handedCount = 0;
  #handedBytes = 0;
  #heldBytes = 0;
  #isFull = false;

  constructor(limits: ConsumeLimits) {
    this.#limits = limits;
  }

  /**
   * `hand`: it may be handed over now. `hold`: it has to wait until others are settled. `back`: too much waits already, since
   * messages grew faster than the prefetch could shrink. It is nobody's then, and comes again after the channel.
   */
  receive(tag: number, message: T, bytes: number): 'hand' | 'hold' | 'back' {
    if (this.#held.length === 0 && !this.#isFull && this.#hasRoom(bytes)) {
      this.#unsettled.set(tag, { message, bytes, isHeld: false });
      this.#hand(bytes);
      return 'hand';
    }
    const isTooMuch = this.#held.length > 0 && this.#heldBytes + bytes > this.#limits.maxBytes;
    // And all after it: they keep their order, and no word about one of them reaches one before it.
    if (isTooMuch || this.#isFull) {
      this.#isFull = true;
      return 'back';
    }
    this.#unsettled.set(tag, { message, bytes, isHeld: true });
    this.#held.push(tag);
    this.#heldBytes += bytes;
    return 'hold';
  }

  /** The next one that waited and may be handed over now. */
  next(): T | undefined {
    const [tag] = this.#held;
    const delivery = tag === undefined ? undefined : this.#unsettled.get(tag);
    if (!delivery || !this.#hasRoom(delivery.bytes)) return undefined;
    this.#held.shift();
    this.#heldBytes -= delivery.bytes;
    delivery.isHeld = false;
    this.#hand(delivery.bytes);
    return delivery.message;
  }

  /** What to tell the broker so that these are settled, in as few words as possible. One that is settled already is left out. */
  settle(tags: readonly number[]): Settling[] {
    const settled = tags.filter((tag) => this.#settle(tag)).sort((a, b) => a - b);
    const [oldest = Infinity] = this.#unsettled.keys();
    const count = settled.findIndex((tag) => tag > oldest);
    const prefix = settled.slice(0, count === -1 ? settled.length : count);
    const rest = settled.slice(prefix.length).map((tag) => ({ tag, isMultiple: false }));
    const last = prefix.at(-1);
    return last === undefined ? rest : [{ tag: last, isMultiple: prefix.length > 1 }, ...rest];
  }

  /** Nothing is unsettled, handed over or not. */
  get isEmpty(): boolean {
    return this.#unsettled.size === 0;
  }

  /** What was handed over and nobody has settled. */
  *handed(): Iterable<T> {
    for (const { message, isHeld } of this.#unsettled.values()) if (!isHeld) yield message;
  }

  #settle(tag: number): boolean {
    const delivery = this.#unsettled.get(tag);
    if (!delivery || delivery.isHeld) return false;
    this.#unsettled.delete(tag);
    this.#handedCount -= 1;
    this.#handedBytes -= delivery.bytes;
    return true;
  }

  #hand(bytes: number): void {
    this.#handedCount += 1;
    this.#handedBytes += bytes;
  }

  /** There is always room for one. */
  #hasRoom(bytes: number): boolean {
    if (this.#handedCount === 0) return true;
    const { maxMessages, maxBytes } = this.#limits;
    return this.#handedCount < maxMessages && this.#handedBytes + bytes <= maxBytes;
  }
}
