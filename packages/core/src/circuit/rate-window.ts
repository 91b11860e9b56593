import type { Clock } from '../clock.ts';

/** The calls that a failure rate is computed over: the newest ones, by time or by number. */
export interface RateWindow {
  readonly calls: number;
  readonly failed: number;
  add(failed: boolean): void;
  clear(): void;
}

/** The calls of the last `windowMs`, counted in slices, so that the window rolls without keeping every call. */
export class TimeWindow implements RateWindow {
  readonly #clock: Clock;
  readonly #sliceMs: number;
  #slices: { calls: number; failed: number }[] = [];
  #index = 0;

  constructor(windowMs: number, clock: Clock) {
    this.#clock = clock;
    this.#sliceMs = windowMs / SLICES;
  }

  get calls(): number {
    return this.#slices.reduce((sum, slice) => sum + slice.calls, 0);
  }

  get failed(): number {
    return this.#slices.reduce((sum, slice) => sum + slice.failed, 0);
  }

  add(failed: boolean): void {
    const index = Math.floor(this.#clock.monotonic() / this.#sliceMs);
    const steps = Math.min(index - this.#index, SLICES);
    for (let i = 0; i < steps; i++) this.#slices.unshift({ calls: 0, failed: 0 });
    this.#slices.length = Math.min(this.#slices.length, SLICES);
    this.#index = index;
    const slice = (this.#slices[0] ??= { calls: 0, failed: 0 });
    slice.calls += 1;
    if (failed) slice.failed += 1;
  }

  clear(): void {
    this.#slices = [];
  }
}

const SLICES = 10;

/** The last `size` calls, however long ago they were. */
export class CallWindow implements RateWindow {
  calls = 0;
  failed = 0;
  readonly #outcomes: Uint8Array;
  #next = 0;

  constructor(size: number) {
    this.#outcomes = new Uint8Array(size);
  }

  add(failed: boolean): void {
    const { length } = this.#outcomes;
    if (this.calls < length) this.calls += 1;
    else this.failed -= this.#outcomes[this.#next]!;
    this.#outcomes[this.#next] = failed ? 1 : 0;
    if (failed) this.failed += 1;
    this.#next = (this.#next + 1) % length;
  }

  clear(): void {
    this.calls = this.failed = this.#next = 0;
  }
}
