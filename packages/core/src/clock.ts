/** Time as a port: the library never reads a clock or sets a timer but through this. */
export interface Clock {
  /** Wall time in ms since the epoch. It may jump. */
  now(): number;
  /** Monotonic time in ms from any origin. It never jumps; deadlines use it. */
  monotonic(): number;
  /** Calls back once, `ms` from now. `unref`: the timer must not keep the process alive. */
  setTimer(callback: () => void, ms: number, unref?: boolean): unknown;
  clearTimer(timer: unknown): void;
}

/** Randomness as a port: a number in [0, 1). */
export type Random = () => number;
