import type { Clock } from '../clock.ts';
import { isThenable } from '../notify.ts';
import { definePolicy } from '../policy.ts';
import { retry } from '../retry.ts';
import type { MaybePromise } from './store.ts';

/** What a store refuses for good is not asked again. */
const neverOn = ['IdempotencyError', 'ConfigError'];

interface Patience {
  clock: Clock;
  /** How long one call may take. */
  timeoutMs: number;
  /** How long to go on trying. Unless given, a call is made up to `maxAttempts` times. */
  forMs?: number;
  maxAttempts?: number;
}

/**
 * Calls a store under a timeout, and again where that failed. Every call of a store may be repeated: its answer may have
 * been lost after it took effect.
 */
export function ask<T>(call: () => MaybePromise<T>, patience: Patience): MaybePromise<T> {
  const { clock, timeoutMs, forMs, maxAttempts = 3 } = patience;
  const first = begin(call);
  // The memory store answers at once.
  if (first.kind === 'answer' && !isThenable(first.answer)) return first.answer;
  let begun: typeof first | undefined = first;
  const again = (): MaybePromise<T> => {
    const now = begun ?? begin(call);
    begun = undefined;
    if (now.kind === 'error') throw now.error;
    return now.answer;
  };
  const policy = definePolicy({
    maxAttempts: forMs === undefined ? maxAttempts : 1_000_000,
    base: 50,
    cap: 1000,
    attemptTimeout: timeoutMs,
    retryOn: ['any'],
    neverOn,
    ...(forMs === undefined ? {} : { deadline: Math.max(1, forMs) }),
  });
  return retry(again, policy, { clock });
}

function begin<T>(call: () => MaybePromise<T>) {
  try {
    return { kind: 'answer', answer: call() } as const;
  } catch (error) {
    return { kind: 'error', error } as const;
  }
}
