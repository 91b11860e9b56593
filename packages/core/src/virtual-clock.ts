import type { Clock } from './clock.ts';
import { type Duration, durationMs } from './policy/duration.ts';
import { ConfigError } from './errors.ts';
import { hostTurn } from './system.ts';

/** A clock that stands still until it is told to move. */
export interface VirtualClock extends Clock {
  /** Timers that are waiting. */
  readonly pending: number;
  /** Moves time forward, firing what falls due in order and letting promises settle in between. */
  advance(duration: Duration): Promise<void>;
  /** Moves from timer to timer until none is left, and says how much time that took. */
  run(): Promise<number>;
  /** The wall clock jumps, as wall clocks do; timers and the monotonic clock do not notice. */
  jump(ms: number): void;
}

interface Timer {
  at: number;
  order: number;
  callback: () => void;
}

/** More timers than this without an end is a loop, not a test. */
const MAX_STEPS = 100_000;

/** Time for tests: `retry(fn, policy, { clock })`, then `await clock.advance('1h')`. No mocks of modules. */
export function virtualClock(startMs = Date.UTC(2025, 0, 1)): VirtualClock {
  const timers = new Set<Timer>();
  let elapsedMs = 0;
  let wallMs = startMs;
  let order = 0;

  function nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers) {
      if (!next || timer.at < next.at || (timer.at === next.at && timer.order < next.order))
        next = timer;
    }
    return next;
  }

  async function runUntil(endMs: number): Promise<void> {
    await hostTurn();
    for (let step = 0; step < MAX_STEPS; step++) {
      const timer = nextTimer();
      if (!timer || timer.at > endMs) {
        if (endMs !== Infinity) elapsedMs = Math.max(elapsedMs, endMs);
        return;
      }
      timers.delete(timer);
      elapsedMs = Math.max(elapsedMs, timer.at);
      timer.callback();
      await hostTurn();
    }
    throw new ConfigError(
      'INVALID_VALUE',
      `${MAX_STEPS} timers fired without an end; is something retrying for ever?`,
    );
  }

  return {
    now: () => wallMs + elapsedMs,
    monotonic: () => elapsedMs,
    setTimer(callback, ms) {
      const timer: Timer = { at: elapsedMs + (ms > 0 ? ms : 0), order: order++, callback };
      timers.add(timer);
      return timer;
    },
    clearTimer(timer) {
      timers.delete(timer as Timer);
    },
    get pending() {
      return timers.size;
    },
    async advance(duration) {
      const ms = durationMs(duration);
      if (Number.isNaN(ms)) {
        throw new ConfigError(
          'INVALID_DURATION',
          `Cannot advance by ${String(duration)}: write ms, or a text such as '2s' or '1h'.`,
        );
      }
      await runUntil(elapsedMs + ms);
    },
    async run() {
      const before = elapsedMs;
      await runUntil(Infinity);
      return elapsedMs - before;
    },
    jump(ms) {
      wallMs += ms;
    },
  };
}
