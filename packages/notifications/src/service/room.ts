/** The places of a lane: how many deliveries may be under way at once. */
export class Room {
  #free: number;
  #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /** Takes as many places as are free, at most `wanted`. Waits while there is none. */
  async take(wanted: number): Promise<number> {
    while (this.#free === 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    const taken = Math.min(wanted, this.#free);
    this.#free -= taken;
    return taken;
  }

  leave(count: number): void {
    if (count === 0) return;
    this.#free += count;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
