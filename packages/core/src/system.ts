/**
 * The one place where core touches the host: clock, timers, randomness, hashing, the error console.
 * Everything here is behind a port and can be replaced.
 */
import type { Clock, Random } from './clock.ts';

/** A timer past 2^31-1 ms fires at once, so long waits are cut into pieces of a day. */
const MAX_TIMER_MS = 86_400_000;

interface LongTimer {
  id: ReturnType<typeof setTimeout>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(callback, ms, unref) {
    if (ms <= MAX_TIMER_MS) return start(callback, ms, unref);
    const timer: LongTimer = { id: start(nextPiece, MAX_TIMER_MS, unref) };
    let leftMs = ms - MAX_TIMER_MS;
    function nextPiece(): void {
      if (leftMs <= 0) return callback();
      const pieceMs = Math.min(leftMs, MAX_TIMER_MS);
      leftMs -= pieceMs;
      timer.id = start(nextPiece, pieceMs, unref);
    }
    return timer;
  },
  clearTimer(timer) {
    // Node's own timers are objects too, but only ours have an `id` of their own.
    const id = typeof timer === 'object' && timer !== null && Object.hasOwn(timer, 'id');
    clearTimeout(id ? (timer as LongTimer).id : (timer as ReturnType<typeof setTimeout>));
  },
};

export const systemRandom: Random = Math.random;

/** An id like no other, also not in a copy of this process. */
export function freshId(): string {
  const { crypto } = globalThis as { crypto?: { randomUUID?: () => string } };
  // A page that was not served over https lacks it.
  return crypto?.randomUUID?.() ?? `${systemRandom()}`.slice(2) + `${systemRandom()}`.slice(2);
}

/** SHA-256 as hex digits. By the host, which is much faster with a large body. */
export async function sha256Bytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A fault in a listener or in a discarded result must not break the work, and must not vanish. */
export function reportFault(what: string, error: unknown): void {
  console.error(`redrive: ${what}`, error);
}

/** Lets every promise that can settle now settle: one turn of the host's event loop. */
export function hostTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (immediate) immediate(resolve);
    else setTimeout(resolve, 0);
  });
}

/** Browsers have none. Looked up early: a test that fakes the timers must not stop the virtual clock too. */
const immediate = /* @__PURE__ */ (() =>
  (globalThis as { setImmediate?: (callback: () => void) => void }).setImmediate)();

function start(callback: () => void, ms: number, unref?: boolean): ReturnType<typeof setTimeout> {
  const id = setTimeout(callback, ms);
  // Only server runtimes can unref; a browser's timer is a number.
  if (unref) (id as { unref?: () => void }).unref?.();
  return id;
}
