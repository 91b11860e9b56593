import type { Census } from '@redrive/engine';
import type { Clock } from 'redrive';
import type { Logger } from 'pino';

interface CensusOptions {
  clock: Clock;
  log: Logger;
  counted: (result: Census, tookMs: number) => void;
}

const EVERY_MS = 10_000;
/** A count that takes long is made seldom: it may cost a twentieth of the time at most. */
const TIMES_ITS_DURATION = 20;
const FORGOTTEN_AFTER_MS = 300_000;
/** A scrape that finds only old numbers waits so long for new ones. */
const WAIT_MS = 1000;

/** Has everything counted in the background, as long as somebody looks at the result. */
export class CensusTaker {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #counted: CensusOptions['counted'];
  #ask: (() => Promise<Census>) | undefined;
  #askedForAt = -Infinity;
  #countedAt: number | undefined;
  #restMs = EVERY_MS;
  #running: Promise<void> | undefined;
  #timer: unknown;
  #isOn = false;
  #hasFailed = false;

  constructor({ clock, log, counted }: CensusOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#counted = counted;
  }

  watch(ask: () => Promise<Census>): void {
    this.#ask = ask;
  }

  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#askedForAt = this.#clock.monotonic();
    void this.#run();
  }

  stop(): void {
    this.#isOn = false;
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  /** How old the numbers are; undefined: there are none yet. */
  get ageMs(): number | undefined {
    return this.#countedAt === undefined ? undefined : this.#clock.monotonic() - this.#countedAt;
  }

  /** Somebody looks. Resolves with numbers that are not old, unless counting takes too long. */
  async wanted(): Promise<void> {
    this.#askedForAt = this.#clock.monotonic();
    if (!this.#isOn) return;
    const isOld = this.ageMs === undefined || this.ageMs > this.#restMs;
    if (!isOld) return;
    // Nobody had looked for a while, so nothing was planned.
    if (this.#timer === undefined) void this.#run();
    if (this.#running) await this.#atMost(WAIT_MS, this.#running);
  }

  #run(): Promise<void> {
    this.#running ??= this.#count().finally(() => {
      this.#running = undefined;
      this.#plan();
    });
    return this.#running;
  }

  async #count(): Promise<void> {
    const beganAt = this.#clock.monotonic();
    try {
      const result = await this.#ask?.();
      const tookMs = this.#clock.monotonic() - beganAt;
      if (result) this.#took(result, tookMs);
      this.#hasFailed = false;
    } catch (error) {
      // While the store is away, the other parts say enough.
      if (!this.#hasFailed) this.#log.warn({ err: error }, 'the census failed, and is tried again');
      this.#hasFailed = true;
    }
    const tookMs = this.#clock.monotonic() - beganAt;
    this.#restMs = Math.max(EVERY_MS, TIMES_ITS_DURATION * tookMs);
  }

  #took(result: Census, tookMs: number): void {
    this.#countedAt = this.#clock.monotonic();
    this.#counted(result, tookMs);
  }

  #plan(): void {
    if (!this.#isOn) return;
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined;
        if (this.#clock.monotonic() - this.#askedForAt < FORGOTTEN_AFTER_MS) void this.#run();
      },
      this.#restMs,
      true,
    );
  }

  async #atMost(ms: number, work: Promise<void>): Promise<void> {
    let timer: unknown;
    const limit = new Promise<void>((resolve) => {
      timer = this.#clock.setTimer(resolve, ms, true);
    });
    await Promise.race([work, limit]);
    this.#clock.clearTimer(timer);
  }
}
