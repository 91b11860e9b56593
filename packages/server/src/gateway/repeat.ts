/** Whether a request may be sent again after a failure. Pure. */

export interface Sent {
  method: string;
  hasIdempotencyKey: boolean;
  /** False: the body was streamed, and is gone. */
  isBodyKept: boolean;
  /** The provider's file says that repeating is fine. */
  isRetryUnsafe: boolean;
  /** Whether the provider can have got anything of the request. */
  wasReached: boolean;
  /** The status of the provider's answer, where there was one. */
  status: number | undefined;
  hasRetryAfter: boolean;
}

/** RFC 9110, section 9.2.2: the effect of several such requests is that of one. */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

export function mayRepeat(sent: Sent): boolean {
  if (!sent.isBodyKept) return false;
  if (idempotent.has(sent.method) || sent.hasIdempotencyKey || sent.isRetryUnsafe) return true;
  return !sent.wasReached || isRefusal(sent);
}

/** The provider says that it has not executed the request: it found fault with it, or told the client to come later. */
function isRefusal({ status = 0, hasRetryAfter }: Sent): boolean {
  return (status >= 400 && status < 500) || (status === 503 && hasRetryAfter);
}
