import type { Attempt, Runtime } from './runtime.ts';
import { freshId, systemClock, systemRandom } from '../system.ts';

let seed: number | undefined;
let calls = 0;

/** The seed of in-process calls: random once per process, so that a thousand pods do not move in step. */
export function processSeed(): number {
  return (seed ??= Math.floor(systemRandom() * Number.MAX_SAFE_INTEGER));
}

/** The function's view of one attempt. What costs something is made when it is touched. */
export class AttemptContext implements Attempt {
  declare readonly attempt: number;
  declare readonly maxAttempts: number;
  /** When it must be over, by the monotonic clock. */
  endsAt = Infinity;
  readonly #runtime: Runtime<never> | undefined;
  #first: AttemptContext | undefined;
  #key: string | undefined;
  #controller: AbortController | undefined;
  #abort: { reason: unknown } | undefined;

  /** `first` is the first attempt of the same call: all attempts share its key. */
  constructor(
    attempt: number,
    maxAttempts: number,
    runtime: Runtime<never> | undefined,
    first?: AttemptContext,
  ) {
    this.attempt = attempt;
    this.maxAttempts = maxAttempts;
    this.#runtime = runtime;
    this.#first = first;
  }

  get idempotencyKey(): string {
    const owner = this.#first ?? this;
    return (owner.#key ??= this.#runtime?.key ?? freshId());
  }

  /** The same key, for the jitter and the events. One that nobody has asked for yet need be no more than unlike others. */
  get callKey(): string {
    const owner = this.#first ?? this;
    return (owner.#key ??= this.#runtime?.key ?? `${processSeed()}-${++calls}`);
  }

  get remainingMs(): number {
    if (this.endsAt === Infinity) return Infinity;
    return Math.max(0, this.endsAt - (this.#runtime?.clock ?? systemClock).monotonic());
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abort) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#abort = { reason };
    this.#controller?.abort(reason);
  }
}
