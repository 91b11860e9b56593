import type { ErrorCode } from '../../errors.ts';
import type { IdempotencyError } from '../idempotency-error.ts';

/** A response that Redrive gives in place of the handler. */
export interface IdempotencyRefusal {
  status: number;
  code: RefusalCode;
  /** What happened, and what to do. */
  detail: string;
  /** `retry-after`, where it helps to come back. */
  headers: Readonly<Record<string, string>>;
  /** More members of the problem document. */
  more: Readonly<Record<string, unknown>>;
  /** For the log of the service, not for clients. */
  cause?: unknown;
}

type RefusalCode = keyof typeof statuses;

const statuses = {
  IDEMPOTENCY_KEY_MISSING: 400,
  IDEMPOTENCY_KEY_INVALID: 400,
  IDEMPOTENCY_CONFLICT: 409,
  IDEMPOTENCY_ABANDONED: 409,
  RESULT_NOT_STORED: 410,
  IDEMPOTENCY_BODY_TOO_LARGE: 413,
  IDEMPOTENCY_MISMATCH: 422,
  IDEMPOTENCY_RECORD_INVALID: 500,
  IDEMPOTENCY_STORE_FAILED: 503,
} as const satisfies Partial<Record<ErrorCode, number>>;

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

const details: Readonly<Record<RefusalCode, string>> = {
  IDEMPOTENCY_KEY_MISSING:
    'The request has no Idempotency-Key. Send one that is new for each piece of work, such as a UUID, and the same one with each retry.',
  IDEMPOTENCY_KEY_INVALID:
    'The Idempotency-Key cannot be read. Send one key of 1 to 255 visible ASCII characters, bare or in double quotes, such as "8e03978e-40d5-43dd-bc93-6894a57f9324".',
  IDEMPOTENCY_CONFLICT:
    'A request with this Idempotency-Key is being processed. Send the request again after Retry-After for its result.',
  IDEMPOTENCY_ABANDONED:
    'A request with this Idempotency-Key was not finished, and nobody knows whether its work was done. Ask the operator of the service.',
  RESULT_NOT_STORED:
    'A request with this Idempotency-Key was processed before, and its response was not kept. The work was not done again. Read the result from the resource itself.',
  IDEMPOTENCY_BODY_TOO_LARGE:
    'The body of a request with an Idempotency-Key is over the limit. Send a smaller one.',
  IDEMPOTENCY_MISMATCH:
    'This Idempotency-Key was used with another URL or body before. Use a new key for a new request.',
  IDEMPOTENCY_RECORD_INVALID:
    'What is stored for this Idempotency-Key is not a response. The work was not done again. Ask the operator of the service.',
  IDEMPOTENCY_STORE_FAILED:
    'The store of idempotency keys could not be asked, so the request was not processed. Send the request again with the same key.',
};

/** A handler mostly ends long before its lease, so a client need not wait for that. */
const MAX_RETRY_AFTER_S = 5;

export function refusal(
  code: RefusalCode,
  more: Readonly<Record<string, unknown>> = {},
  retryAfterMs?: number,
): IdempotencyRefusal {
  const headers: Record<string, string> = {};
  if (retryAfterMs !== undefined) {
    const seconds = Math.ceil(retryAfterMs / 1000);
    headers['retry-after'] = String(Math.min(Math.max(1, seconds), MAX_RETRY_AFTER_S));
  }
  return { status: statuses[code], code, detail: details[code], headers, more };
}

/** What an error of `idempotent` means to a client. The text of the store's own error is not for clients. */
export function refusalOf(error: IdempotencyError): IdempotencyRefusal {
  return { ...clientRefusal(error), cause: error };
}

function clientRefusal({ code, retryAfterMs = 0 }: IdempotencyError): IdempotencyRefusal {
  if (code === 'IDEMPOTENCY_CONFLICT') return refusal(code, {}, retryAfterMs);
  if (code === 'IDEMPOTENCY_FAILED_BEFORE') return refusal('IDEMPOTENCY_RECORD_INVALID');
  if (Object.hasOwn(statuses, code) && code !== 'IDEMPOTENCY_STORE_FAILED') {
    return refusal(code as RefusalCode);
  }
  return refusal('IDEMPOTENCY_STORE_FAILED', {}, MAX_RETRY_AFTER_S * 1000);
}

/** A problem document (RFC 9457) with a code for programs and a link for people. */
export function problemOf(
  { status, code, detail, headers, more }: IdempotencyRefusal,
  describedBy: string,
): { status: number; headers: Record<string, string>; body: string } {
  const title = titles[status];
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      link: `<${describedBy}>; rel="describedby"; type="text/html"`,
      ...headers,
    },
    body: JSON.stringify({ type: describedBy, title, status, code, detail, ...more }),
  };
}
