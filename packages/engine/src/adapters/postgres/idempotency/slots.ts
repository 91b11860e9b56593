import { EngineError } from '../../../errors.ts';

/** So many at once; others wait for their turn, and no longer than they may. */
export class Slots {
  readonly #most: number;
  #taken = 0;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves with what gives the slot back. */
  async take(waitMs: number, signal: AbortSignal): Promise<() => void> {
    if (this.#taken >= this.#most) await this.#wait(waitMs, signal);
    else this.#taken += 1;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#give();
    };
  }

  /** To the next one who waits, or to whoever comes. */
  #give(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#taken -= 1;
  }

  #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(turn);
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      };
      const turn = () => {
        leave();
        resolve();
      };
      const abort = () => {
        leave();
        reject(signal.reason as Error);
      };
      const timer = setTimeout(() => {
        leave();
        reject(allTaken(this.#most, waitMs));
      }, waitMs);
      signal.addEventListener('abort', abort, { once: true });
      this.#waiting.add(turn);
    });
  }
}

function allTaken(most: number, waitMs: number): EngineError {
  return new EngineError(
    'STORE_UNAVAILABLE',
    `All ${most} connections for transactions of handlers were taken for ${Math.round(waitMs)} ms. Raise maxConnections or the max of the pool, or lower the concurrency of idempotent handlers.`,
  );
}
