/** What may end a delivery before it is over: its time, or whoever runs it. One timer and one listener for all its steps. */
import type { Run } from '../../ports/delivery.ts';

const MARGIN_MS = 50;

export type Ending = 'timeout' | 'abort';

export class Limit {
  ended: Ending | undefined;
  /** Called once when it ends; each step puts its own here. */
  onEnd: (() => void) | undefined;
  readonly #signal: AbortSignal;
  readonly #endsAtMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(run: Run) {
    const { signal, remainingMs: wholeMs } = run;
    // Whoever runs it gives up when the time is over. What is known here, such as a status, is told before.
    const remainingMs = wholeMs - Math.min(MARGIN_MS, wholeMs / 20);
    this.#signal = signal;
    this.#endsAtMs = performance.now() + remainingMs;
    if (signal.aborted) this.#onAbort();
    else if (remainingMs <= 0) this.ended = 'timeout';
    else {
      signal.addEventListener('abort', this.#onAbort);
      this.#setTimer(remainingMs);
    }
  }

  /** No longer than this from now on. */
  shorten(ms: number): void {
    const leftMs = this.#endsAtMs - performance.now();
    if (this.ended || leftMs <= ms) return;
    clearTimeout(this.#timer);
    this.#setTimer(ms);
  }

  /** Undefined where it ended before that. */
  async race<T>(work: Promise<T>): Promise<T | undefined> {
    if (this.ended) return undefined;
    const ended = new Promise<undefined>((resolve) => {
      this.onEnd = () => resolve(undefined);
    });
    const result = await Promise.race([work, ended]);
    this.onEnd = undefined;
    return result;
  }

  free(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.onEnd = undefined;
  }

  readonly #onAbort = (): void => {
    const { name } = Object(this.#signal.reason) as { name?: unknown };
    this.#end(name === 'TimeoutError' ? 'timeout' : 'abort');
  };

  #setTimer(ms: number): void {
    // A longer timer would fire at once.
    this.#timer = setTimeout(() => this.#end('timeout'), Math.min(ms, 2 ** 31 - 1));
  }

  #end(ending: Ending): void {
    if (this.ended) return;
    this.ended = ending;
    this.onEnd?.();
  }
}
