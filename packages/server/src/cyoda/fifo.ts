/** First in, first out, at constant cost. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    // Let go of, so that it is not kept until the next tidying.
    this.#items[this.#head] = undefined as T;
    this.#head += 1;
    if (this.#head === this.#items.length || this.#head > TIDY_AT) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}

const TIDY_AT = 4096;
