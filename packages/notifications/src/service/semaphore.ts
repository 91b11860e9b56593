/** Limits how many deliveries of a lane may be in flight at once. */
export class Semaphore {
  #free: number;
  #waiting: (() => void)[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  /** Takes as many permits as are free, at most `wanted`. Waits while there is none. */
  async acquire(wanted: number): Promise<number> {
    while (this.#free === 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    const taken = Math.min(wanted, this.#free);
    this.#free -= taken;
    return taken;
  }

  release(count: number): void {
    if (count === 0) return;
    this.#free += count;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
