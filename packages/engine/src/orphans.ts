import type { Clock } from 'redrive';
import type { Schedule } from './ports/schedule.ts';

/** A write that was cut off may still take effect: what it leases is looked for again so often. */
const AGAIN_MS = 1000;

/** Tokens under which something may be leased that nobody knows of, since the answer was lost: it is given back. */
export class Orphans {
  readonly #schedule: Pick<Schedule, 'abandon'>;
  readonly #clock: Clock;
  /** Each with the local monotonic time until which something may come about under it. */
  readonly #tokens = new Map<number, number>();
  /** Local monotonic time. */
  nextAt = Infinity;

  constructor(schedule: Pick<Schedule, 'abandon'>, clock: Clock) {
    this.#schedule = schedule;
    this.#clock = clock;
  }

  add(lease: number, forMs = 0): void {
    const now = this.#clock.monotonic();
    this.#tokens.set(lease, now + forMs);
    this.nextAt = now;
  }

  async giveBack(): Promise<void> {
    this.nextAt = this.#clock.monotonic() + AGAIN_MS;
    for (const [lease, until] of this.#tokens) {
      await this.#schedule.abandon(lease);
      if (until <= this.#clock.monotonic()) this.#tokens.delete(lease);
    }
    if (this.#tokens.size === 0) this.nextAt = Infinity;
  }
}
