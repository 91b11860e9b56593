import type { Store } from '@redrive/engine';
import type { Clock } from 'redrive';
import { wrapped } from './wrapped.ts';

/** Who hears how long the store took. */
export interface StoreTimes {
  stored(operation: string, seconds: number, failed: boolean, error?: unknown): void;
}

/** The same store, with every call of it measured that takes time. */
export function timedStore(store: Store, times: StoreTimes, clock: Clock): Store {
  return wrapped(store, (name, method) => (...args) => {
    const beganAt = clock.monotonic();
    const result = method(...args);
    if (!(result instanceof Promise)) return result;
    const took = (failed: boolean, error?: unknown) =>
      times.stored(name, (clock.monotonic() - beganAt) / 1000, failed, error);
    // Whoever called has the result, and the error too.
    result.then(
      () => took(false),
      (error: unknown) => took(true, error),
    );
    return result;
  });
}
