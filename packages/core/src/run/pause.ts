import type { Clock } from '../clock.ts';

/** Until the time is over or the signal is aborted. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clock.clearTimer(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(end, signal?.aborted ? 0 : ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
