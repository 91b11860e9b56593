import type { ErrorCode } from '../errors.ts';

export type IdempotencyErrorCode = Extract<
  ErrorCode,
  `IDEMPOTENCY_${string}` | 'RESULT_NOT_STORED'
>;

/** A failure as it was stored. */
export interface StoredFailure {
  name: string;
  message: string;
  code?: string;
}

/** The work was not run, or its result is not what everybody gets. `code` says which. */
export class IdempotencyError extends Error {
  override readonly name = 'IdempotencyError';
  readonly code: IdempotencyErrorCode;
  /** What the work returned, where it ran in this call. */
  declare readonly result?: unknown;
  /** When the key may be free, for a caller that comes back. */
  declare readonly retryAfterMs?: number;
  /** What the work failed with before, where failures are stored. */
  declare readonly failure?: StoredFailure;

  constructor(
    code: IdempotencyErrorCode,
    message: string,
    details: {
      cause?: unknown;
      result?: unknown;
      retryAfterMs?: number;
      failure?: StoredFailure;
    } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    if ('result' in details) this.result = details.result;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    if (details.failure) this.failure = details.failure;
  }
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isIdempotencyError(error: unknown): error is IdempotencyError {
  return error instanceof Error && error.name === 'IdempotencyError';
}
