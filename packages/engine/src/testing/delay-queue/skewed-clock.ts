import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';

/** The system's clock as a wrong one: its wall time is off, and it runs so many times as fast. */
export function skewedClock({ aheadMs, rate }: { aheadMs: number; rate: number }): Clock {
  return {
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() * rate,
    setTimer: (callback, ms, unref) => systemClock.setTimer(callback, ms / rate, unref),
    clearTimer: (timer) => systemClock.clearTimer(timer),
  };
}
