/**
 * What the guide for people who come from another library says, carried out to the letter: each shim is made of the rows of
 * its tables, and of nothing else. `migration.test.ts` holds the shims against the libraries.
 */
import { isRetryError, type Policy, retry, type Runtime } from 'redrive';

/** "The last error itself": the `cause` of a RetryError, also where that is the reason of an abort. */
async function lastError<T>(call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw isRetryError(error) ? error.cause : error;
  });
}

export interface PRetryOptions {
  retries?: number;
  factor?: number;
  minTimeout?: number;
  maxTimeout?: number;
  randomize?: boolean;
  maxRetryTime?: number;
  signal?: AbortSignal;
  onFailedAttempt?: (context: { error: Error; attemptNumber: number }) => void | Promise<void>;
  shouldRetry?: (context: { error: Error; attemptNumber: number }) => boolean | Promise<boolean>;
}

export class StopError extends Error {
  override readonly name = 'StopError';
  readonly original: Error;
  constructor(original: Error) {
    super(original.message);
    this.original = original;
  }
}

export async function pRetryShim<T>(
  fn: (attempt: number) => T | Promise<T>,
  options: PRetryOptions = {},
): Promise<T> {
  const { retries = 10, factor = 2, minTimeout = 1000, maxTimeout = Infinity } = options;
  const policy: Policy = {
    maxAttempts: retries === Infinity ? 1_000_000_000 : retries + 1,
    base: minTimeout,
    cap: maxTimeout === Infinity ? '36500d' : maxTimeout,
    multiplier: Math.max(factor, 1),
    schedule: 0 < factor && factor < 1 ? shrinking(minTimeout, factor, retries) : undefined,
    jitter: options.randomize ? 'up' : 'none',
    jitterRatio: 1,
    hardCap: true,
    deadline: options.maxRetryTime === Infinity ? undefined : options.maxRetryTime,
  };
  const runtime: Runtime<T> = {
    signal: options.signal,
    random: Math.random,
    retryIf: async (error, attemptNumber) => {
      if (error instanceof StopError || !(error instanceof Error)) return false;
      await options.onFailedAttempt?.({ error, attemptNumber });
      if (error instanceof TypeError) return undefined;
      return (await options.shouldRetry?.({ error, attemptNumber })) ?? true;
    },
  };
  try {
    return await lastError(retry(async ({ attempt }) => fn(attempt), policy, runtime as Runtime));
  } catch (error) {
    throw error instanceof StopError ? error.original : error;
  }
}

/** "Write the delays." */
function shrinking(first: number, factor: number, count: number): number[] {
  return Array.from({ length: Math.min(count, 1000) }, (_, n) => Math.round(first * factor ** n));
}

export interface AsyncRetryOptions {
  retries?: number;
  factor?: number;
  minTimeout?: number;
  maxTimeout?: number;
  randomize?: boolean;
  onRetry?: (error: unknown, attempt: number) => unknown;
}

export async function asyncRetryShim<T>(
  fn: (bail: (error: Error) => void, attempt: number) => T | Promise<T>,
  options: AsyncRetryOptions = {},
): Promise<T> {
  const { retries = 10, factor = 2, minTimeout = 1000, maxTimeout = Infinity } = options;
  const { randomize = true, onRetry } = options;
  const stop = new AbortController();
  return lastError(
    retry(
      async ({ attempt }) => {
        const result = await fn((error) => stop.abort(error), attempt);
        // "Then throw": a function that returns after its abort has worked, as far as Redrive knows.
        stop.signal.throwIfAborted();
        return result;
      },
      {
        maxAttempts: retries + 1,
        base: minTimeout,
        cap: maxTimeout === Infinity ? '36500d' : maxTimeout,
        multiplier: factor,
        jitter: randomize ? 'up' : 'none',
        jitterRatio: 1,
        hardCap: true,
        retryOn: ['any'],
      },
      {
        signal: stop.signal,
        random: Math.random,
        retryIf: (error) => ((error as { bail?: boolean }).bail ? false : undefined),
        on: { wait: ({ error, attempt }) => onRetry?.(error, attempt) },
      },
    ),
  );
}

export interface BackOffOptions {
  numOfAttempts?: number;
  startingDelay?: number;
  timeMultiple?: number;
  maxDelay?: number;
  jitter?: 'none' | 'full';
  /** Its type says boolean, but JavaScript may return nothing. */
  retry?: (error: unknown, attempt: number) => boolean | Promise<boolean>;
}

export async function backOffShim<T>(
  fn: () => T | Promise<T>,
  options: BackOffOptions = {},
): Promise<T> {
  const { numOfAttempts = 10, startingDelay = 100, timeMultiple = 2 } = options;
  const { maxDelay = Infinity, jitter = 'none', retry: shouldRetry } = options;
  return lastError(
    retry(
      async () => fn(),
      {
        maxAttempts: Math.max(numOfAttempts, 1),
        base: startingDelay,
        cap: maxDelay === Infinity ? '36500d' : maxDelay,
        multiplier: timeMultiple,
        jitter,
        retryOn: ['any'],
      },
      {
        random: Math.random,
        retryIf: async (error, attempt) =>
          shouldRetry ? Boolean(await shouldRetry(error, attempt)) : undefined,
      },
    ),
  );
}
