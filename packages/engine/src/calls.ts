import { EngineError, isUnavailable, stoppedError } from './errors.ts';

/** The calls of users that are under way. A stop waits for them, since closing the store breaks them off. */
export class Calls {
  #underway = 0;
  #isOver = false;
  #whenIdle: (() => void) | undefined;
  readonly #stopping = new AbortController();

  /** Aborted by the stop. A call that waits for a store that is away must not hold the stop up. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Calls that come after the stop are refused. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.stopping.aborted) throw stoppedError();
    this.#underway += 1;
    try {
      return await work();
    } catch (error) {
      // The store is closed by then, and says so in words that nobody outside can act on.
      throw this.#isOver && isUnavailable(error) ? brokenOff(error) : error;
    } finally {
      this.#underway -= 1;
      if (this.#underway === 0) this.#whenIdle?.();
    }
  }

  /** The same object, whose methods are such calls. All of them must be asynchronous. */
  ofAll<T extends object>(methods: T): T {
    return new Proxy(methods, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) =>
          this.run(async () => Reflect.apply(value, target, given) as unknown);
      },
    });
  }

  /** Refuses what comes from now on, and waits for what is under way. */
  drain(): Promise<void> {
    this.#stopping.abort();
    if (this.#underway === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  /** The time for it is over. */
  end(): void {
    this.#isOver = true;
  }
}

function brokenOff(cause: unknown): EngineError {
  const message =
    'The engine was stopped during this call. The call may have taken effect. Make it again with a new engine.';
  return new EngineError('ENGINE_STOPPED', message, { cause });
}
