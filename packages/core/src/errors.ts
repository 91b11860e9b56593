import type { GiveUp } from './decide.ts';
import type { Failure } from './failure/failure.ts';

/** Every code a user of core can meet. `docs/reference/errors.md` has a line for each; `tidy` checks that. */
export const errorCodes = {
  INVALID_POLICY: 'A policy has faults; `faults` lists all of them.',
  INVALID_CONFIG: 'An options object has faults; `faults` lists all of them.',
  INVALID_DURATION: 'Not a duration: a number of ms, or a text such as 250ms, 2s, 5m, 1h, 1d.',
  INVALID_VALUE: 'A value of the wrong kind or out of its range.',
  UNKNOWN_FIELD: 'A field that does not exist; the message suggests the nearest one.',
  NOT_A_FUNCTION: 'What is to be retried is not a function.',
  EXHAUSTED: 'Every attempt that the policy allows has failed.',
  PERMANENT: 'A failure that the policy does not retry.',
  DEADLINE: 'The deadline passed, or the next attempt could not start before it.',
  BUDGET: 'The shared retry budget is used up.',
  CIRCUIT_OPEN: 'The circuit breaker is open, and waiting for it was not possible.',
  BULKHEAD_FULL: 'The bulkhead has no place for the attempt, and its queue is full.',
  ABORTED: 'The caller aborted.',
  RETRY_AFTER_TOO_LONG: 'The server asked for a longer wait than `maxRetryAfter`.',
  TOO_MANY_UNCOUNTED: 'More than `maxUncounted` failures that consume no attempt.',
  INVALID_CONTEXT: 'A routing context has faults; `faults` lists all of them.',
  UNKNOWN_PROVIDER: 'A routing context names a provider that its policy does not have.',
  NO_FALLBACK: 'No rule of the routing policy leads to another provider.',
  NO_PROVIDERS: 'No provider of the routing policy can be called now.',
  NOT_REPEATED: 'A failed attempt may have been executed, and must not be repeated.',
  STREAM_CUT: 'A streaming answer ended before its end was seen.',
  BEFORE_RETRY_FAILED: 'The callback `beforeRetry` failed, so the next attempt was not started.',
  INVALID_KEY: 'An idempotency key, or a part of one, is empty, too long or not a text.',
  NOT_JSON: 'A payload, a part of a key or metadata that JSON cannot carry.',
  IDEMPOTENCY_CONFLICT: 'Another caller runs the work of this key now.',
  IDEMPOTENCY_MISMATCH: 'The key was used with another payload before.',
  IDEMPOTENCY_ABANDONED:
    'An earlier owner of the key was not heard of again; its outcome is unknown.',
  IDEMPOTENCY_LEASE_LOST: 'The claim on the key was lost while the work ran.',
  IDEMPOTENCY_STORE_FAILED: 'The idempotency store could not be asked.',
  IDEMPOTENCY_STORE_FULL: 'The memory store has as many keys as it may keep.',
  IDEMPOTENCY_FAILED_BEFORE: 'The work failed before, and its failure was stored.',
  IDEMPOTENCY_KEY_MISSING: 'A request without an `Idempotency-Key`, where one is required.',
  IDEMPOTENCY_KEY_INVALID: 'An `Idempotency-Key` that cannot be read.',
  IDEMPOTENCY_BODY_TOO_LARGE: 'A request with an `Idempotency-Key` whose body is over the limit.',
  IDEMPOTENCY_BODY_UNAVAILABLE: 'The body of a request cannot be compared with that of another.',
  IDEMPOTENCY_RECORD_INVALID: 'What is stored for an `Idempotency-Key` is not a response.',
  RESULT_NOT_STORED: 'The work was done, but its result is too large or not JSON.',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** One thing that is wrong with a policy or an options object. */
export interface Fault {
  /** Where: `overrides.429.base`. Empty when it is the whole value. */
  path: string;
  code: ErrorCode;
  message: string;
}

/** Thrown at the edge for input that cannot work. It lists every fault at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code: ErrorCode;
  readonly faults: readonly Fault[];

  constructor(code: ErrorCode, message: string, faults: readonly Fault[] = []) {
    const lines = faults.map((fault) => `\n  ${fault.path && `${fault.path}: `}${fault.message}`);
    super(message + lines.join(''));
    this.code = code;
    this.faults = faults;
  }
}

/** One execution that failed. */
export interface AttemptRecord {
  /** 1-based; an attempt that consumed nothing appears again under the same number. */
  attempt: number;
  error: unknown;
  failure: Failure;
  /** The wait that followed; absent on the last one. */
  delayMs?: number;
}

/** The work was given up. `code` says why, `cause` is the last error, `history` the attempts. */
export class RetryError extends Error {
  override readonly name = 'RetryError';
  declare readonly code: GiveUp['reason'];
  /** Executions that were started. */
  declare readonly attempts: number;
  /** The newest attempts (at most 50), oldest first. */
  declare readonly history: readonly AttemptRecord[];
  declare readonly decision: GiveUp;
  /** What the other side asked for, so that a durable queue can take over. */
  declare readonly retryAfterMs?: number;
  /** The last result, when it was a result that had been refused. */
  declare readonly result?: unknown;
  /** Of a retry manager: the code of the category, and the operation. */
  declare readonly category?: string;
  declare readonly operation?: string;

  constructor(
    decision: GiveUp,
    details: {
      attempts: number;
      history: readonly AttemptRecord[];
      cause: unknown;
      result?: unknown;
    },
  ) {
    const { reason, failure } = decision;
    const { attempts, cause } = details;
    // There the cause is not what the last attempt failed with.
    const isOther = reason === 'ABORTED' || reason === 'BEFORE_RETRY_FAILED';
    const other = isOther && cause instanceof Error ? cause.message : undefined;
    const code = failure.code === reason ? undefined : failure.code;
    const why = other ?? failure.message ?? code;
    const times = `${attempts} attempt${attempts === 1 ? '' : 's'}`;
    super(`Gave up after ${times} (${reason})${why ? `: ${why}` : '.'}`, { cause });
    this.code = reason;
    this.decision = decision;
    this.attempts = attempts;
    this.history = details.history;
    if ('result' in details) this.result = details.result;
    if (decision.retryAfterMs !== undefined) this.retryAfterMs = decision.retryAfterMs;
  }
}

/** Says in the error whose work was given up. */
export function nameWork(error: RetryError, category: string, operation: string): void {
  Object.assign(error, { category, operation });
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isRetryError(error: unknown): error is RetryError {
  return hasName(error, 'RetryError') && 'history' in (error as object);
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isConfigError(error: unknown): error is ConfigError {
  return hasName(error, 'ConfigError') && 'faults' in (error as object);
}

function hasName(error: unknown, name: string): boolean {
  return typeof error === 'object' && error !== null && (error as Error).name === name;
}
