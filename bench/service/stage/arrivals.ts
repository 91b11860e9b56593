/** Counts what arrives: each message is to come, and once. */
export class Arrivals {
  #seen = new Set<number>();
  #expected = 0;
  #duplicates = 0;
  #finish: () => void = () => undefined;

  get count(): number {
    return this.#seen.size;
  }

  get duplicates(): number {
    return this.#duplicates;
  }

  /** Resolves when messages 0 to `count` have come. From now on: what came before is forgotten. */
  expect(count: number, withinMs: number): Promise<void> {
    this.#seen = new Set();
    this.#expected = count;
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(new Error(`${this.count} of ${count} messages have come in ${withinMs} ms`));
      const timer = setTimeout(late, withinMs);
      this.#finish = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  take(n: number): void {
    if (this.#seen.has(n)) this.#duplicates += 1;
    this.#seen.add(n);
    if (this.#seen.size === this.#expected) this.#finish();
  }
}
