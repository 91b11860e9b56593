/** How many deliveries may be on the wire at once, per origin and in all. Who waits is served in turn. */
export class Slots {
  readonly #max: number;
  readonly #maxPerOrigin: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** By origin, the one served last at the end. A set keeps the order and lets one leave early. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(max: number, maxPerOrigin: number) {
    this.#max = max;
    this.#maxPerOrigin = maxPerOrigin;
  }

  /** False where there is none: then `wait`. */
  take(origin: string): boolean {
    const taken = this.#takenBy.get(origin) ?? 0;
    if (this.#taken >= this.#max || taken >= this.#maxPerOrigin) return false;
    this.#taken++;
    this.#takenBy.set(origin, taken + 1);
    return true;
  }

  /** Calls back once, with the slot taken. */
  wait(origin: string, granted: () => void): void {
    const queue = this.#waiting.get(origin);
    if (queue) queue.add(granted);
    else this.#waiting.set(origin, new Set([granted]));
  }

  /** It waits no more, and gets none. */
  leave(origin: string, granted: () => void): void {
    const queue = this.#waiting.get(origin);
    if (queue?.delete(granted) && queue.size === 0) this.#waiting.delete(origin);
  }

  release(origin: string): void {
    const taken = this.#takenBy.get(origin) ?? 0;
    if (taken > 1) this.#takenBy.set(origin, taken - 1);
    else this.#takenBy.delete(origin);
    this.#taken--;
    this.#grantNext();
  }

  #grantNext(): void {
    for (const [origin, queue] of this.#waiting) {
      const [next] = queue;
      if (!next || !this.take(origin)) continue;
      queue.delete(next);
      // To the back, so that an origin with a long queue does not keep the others waiting.
      this.#waiting.delete(origin);
      if (queue.size > 0) this.#waiting.set(origin, queue);
      next();
      return;
    }
  }
}
