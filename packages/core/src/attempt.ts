import type { Attempt, Runtime } from './runtime.ts';
import { freshId, systemClock, systemRandom } from './system.ts';

let seed: number | undefined;
let calls = 0;

/** The seed of in-process calls: random once per process, so that a thousand pods do not move in step. */
export function processSeed(): number {
  return (seed ??= Math.floor(systemRandom() * Number.MAX_SAFE_INTEGER));
}

/** The function's view of one attempt. What costs something is made when it is touched. */
export class AttemptContext implements Attempt {
  readonly attempt: number;
  readonly maxAttempts: number;
  /** When it must be over, by the monotonic clock. */
  endsAt = Infinity;
  private readonly _runtime: Runtime<never> | undefined;
  private _first: AttemptContext | undefined;
  private _key: string | undefined;
  private _controller: AbortController | undefined;
  private _abort: { reason: unknown } | undefined;

  /** `first` is the first attempt of the same call: all attempts share its key. */
  constructor(
    attempt: number,
    maxAttempts: number,
    runtime: Runtime<never> | undefined,
    first?: AttemptContext,
  ) {
    this.attempt = attempt;
    this.maxAttempts = maxAttempts;
    this._runtime = runtime;
    this._first = first;
  }

  get idempotencyKey(): string {
    const owner = this._first ?? this;
    return (owner._key ??= this._runtime?.key ?? freshId());
  }

  /** The same key, for the jitter and the events. One that nobody has asked for yet need be no more than unlike others. */
  get callKey(): string {
    const owner = this._first ?? this;
    return (owner._key ??= this._runtime?.key ?? `${processSeed()}-${++calls}`);
  }

  get remainingMs(): number {
    if (this.endsAt === Infinity) return Infinity;
    return Math.max(0, this.endsAt - (this._runtime?.clock ?? systemClock).monotonic());
  }

  get signal(): AbortSignal {
    if (!this._controller) {
      this._controller = new AbortController();
      if (this._abort) this._controller.abort(this._abort.reason);
    }
    return this._controller.signal;
  }

  abort(reason: unknown): void {
    this._abort = { reason };
    this._controller?.abort(reason);
  }
}
