/** Each library's plain retry, with as much of the settings as it understands. */
import { createRequire } from 'node:module';
import { ConstantBackoff, ExponentialBackoff, handleAll, retry as cockatielRetry } from 'cockatiel';
import { Effect, Schedule } from 'effect';
import { backOff } from 'exponential-backoff';
import pRetry from 'p-retry';
import { retry } from 'redrive';
import type { Library } from './table.ts';

interface Settings {
  /** Executions after the first (2). */
  retries?: number;
  /** Always the same wait (100). */
  waitMs?: number;
  signal?: AbortSignal;
}

export type Caller = <T>(fn: () => Promise<T>, settings?: Settings) => Promise<T>;

interface AsyncRetryOptions {
  retries?: number;
  factor?: number;
  minTimeout?: number;
  maxTimeout?: number;
  randomize?: boolean;
  /** Handed on to the package `retry`. */
  maxRetryTime?: number;
}

/** It ships no types. */
export const asyncRetry = createRequire(import.meta.url)('async-retry') as <T>(
  fn: (bail: (error: unknown) => void, attempt: number) => Promise<T>,
  options?: AsyncRetryOptions,
) => Promise<T>;

export const plain: Record<Library, Caller> = {
  Redrive: (fn, { retries = 2, waitMs = 100, signal } = {}) =>
    retry(
      () => fn(),
      { maxAttempts: retries + 1, strategy: 'fixed', base: waitMs, jitter: 'none' },
      { signal },
    ),
  'p-retry': (fn, { retries = 2, waitMs = 100, signal } = {}) =>
    pRetry(() => fn(), { retries, minTimeout: waitMs, factor: 1, signal }),
  cockatiel: (fn, { retries = 2, waitMs = 100, signal } = {}) =>
    cockatielRetry(handleAll, {
      maxAttempts: retries,
      backoff: new ConstantBackoff(waitMs),
    }).execute(() => fn(), signal),
  'async-retry': (fn, { retries = 2, waitMs = 100 } = {}) =>
    asyncRetry(() => fn(), {
      retries,
      minTimeout: waitMs,
      maxTimeout: waitMs,
      factor: 1,
      randomize: false,
    }),
  'exponential-backoff': (fn, { retries = 2, waitMs = 100 } = {}) =>
    backOff(fn, { numOfAttempts: retries + 1, startingDelay: waitMs, timeMultiple: 1 }),
  effect: (fn, { retries = 2, waitMs = 100, signal } = {}) =>
    Effect.runPromise(
      Effect.retry(
        attempt(() => fn()),
        { times: retries, schedule: Schedule.spaced(waitMs) },
      ),
      { signal },
    ),
};

interface Jittered {
  retries: number;
  baseMs: number;
  capMs: number;
}

/** Exponential by 2, with a cap and with the jitter that the library uses unless told otherwise, or its only one. */
export const jittered: Record<
  Library,
  (fn: () => Promise<string>, by: Jittered) => Promise<string>
> = {
  Redrive: (fn, { retries, baseMs, capMs }) =>
    retry(fn, { maxAttempts: retries + 1, base: baseMs, cap: capMs }),
  'p-retry': (fn, { retries, baseMs, capMs }) =>
    pRetry(fn, { retries, minTimeout: baseMs, maxTimeout: capMs, randomize: true }),
  cockatiel: (fn, { retries, baseMs, capMs }) =>
    cockatielRetry(handleAll, {
      maxAttempts: retries,
      backoff: new ExponentialBackoff({ initialDelay: baseMs, maxDelay: capMs }),
    }).execute(fn),
  'async-retry': (fn, { retries, baseMs, capMs }) =>
    asyncRetry(fn, { retries, minTimeout: baseMs, maxTimeout: capMs }),
  'exponential-backoff': (fn, { retries, baseMs, capMs }) =>
    backOff(fn, {
      numOfAttempts: retries + 1,
      startingDelay: baseMs,
      maxDelay: capMs,
      jitter: 'full',
    }),
  effect: (fn, by) => Effect.runPromise(jitteredEffect(fn, by)),
};

export function jitteredEffect(
  fn: () => Promise<string>,
  { retries, baseMs, capMs }: Jittered,
): Effect.Effect<string, unknown> {
  const capped = Schedule.min([Schedule.exponential(baseMs), Schedule.spaced(capMs)]);
  return Effect.retry(attempt(fn), { times: retries, schedule: Schedule.jittered(capped) });
}

export function attempt<T>(fn: (signal: AbortSignal) => Promise<T>): Effect.Effect<T, unknown> {
  return Effect.tryPromise({ try: (signal) => fn(signal), catch: (error) => error });
}
