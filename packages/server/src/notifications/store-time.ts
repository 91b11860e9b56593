import type { Clock } from 'redrive';

/**
 * The time of the store, which all instances share. Times in records are compared by all of them: one whose clock is ahead would
 * deliver early, and take deliveries over that others still have in hand.
 */
export function storeTime(clock: Clock, skewMs: () => number | undefined): Clock {
  return {
    now: () => clock.now() - (skewMs() ?? 0),
    monotonic: () => clock.monotonic(),
    setTimer: (callback, ms, unref) => clock.setTimer(callback, ms, unref),
    clearTimer: (timer) => clock.clearTimer(timer),
  };
}
