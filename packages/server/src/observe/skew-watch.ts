/** Watches how far this host's clock is from the database's: delays that are counted across both would be wrong by it. */
import type { Engine } from '@redrive/engine';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';

/** From here on somebody should look at the clocks. */
export const MAX_SKEW_MS = 1000;
const EVERY_MS = 10_000;
/** As long as it lasts, it is said again after this time. */
const AGAIN_MS = 600_000;

export class SkewWatch {
  readonly #clock: Clock;
  readonly #log: Logger;
  #engine: Pick<Engine, 'stats'> | undefined;
  #timer: unknown;
  #saidAt: number | undefined;

  constructor({ clock, log }: { clock: Clock; log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  watch(engine: Pick<Engine, 'stats'>): void {
    this.#engine = engine;
  }

  start(): void {
    this.stop();
    this.#look();
    this.#timer = this.#clock.setTimer(() => this.start(), EVERY_MS, true);
  }

  stop(): void {
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const skewMs = this.#engine?.stats().clockSkewMs;
    if (skewMs === undefined) return;
    const nowMs = this.#clock.monotonic();
    if (Math.abs(skewMs) <= MAX_SKEW_MS) {
      if (this.#saidAt !== undefined) this.#log.info('the clocks of host and database agree again');
      this.#saidAt = undefined;
      return;
    }
    if (this.#saidAt !== undefined && nowMs - this.#saidAt < AGAIN_MS) return;
    this.#saidAt = nowMs;
    this.#log.warn({ skew_ms: Math.round(skewMs) }, skewSentence(skewMs));
  }
}

export function skewSentence(skewMs: number): string {
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1);
  const where = skewMs > 0 ? 'ahead of' : 'behind';
  return `The clock of this host is ${seconds} s ${where} the clock of the database. Look at NTP on both.`;
}
