import type { Breaker } from './breaker.ts';
import type { Budget } from './budget.ts';
import type { Clock, Random } from './clock.ts';
import type { Facts, GiveUp, Retry } from './decide.ts';
import type { Failure, FailureClass } from './failure.ts';

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
  /** Your word on an error, before Redrive's own: a class, parts of a failure, or undefined for no opinion. */
  classify?: ((error: unknown) => FailureClass | Partial<Failure> | undefined) | undefined;
  /** Your verdict on an error, or on a result as well. `idempotent: false` holds all the same. */
  retryIf?: RetryIfError | RetryIf<T> | undefined;
  /** Bounds the retries of all calls that share it. */
  budget?: Budget | undefined;
  /** Keeps calls away from what is down. A call waits for it, unless `maxUncounted` is 0. */
  breaker?: Breaker | undefined;
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

/** True: retry this error, whatever `retryOn` says. False: do not. Undefined: as the policy says. */
export type RetryIfError = (error: unknown, attempt: number) => boolean | undefined;

export interface RetryIf<T> {
  error?: RetryIfError | undefined;
  /** True: this result is a failure, try again. */
  result?: ((result: T, attempt: number) => boolean) | undefined;
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
