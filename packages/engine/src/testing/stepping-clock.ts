import type { Clock } from 'redrive';
import { virtualClock } from 'redrive/testing';

/** A virtual clock that says when its next timer fires, so that time can be moved from one to the next. */
export interface SteppingClock extends Clock {
  /** Ms until the next timer; Infinity: none is set. */
  readonly nextInMs: number;
  /** Moves time, firing what falls due. */
  move(ms: number): Promise<void>;
}

export function steppingClock(startMs?: number): SteppingClock {
  const clock = virtualClock(startMs);
  const timers = new Map<unknown, number>();
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer(callback, ms) {
      const timer = clock.setTimer(() => {
        timers.delete(timer);
        callback();
      }, ms);
      timers.set(timer, clock.monotonic() + Math.max(0, ms));
      return timer;
    },
    clearTimer(timer) {
      timers.delete(timer);
      clock.clearTimer(timer);
    },
    get nextInMs() {
      let atMs = Infinity;
      for (const one of timers.values()) atMs = Math.min(atMs, one);
      return Math.max(0, atMs - clock.monotonic());
    },
    move: (ms) => clock.advance(ms),
  };
}
