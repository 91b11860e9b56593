/** What kind of failure it was. `retryOn` and `neverOn` may name these. */
export type FailureClass = 'transient' | 'business' | 'technical' | 'unknown';

export const failureClasses: readonly FailureClass[] = [
  'transient',
  'business',
  'technical',
  'unknown',
];

/** A failure as data: what `decide` looks at, and what an audit trail keeps. */
export interface Failure {
  class: FailureClass;
  /** The machine-readable code: `ECONNRESET`, `HTTP_503`, `UNAVAILABLE`. */
  code?: string;
  message?: string;
  /** The error's name, then those of the classes it extends, most specific first. */
  names?: readonly string[];
  /** The HTTP status, where there was one. */
  status?: number;
  /** What the other side asked for: do not come back before this. */
  retryAfterMs?: number;
  /** True when the work surely did not run: connection refused, name not found, 429. */
  notExecuted?: boolean;
  /** False when this failure consumes no attempt (breaker open, a rule that says so). */
  counted?: boolean;
}

export function statusText({ status }: Failure): string | undefined {
  return typeof status === 'number' ? String(status) : undefined;
}

/** A failure may come from outside, where the names can be anything. */
export function namesIn({ names }: Failure): readonly string[] {
  return Array.isArray(names) ? (names as string[]) : [];
}
