import type { Clock } from 'redrive';
import type { Received } from '../../ports/broker.ts';

/** So long without a message: there is none that was handed over before. */
const QUIET_MS = 100;
/** Nobody waits longer, whatever else comes. */
const LONGEST_MS = 5000;

/**
 * A new consumer first gets what the broker handed over before and nobody acknowledged. Much of that is stored already:
 * taken in while its task waits it changes nothing, but after its task was delivered it counts as one failure more. So
 * deliveries wait for this to be over.
 */
export class CatchUp {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  readonly #limit: unknown;
  #quiet: unknown;
  /** Handed over again, and not settled. */
  #unsettled = 0;
  /** It has come to what was never handed over. */
  #hasNew = false;
  #isOver = false;

  constructor(clock: Clock, onOver: () => void) {
    this.#clock = clock;
    this.#onOver = onOver;
    this.#limit = clock.setTimer(() => this.end(), LONGEST_MS, true);
    this.#look();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  received({ redelivered }: Received): void {
    if (this.#isOver) return;
    if (redelivered) this.#unsettled += 1;
    else this.#hasNew = true;
    this.#look();
  }

  settled(messages: readonly Received[]): void {
    if (this.#isOver) return;
    for (const { redelivered } of messages) if (redelivered) this.#unsettled -= 1;
    this.#look();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#clock.clearTimer(this.#quiet);
    this.#clock.clearTimer(this.#limit);
    this.#onOver();
  }

  #look(): void {
    this.#clock.clearTimer(this.#quiet);
    if (this.#unsettled > 0) return;
    if (this.#hasNew) this.end();
    else this.#quiet = this.#clock.setTimer(() => this.end(), QUIET_MS, true);
  }
}
