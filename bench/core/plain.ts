/** Each library's plain retry, everything that can be set up beforehand set up beforehand. */
import asyncRetry from 'async-retry';
import { ConstantBackoff, ExponentialBackoff, handleAll, retry as cockatielRetry } from 'cockatiel';
import { Effect, Schedule } from 'effect';
import { backOff } from 'exponential-backoff';
import pRetry from 'p-retry';
import { definePolicy, retry } from 'redrive';
import type { Work } from './work.ts';

/** By library: the work made into a call with retries. */
export type Callers = Record<string, (work: Work) => () => Promise<number>>;

/** Four attempts, exponential from 200 ms to 30 s, with whatever jitter each one has. */
export function patientCallers(): Callers {
  const [baseMs, capMs, retries] = [200, 30_000, 3];
  const policy = definePolicy({ maxAttempts: retries + 1, base: baseMs, cap: capMs });
  const cockatiel = cockatielRetry(handleAll, {
    maxAttempts: retries,
    backoff: new ExponentialBackoff({ initialDelay: baseMs, maxDelay: capMs }),
  });
  const pRetryOptions = { retries, minTimeout: baseMs, maxTimeout: capMs, randomize: true };
  const backOffOptions = {
    numOfAttempts: retries + 1,
    startingDelay: baseMs,
    maxDelay: capMs,
    jitter: 'full' as const,
  };
  const asyncRetryOptions = { retries, minTimeout: baseMs, maxTimeout: capMs, randomize: true };
  const schedule = Schedule.exponential(baseMs).pipe(Schedule.jittered);
  return {
    redrive: (work) => () => retry(work, policy),
    'p-retry': (work) => () => pRetry(work, pRetryOptions),
    cockatiel: (work) => () => cockatiel.execute(work),
    'exponential-backoff': (work) => () => backOff(work, backOffOptions),
    'async-retry': (work) => () => asyncRetry(work, asyncRetryOptions),
    effect: (work) => {
      const program = Effect.retry(effectOf(work), { times: retries, schedule });
      return () => Effect.runPromise(program);
    },
  };
}

/** Four attempts, and between them the shortest wait that each one can do. */
export function eagerCallers(): Callers {
  const retries = 3;
  const policy = definePolicy({ maxAttempts: retries + 1, base: 0 });
  const cockatiel = cockatielRetry(handleAll, {
    maxAttempts: retries,
    backoff: new ConstantBackoff(0),
  });
  const pRetryOptions = { retries, minTimeout: 0 };
  const backOffOptions = { numOfAttempts: retries + 1, startingDelay: 0 };
  const asyncRetryOptions = { retries, minTimeout: 0, maxTimeout: 0, randomize: false };
  return {
    redrive: (work) => () => retry(work, policy),
    'p-retry': (work) => () => pRetry(work, pRetryOptions),
    cockatiel: (work) => () => cockatiel.execute(work),
    'exponential-backoff': (work) => () => backOff(work, backOffOptions),
    'async-retry': (work) => () => asyncRetry(work, asyncRetryOptions),
    effect: (work) => {
      const program = Effect.retry(effectOf(work), { times: retries });
      return () => Effect.runPromise(program);
    },
  };
}

/** Those that cannot but set a timer, however short the wait. */
export const waitingCallers = new Set(['cockatiel', 'exponential-backoff', 'async-retry']);

/** The floor of each wait of nothing, as each library's source has it. */
export const waitFloors = [
  'a wait of nothing is a microtask in redrive and p-retry, a turn of the event loop in effect (setImmediate),',
  'and a timer in cockatiel, exponential-backoff and async-retry (setTimeout 0, which Node makes 1 ms)',
];

function effectOf(work: Work): Effect.Effect<number, unknown> {
  return Effect.tryPromise({ try: () => work(), catch: (error) => error });
}
