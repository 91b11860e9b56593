import { type Clock, type DefinedPolicy, delayFor, type Random } from 'redrive';

/** How long to wait before the next try at something that should work for ever. */
export class Backoff {
  readonly #policy: DefinedPolicy;
  readonly #clock: Clock;
  readonly #random: Random;
  #failures = 0;
  #worksSinceMs: number | undefined;

  constructor(policy: DefinedPolicy, clock: Clock, random: Random) {
    this.#policy = policy;
    this.#clock = clock;
    this.#random = random;
  }

  /** It works now. That is believed once it has lasted: what breaks each time at once must not be tried without a pause. */
  works(): void {
    this.#worksSinceMs = this.#clock.monotonic();
  }

  /** It does not work, or does no longer. */
  nextDelayMs(): number {
    const since = this.#worksSinceMs;
    this.#worksSinceMs = undefined;
    const hasLasted = since !== undefined && this.#clock.monotonic() - since >= this.#policy.cap;
    this.#failures = hasLasted ? 1 : this.#failures + 1;
    return delayFor(this.#policy, { attempt: this.#failures, random: this.#random() });
  }
}
