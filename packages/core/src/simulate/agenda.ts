/**
 * Whose turn is next: a binary heap of clients by time, and at the same time by number, so that the order is
 * always the same. A client stands in it at most once.
 */
export class Agenda {
  readonly #heap: Int32Array;
  readonly #times: Float64Array;
  #size = 0;

  constructor(clients: number) {
    this.#heap = new Int32Array(clients);
    this.#times = new Float64Array(clients);
  }

  /** The time of the next turn; Infinity when there is none. */
  get nextAt(): number {
    return this.#size === 0 ? Infinity : this.#times[this.#heap[0]!]!;
  }

  get size(): number {
    return this.#size;
  }

  add(client: number, at: number): void {
    this.#times[client] = at;
    let i = this.#size++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = this.#heap[parent]!;
      if (this.#isBefore(above, client)) break;
      this.#heap[i] = above;
      i = parent;
    }
    this.#heap[i] = client;
  }

  /** Takes out the client whose turn it is. Only while there is one. */
  take(): number {
    const first = this.#heap[0]!;
    const client = this.#heap[--this.#size]!;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#isBefore(this.#heap[child + 1]!, this.#heap[child]!)) {
        child += 1;
      }
      const below = this.#heap[child]!;
      if (this.#isBefore(client, below)) break;
      this.#heap[i] = below;
      i = child;
    }
    this.#heap[i] = client;
    return first;
  }

  #isBefore(a: number, b: number): boolean {
    const difference = this.#times[a]! - this.#times[b]!;
    return difference < 0 || (difference === 0 && a < b);
  }
}
