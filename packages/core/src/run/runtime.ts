import type { Breaker } from '../circuit/breaker.ts';
import type { Budget } from '../limits/budget.ts';
import type { Bulkhead } from '../limits/bulkhead.ts';
import type { Clock, Random } from '../clock.ts';
import type { Facts, GiveUp, Retry } from '../decide.ts';
import type { Failure, FailureClass } from '../failure/failure.ts';

/** What the function gets: made when touched, so that a call that ignores it pays nothing. */
export interface Attempt {
  /** 1 for the first execution. */
  readonly attempt: number;
  /** How many there may be. */
  readonly maxAttempts: number;
  /** Aborted when this attempt times out, the deadline passes or the caller aborts. Fresh per attempt, never aborted after success. */
  readonly signal: AbortSignal;
  /** Time left for this attempt by `attemptTimeout` and `deadline`; Infinity without them. */
  readonly remainingMs: number;
  /** The same over all attempts of one call, so that the other side can tell a repetition. */
  readonly idempotencyKey: string;
}

/** Everything that is a function or a live object. What is data stands in the policy. */
export interface Runtime<T = unknown> {
  /** Ends the call at once, in an attempt or in a wait, and no further attempt is started. */
  signal?: AbortSignal | undefined;
  /** Names this piece of work: the idempotency key, and what the jitter is derived from. */
  key?: string | undefined;
  /** Your word on an error, before Redrive's own: a class, parts of a failure, or undefined for no opinion. May be async. */
  classify?: ((error: unknown) => MaybePromise<Opinion | undefined>) | undefined;
  /** Your verdict on an error, or on a result as well. May be async. `idempotent: false` holds all the same. */
  retryIf?: RetryIfError | RetryIf<T> | undefined;
  /**
   * Called after the wait, when the next attempt is about to start, and awaited: refresh a token, ask a rate limiter. Not
   * called before the first attempt. If it throws or rejects, the call ends with `BEFORE_RETRY_FAILED`.
   */
  beforeRetry?: ((info: BeforeRetry) => unknown) | undefined;
  /** Bounds the retries of all calls that share it. */
  budget?: Budget | undefined;
  /** Keeps calls away from what is down. A call waits for it, unless `maxUncounted` is 0. */
  breaker?: Breaker | undefined;
  /** Bounds how many attempts run at once over all calls that share it. An attempt that finds no place waits in its queue. */
  bulkhead?: Bulkhead | undefined;
  /** One listener for everything, or one per type. A listener that throws or rejects never breaks the work. */
  on?: Listener | Listeners | undefined;
  /** Time for tests: `virtualClock()` of `redrive/testing`. */
  clock?: Clock | undefined;
  /** Randomness for the jitter instead of the number derived from the key. */
  random?: Random | undefined;
  /** Waits and timeouts do not keep the process alive. */
  unref?: boolean | undefined;
  /** The attempt this call is part of: its limits hold here too, and the retrying is left to it. */
  parent?: Attempt | undefined;
}

type MaybePromise<T> = T | PromiseLike<T>;

/** What `classify` may say: a class, or parts of a failure. */
export type Opinion = FailureClass | Partial<Failure>;

/** True: retry this error, whatever `retryOn` says. False: do not. Undefined: as the policy says. */
export type RetryIfError = (error: unknown, attempt: number) => MaybePromise<boolean | undefined>;

export interface RetryIf<T> {
  error?: RetryIfError | undefined;
  /** True: this result is a failure, try again. */
  result?: ((result: T, attempt: number) => MaybePromise<boolean>) | undefined;
}

/** What `beforeRetry` gets. */
export interface BeforeRetry {
  /** The number of the attempt that is about to start, and how many there may be. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** What the last attempt failed with; undefined where `retryIf` refused its result. */
  readonly error: unknown;
  readonly failure: Failure;
  /** The signal of the attempt that is about to start: aborted when the caller aborts or the deadline passes. */
  readonly signal: AbortSignal;
  /** Time left by the deadline; Infinity without one. `attemptTimeout` begins after this. */
  readonly remainingMs: number;
  readonly idempotencyKey: string;
}

interface About {
  /** Which call it was. */
  key: string;
  /** What the jitter's random numbers were derived from, besides the key. */
  seed: number;
  attempt: number;
}

export type RetryEvent =
  | (About & { type: 'attempt' })
  | (About & { type: 'wait'; delayMs: number; error: unknown; facts: Facts; decision: Retry })
  | (About & { type: 'success'; attempts: number })
  | (About & { type: 'giveUp'; error: unknown; facts: Facts; decision: GiveUp });

/** It may be async: the work does not wait for it. */
export type Listener = (event: RetryEvent) => unknown;
export type Listeners = {
  readonly [Type in RetryEvent['type']]?: (event: Extract<RetryEvent, { type: Type }>) => unknown;
};
