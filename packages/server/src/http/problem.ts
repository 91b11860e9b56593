/** What went wrong, as RFC 9457 has it: `application/problem+json` with a code for programs and a sentence for people. */
import { STATUS_CODES } from 'node:http';
import { type EngineErrorCode, isEngineError } from '@redrive/engine';
import { isNotificationError, type NotificationErrorCode } from '@redrive/notifications';
import { isConfigError } from 'redrive';
import { inServiceWords } from '../service-words.ts';
import { type Parts, placed, pointer, type WireFault, wireFaults } from './reading/faults.ts';

/** The codes of the API's own, each with its status. */
const ownStatuses = {
  INVALID_JSON: 400,
  JSON_TOO_DEEP: 400,
  INVALID_REQUEST: 400,
  INVALID_CURSOR: 400,
  ALL_REJECTED: 400,
  IDEMPOTENCY_KEY_INVALID: 400,
  TOO_LARGE_SIMULATION: 400,
  UNKNOWN_PROVIDER: 400,
  MALFORMED_REQUEST: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  HOST_NOT_ALLOWED: 403,
  CROSS_ORIGIN: 403,
  UNSAFE_PATH: 400,
  NOT_FOUND: 404,
  TASK_UNKNOWN: 404,
  CRITERION_UNKNOWN: 404,
  ROUTE_POLICY_UNKNOWN: 404,
  NOTIFICATIONS_OFF: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  AMBIGUOUS: 409,
  IDEMPOTENCY_CONFLICT: 409,
  TASK_OVER: 409,
  RESULT_NOT_STORED: 410,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  REQUEST_HEADERS_TOO_LARGE: 431,
  INTERNAL: 500,
  UPGRADE_NOT_SUPPORTED: 501,
  PROVIDER_FAILED: 502,
  NO_PROVIDER_AVAILABLE: 503,
  GATEWAY_BUSY: 503,
  ROUTING_BUSY: 503,
  PROVIDER_TIMEOUT: 504,
  NOT_STARTED: 503,
  STOPPING: 503,
  TOO_SLOW: 503,
  TOO_MANY_READERS: 503,
  TOO_MANY_CONNECTIONS: 503,
} as const;

const engineStatuses = {
  INVALID_TASK: 400,
  INVALID_ENGINE: 500,
  NO_DESTINATION: 400,
  ADDRESS_REFUSED: 400,
  UNKNOWN_POLICY: 400,
  INVALID_POLICY: 400,
  INVALID_PAYLOAD: 400,
  PAYLOAD_TOO_LARGE: 413,
  INVALID_ID: 400,
  NO_TRANSACTIONS: 500,
  NO_IDEMPOTENCY: 500,
  TRANSACTION_OVER: 500,
  TRANSACTION_CONTROL: 500,
  NOT_IN_TRANSACTION: 500,
  IDEMPOTENCY_MISMATCH: 422,
  INTAKE_FULL: 503,
  ENGINE_STOPPED: 503,
  STORE_UNAVAILABLE: 503,
  STORE_READ_ONLY: 503,
  STORE_DENIED: 503,
  STORE_FULL: 503,
  STORE_CORRUPT: 503,
  STORE_FILE_LOST: 503,
  STORE_NOT_LOCAL: 503,
  SCHEMA_MISSING: 503,
  SCHEMA_TOO_NEW: 503,
  TABLE_NOT_OURS: 503,
  MIGRATION_LOCKED: 503,
  NODE_TOO_OLD: 500,
  PEER_MISSING: 500,
  ITEM_UNKNOWN: 404,
  ITEM_CLOSED: 409,
  ITEM_BUSY: 409,
  ITEM_CONFLICT: 409,
  EMPTY_FILTER: 400,
  NOTHING_MATCHES: 409,
  TOO_MANY_JOBS: 409,
  INVALID_FILTER: 400,
  JOB_UNKNOWN: 404,
  JOB_OVER: 409,
  AUDIT_UNREADABLE: 409,
  AUDIT_NOT_ERASED: 503,
  AUDIT_SINK_FAILED: 503,
  INVALID_ENTRY: 500,
  NOT_CAPABLE: 500,
  TOPIC_UNFIT: 503,
  QUEUE_CLOSED: 503,
  KEY_NOT_OURS: 503,
  QUEUE_MISMATCH: 503,
  NATS_UNAVAILABLE: 503,
  NATS_REFUSED: 500,
  NATS_NO_STREAM: 500,
  NATS_CLOSED: 503,
  NATS_WRONG_REVISION: 409,
  NATS_OUTCOME_UNKNOWN: 500,
} as const satisfies Record<EngineErrorCode, number>;

const notificationStatuses = {
  INVALID_RECORD: 400,
  RECORD_TOO_LARGE: 413,
  RECORD_UNREADABLE: 500,
  RECORD_CONTENDED: 503,
  INVALID_NOTIFICATION: 400,
  INVALID_REPORT: 400,
  UNKNOWN_PRIORITY: 400,
  INVALID_QUIET_HOURS: 400,
  NOTIFICATION_UNKNOWN: 404,
  NOTIFICATION_EXISTS: 409,
  IDEMPOTENCY_KEY_REUSED: 422,
  DEVICE_UNKNOWN: 404,
  TOO_MANY_DEVICES: 409,
  ILLEGAL_MOVE: 409,
  DEVICE_ANSWER_INVALID: 502,
  INVALID_NOTIFICATIONS: 500,
  NOTIFICATIONS_STOPPED: 503,
} as const satisfies Record<NotificationErrorCode, number>;

type OwnCode = keyof typeof ownStatuses;
export type ProblemCode = OwnCode | EngineErrorCode | NotificationErrorCode;

/** Every code that an answer may have, with its status. */
export const statuses: Readonly<Record<ProblemCode, number>> = {
  ...ownStatuses,
  ...engineStatuses,
  ...notificationStatuses,
};

const RETRY_AFTER_S = 5;

interface ProblemDetails {
  /** Everything that is wrong with the request, each at its place. */
  faults?: readonly WireFault[];
  /** More members of the answer. */
  more?: Readonly<Record<string, unknown>>;
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/** Thrown by whatever answers a request; the one error handler writes it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly status: number;
  readonly faults: readonly WireFault[];
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, detail: string, details: ProblemDetails = {}) {
    super(detail, 'cause' in details ? { cause: details.cause } : {});
    this.code = code;
    this.status = statuses[code];
    this.faults = details.faults ?? [];
    this.more = details.more ?? {};
    const wait = this.status === 503 ? { 'retry-after': String(RETRY_AFTER_S) } : {};
    this.headers = { ...wait, ...details.headers };
  }

  /** As it goes over the wire, in answer to that request. */
  toText(request?: Parts): string {
    const faults = request ? placed(this.faults, request) : this.faults;
    const errors = faults.length > 0 ? { errors: faults } : {};
    return JSON.stringify({
      type: 'about:blank',
      title: STATUS_CODES[this.status],
      status: this.status,
      code: this.code,
      detail: this.message,
      ...errors,
      ...this.more,
    });
  }
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** What a store says of itself (paths, hosts) is for the log, and what the engine says of its methods for programmers. */
export const sentences: Partial<Record<EngineErrorCode, string>> = {
  STORE_UNAVAILABLE:
    'The store cannot be reached now. Ask again; with the same message_id it is safe.',
  STORE_READ_ONLY: 'The store can be read but not written. See the log of the service.',
  STORE_DENIED:
    'A server refused the connection of the service: its user, its password or a certificate is wrong. See the log of the service.',
  STORE_FULL: 'The disk of the store is full. What was stored is safe.',
  STORE_CORRUPT: 'The store is damaged. See the log of the service.',
  STORE_FILE_LOST:
    'The file of the store was deleted, moved or replaced. Nothing was stored. See the log of the service.',
  STORE_NOT_LOCAL: 'The store is on a network file system. See the log of the service.',
  SCHEMA_MISSING: 'The tables are missing. Run `redrive migrate`.',
  SCHEMA_TOO_NEW: 'The tables belong to a newer Redrive. Upgrade this instance.',
  TABLE_NOT_OURS: 'There is a table `retry_queue` that is not ours. See the log of the service.',
  MIGRATION_LOCKED: 'The tables are being changed. Ask again.',
  ITEM_CONFLICT:
    'The same message is already known at that destination: it waits, was done, or has failed there.',
  IDEMPOTENCY_MISMATCH:
    'This Idempotency-Key was used for another payload. Use another one, or on_conflict: "duplicate" to keep the first message.',
  ENGINE_STOPPED: 'The service stops. Ask another instance, or again when it is back.',
};

/** The problem that an error of ours or of fastify is. `INTERNAL` for what nobody foresaw. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isEngineError(error)) {
    const { message, faults } = error;
    // A policy is a part of the request like any other.
    const code = error.code === 'INVALID_POLICY' ? 'INVALID_REQUEST' : error.code;
    return new Problem(code, sentenceOf(code, message, faults.length), {
      faults: wireFaults(faults),
      cause: error,
    });
  }
  if (isNotificationError(error)) {
    const faults = error.faults.map(({ path, code, message }) => ({
      in: 'body' as const,
      path: pointer(path.split('.')),
      code,
      message,
    }));
    return new Problem(error.code, error.message, { faults, cause: error });
  }
  if (isConfigError(error)) {
    // Only policies are data of a request; everything else was checked at the start.
    const faults = wireFaults(error.faults, ['policy']);
    return new Problem('INVALID_REQUEST', 'The policy has faults.', { faults, cause: error });
  }
  return problemOfFastify(error);
}

function sentenceOf(code: ProblemCode, message: string, faults: number): string {
  if (code === 'NO_DESTINATION' && faults === 0) {
    return 'The message could not be read, so nobody knows where it belongs. Give a destination, and the payload it should have had.';
  }
  const known = sentences[code as EngineErrorCode];
  if (known !== undefined) return known;
  // The engine lists them by its own names, and `errors` has each at its place.
  return faults > 1 ? `The request has ${faults} faults.` : inServiceWords(message);
}

function problemOfFastify(error: unknown): Problem {
  const { code, statusCode } = Object(error) as { code?: unknown; statusCode?: unknown };
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Problem(
        'BODY_TOO_LARGE',
        'The body is over the limit. Send fewer items at a time.',
      );
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Problem(
        'UNSUPPORTED_MEDIA_TYPE',
        'Send the header `content-type: application/json`, and do not compress the body.',
      );
    default:
      return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
        ? new Problem('MALFORMED_REQUEST', 'The request could not be read.', { cause: error })
        : new Problem('INTERNAL', 'Something unforeseen went wrong. See the log of the service.', {
            cause: error,
          });
  }
}
