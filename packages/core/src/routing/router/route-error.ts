import type { RouteExplanation } from '../explain-route.ts';

/** One call of a provider. Times are ms since the call of the router began. */
export interface RouteAttemptRecord {
  provider: string;
  /** 1-based, over the whole call. */
  attempt: number;
  startedAtMs: number;
  durationMs: number;
  /** The wait before this attempt. */
  waitedMs: number;
  /** `abandoned`: another provider answered first, or the caller aborted. */
  outcome: 'ok' | 'failed' | 'abandoned';
  /** What it failed with, as rules compare it. */
  status?: string;
  error?: unknown;
  /** Why this provider was called. */
  explanation: RouteExplanation;
  /** True: it was started beside an attempt that had not answered yet. */
  hedge?: boolean;
}

export type RouteErrorCode =
  | 'NO_FALLBACK'
  | 'NO_PROVIDERS'
  | 'EXHAUSTED'
  | 'DEADLINE'
  | 'BUDGET'
  | 'ABORTED'
  | 'RETRY_AFTER_TOO_LONG'
  | 'STREAM_CUT'
  | 'NOT_REPEATED';

interface RouteErrorDetails {
  attempts: readonly RouteAttemptRecord[];
  explanation?: RouteExplanation | undefined;
  cause?: unknown;
  retryAfterMs?: number | undefined;
  result?: unknown;
}

/** No provider answered. `code` says why, `cause` is the last error, `attempts` has every call. */
export class RouteError extends Error {
  override readonly name = 'RouteError';
  readonly code: RouteErrorCode;
  readonly attempts: readonly RouteAttemptRecord[];
  /** The last decision. */
  declare readonly explanation?: RouteExplanation;
  /** When a provider may be back. */
  declare readonly retryAfterMs?: number;
  /** The last value, where `refuse` had called it a failure. */
  declare readonly result?: unknown;

  constructor(code: RouteErrorCode, details: RouteErrorDetails) {
    const { attempts, explanation, cause, retryAfterMs, result } = details;
    const times = `${attempts.length} attempt${attempts.length === 1 ? '' : 's'}`;
    const last = attempts.findLast(({ outcome }) => outcome === 'failed');
    const why = last ? ` The last failure was ${last.status} of ${last.provider}.` : '';
    super(`${sentences[code]} (${code}, ${times}).${why}`, { cause });
    this.code = code;
    this.attempts = attempts;
    if (explanation) this.explanation = explanation;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (result !== undefined) this.result = result;
  }
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isRouteError(error: unknown): error is RouteError {
  return (
    typeof error === 'object' &&
    error !== null &&
    (error as Error).name === 'RouteError' &&
    'attempts' in error
  );
}

const sentences: Readonly<Record<RouteErrorCode, string>> = {
  NO_FALLBACK: 'No rule leads to another provider',
  NO_PROVIDERS: 'No provider can be called now',
  EXHAUSTED: 'The call has used all attempts that maxAttempts allows',
  DEADLINE: 'The deadline passed, or the next attempt could not start before it',
  BUDGET: 'The retry budget is used up and there is no fallback',
  ABORTED: 'The caller aborted',
  RETRY_AFTER_TOO_LONG: 'The provider asked for a longer wait than maxRetryAfter',
  NOT_REPEATED: 'The attempt may have been executed, and mayRepeat forbids another one',
  STREAM_CUT: 'The stream ended before its end was seen',
};
