/**
 * Gathers single calls into batches: while some are under way the next collect. So a lone call goes at once, and
 * many go together, without a timer.
 */
export class Coalescer<T, R> {
  readonly #work: (items: readonly T[]) => Promise<readonly R[]>;
  readonly #limits: CoalescerLimits<T>;
  #waiting: Waiting<T, R>[] = [];
  #underway = 0;
  #scheduled = false;

  /** `work` gives one result per item, or rejects for all of them. */
  constructor(work: (items: readonly T[]) => Promise<readonly R[]>, limits: CoalescerLimits<T>) {
    this.#work = work;
    this.#limits = limits;
  }

  /** How many calls are not answered yet. */
  size = 0;

  add(item: T): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.size += 1;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return;
    if (this.#underway >= this.#limits.maxUnderway) return;
    this.#scheduled = true;
    this.#limits.defer(() => {
      this.#scheduled = false;
      const batch = this.#take();
      this.#underway += 1;
      void this.#run(batch);
      this.#schedule();
    });
  }

  #take(): Waiting<T, R>[] {
    const { maxItems, maxBytes, bytesOf } = this.#limits;
    let count = 0;
    let bytes = 0;
    while (count < this.#waiting.length && count < maxItems) {
      bytes += bytesOf(this.#waiting[count]!.item);
      if (count > 0 && bytes > maxBytes) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #run(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await this.#work(batch.map(({ item }) => item));
      for (const [i, { resolve }] of batch.entries()) resolve(results[i]!);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#underway -= 1;
    this.size -= batch.length;
    this.#schedule();
  }
}

interface CoalescerLimits<T> {
  maxItems: number;
  maxBytes: number;
  bytesOf: (item: T) => number;
  /** Batches at once. */
  maxUnderway: number;
  defer: (callback: () => void) => void;
}

interface Waiting<T, R> {
  item: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}
