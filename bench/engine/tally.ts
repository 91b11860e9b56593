import type { Work } from './player.ts';

/** The trivial handler of all contestants, which sees to it that each task is done, once, and as it was stored. */
export class Tally {
  /** How late each task was, in the order of their starts. */
  readonly lateMs: number[] = [];
  /** Resolves when every task was started. */
  readonly all: Promise<void>;
  #startedAt = Number.NaN;
  #sum = 0;
  readonly #expected: number;
  #finish: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(expected: number) {
    this.#expected = expected;
    this.all = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
  }

  /** The time counts from now on, or from the first call before. */
  begin(): void {
    if (Number.isNaN(this.#startedAt)) this.#startedAt = performance.now();
  }

  did({ n, dueAtMs }: Work): void {
    this.begin();
    this.lateMs.push(Date.now() - dueAtMs);
    this.#sum += n;
    if (this.lateMs.length < this.#expected) return;
    if (this.lateMs.length > this.#expected) this.#fail(new Error('more was done than was stored'));
    else if (this.#sum === (this.#expected * (this.#expected - 1)) / 2) this.#finish();
    else this.#fail(new Error('something else was done than was stored'));
  }

  /** The ms since it began, or since the first was started. */
  get elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }
}

/** Asks again until it is so. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
  }
}
