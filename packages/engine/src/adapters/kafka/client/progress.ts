/** How far the records of one partition are done. Pure. */

/**
 * Records come in the order of their offsets and are done in any order. What is committed is the offset before which all
 * are done: never past one that is not.
 */
export class Progress {
  readonly #open = new Set<number>();
  #next: number;
  #committed: number;

  /** `start`: the offset of the first record that is to be read. */
  constructor(start: number) {
    this.#next = start;
    this.#committed = start;
  }

  /** The offset that is to be read next. */
  get next(): number {
    return this.#next;
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** One came that has to be answered for. */
  add(offset: number): void {
    this.#open.add(offset);
    this.#next = offset + 1;
  }

  /** Nothing before this offset has to be read any more: markers and gaps too take up offsets. */
  advance(next: number): void {
    if (next > this.#next) this.#next = next;
  }

  /** The log begins later than this: what was before it is gone. */
  restart(next: number): void {
    this.#open.clear();
    this.#next = next;
  }

  /** False: it was done before, or never came. */
  done(offset: number): boolean {
    return this.#open.delete(offset);
  }

  /** Where a reader has to begin who comes after this one. */
  get safe(): number {
    for (const offset of this.#open) return offset;
    return this.#next;
  }

  /** What should be committed now; undefined when that has been done. */
  get uncommitted(): number | undefined {
    const { safe } = this;
    return safe === this.#committed ? undefined : safe;
  }

  committed(offset: number): void {
    this.#committed = offset;
  }

  get committedOffset(): number {
    return this.#committed;
  }
}
