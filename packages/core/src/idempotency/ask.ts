import type { Clock } from '../clock.ts';
import { isThenable } from '../run/notify.ts';
import { retry } from '../retry.ts';
import type { MaybePromise } from './store.ts';

/** What a store refuses for good is not asked again. */
const neverOn = ['IdempotencyError', 'ConfigError'];

interface Patience {
  clock: Clock;
  /** How long one call may take. */
  timeoutMs: number;
  /** How long to go on trying. Unless given, a call is made up to `maxAttempts` times. */
  forMs?: number | undefined;
  /** With `forMs`: but at least until then, by the monotonic clock. */
  untilMs?: number;
  maxAttempts?: number | undefined;
}

/**
 * Calls a store under a timeout, and again where that failed. Every call of a store may be repeated: its answer may have
 * been lost after it took effect. A store that answers at once, as that in memory does, costs no promise and no timer.
 */
export function ask<T>(call: () => MaybePromise<T>, patience: Patience): MaybePromise<T> {
  let answer: MaybePromise<T>;
  try {
    answer = call();
  } catch (error) {
    return askAgain(call, patience, { error }, 0);
  }
  if (!isThenable(answer)) return answer;
  const { clock, timeoutMs } = patience;
  const startedAtMs = clock.monotonic();
  return within(clock, timeoutMs, answer).catch((error: unknown) =>
    askAgain(call, patience, { error }, clock.monotonic() - startedAtMs),
  );
}

/** The rest of the attempts, of which the first has failed. Only here a policy is made. */
function askAgain<T>(
  call: () => MaybePromise<T>,
  { clock, timeoutMs, forMs, untilMs = -Infinity, maxAttempts = 3 }: Patience,
  failed: { error: unknown },
  elapsedMs: number,
): Promise<T> {
  let first: typeof failed | undefined = failed;
  const next = (): MaybePromise<T> => {
    if (!first) return call();
    const { error } = first;
    first = undefined;
    throw error;
  };
  return retry(
    next,
    {
      maxAttempts: forMs === undefined ? maxAttempts : 1_000_000,
      base: 50,
      cap: 1000,
      attemptTimeout: timeoutMs,
      retryOn: ['any'],
      neverOn,
      deadline:
        forMs === undefined
          ? undefined
          : Math.max(1, forMs - elapsedMs, untilMs - clock.monotonic()),
    },
    { clock },
  );
}

/** The timer is cheaper than an attempt of `retry` with a timeout, and a store is asked twice for every effect. */
function within<T>(clock: Clock, timeoutMs: number, answer: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => {
      reject(new DOMException(`The store did not answer within ${timeoutMs} ms.`, 'TimeoutError'));
    }, timeoutMs);
    answer.then(
      (value) => {
        clock.clearTimer(timer);
        resolve(value);
      },
      (error: unknown) => {
        clock.clearTimer(timer);
        reject(error);
      },
    );
  });
}
