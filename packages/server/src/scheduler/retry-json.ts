import { MAX_DEPTH, tooDeepAt } from '../json-depth.ts';
import {
  type Classification,
  classifications,
  type Decoded,
  isInt32,
  type RetryFields,
  type RetryMessage,
  unreadable,
} from './retry-fields.ts';

/** Strict about types; `null` is as good as absent; names that are not known are passed over. */
export function decodeJson(bytes: Uint8Array): Decoded {
  let data: unknown;
  try {
    const text = utf8.decode(bytes);
    if (tooDeepAt(text) !== undefined) {
      return unreadable(`Its JSON is nested more than ${MAX_DEPTH} levels deep.`);
    }
    data = JSON.parse(text);
  } catch {
    // Without the parser's own words: they quote the message.
    return unreadable('It is not JSON in UTF-8.');
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return unreadable('It is JSON, but no object.');
  }
  const given = data as Record<string, unknown>;
  const fields: RetryFields = {};
  for (const read of readers) {
    const why = read(given, fields);
    if (why) return unreadable(why);
  }
  return { type: 'fields', fields };
}

/** `buffer`: the payload as Node's JSON.stringify writes a Buffer. */
export function encodeJson(
  message: RetryMessage,
  payload: 'base64' | 'buffer' = 'base64',
): Uint8Array {
  const bytes = Buffer.from(message.originalPayload);
  return Buffer.from(
    JSON.stringify({
      message_id: message.messageId,
      original_payload: payload === 'base64' ? bytes.toString('base64') : bytes,
      original_queue: message.originalQueue,
      error_reason: message.errorReason,
      retry_count: message.retryCount,
      max_retries: message.maxRetries,
      next_retry_at_ms: message.nextRetryAtMs,
      classification: message.classification,
    }),
  );
}

/** Reads one field; the answer is what is wrong with it. */
type FieldReader = (given: Record<string, unknown>, fields: RetryFields) => string | undefined;

const utf8 = new TextDecoder('utf-8', { fatal: true });

const INT64_MAX = 2 ** 63;
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

const readers: readonly FieldReader[] = [
  (given, fields) => {
    const { message_id: id } = given;
    if (typeof id !== 'string') return 'message_id is not a UUID.';
    fields.messageId = id;
    return undefined;
  },
  (given, fields) => {
    const bytes = payloadOf(given['original_payload']);
    if (!bytes) return 'original_payload is neither base64 nor a Buffer.';
    fields.originalPayload = bytes;
    return undefined;
  },
  (given, fields) => {
    const queue = given['original_queue'] ?? '';
    if (typeof queue !== 'string') return 'original_queue is not a text.';
    fields.originalQueue = queue;
    return undefined;
  },
  (given, fields) => {
    const reason = given['error_reason'] ?? '';
    if (typeof reason !== 'string') return 'error_reason is not a text.';
    if (reason) fields.errorReason = reason;
    return undefined;
  },
  (given, fields) => {
    const count = given['retry_count'] ?? 0;
    if (typeof count !== 'number' || !isInt32(count) || count < 0)
      return 'retry_count is not an int32 from 0 on.';
    fields.retryCount = count;
    return undefined;
  },
  (given, fields) => {
    const most = given['max_retries'] ?? undefined;
    if (most === undefined) return undefined;
    if (typeof most !== 'number' || !isInt32(most)) return 'max_retries is not an int32.';
    fields.maxRetries = most;
    return undefined;
  },
  (given, fields) => {
    const time = given['next_retry_at_ms'] ?? 0;
    const ms = timeOf(time);
    if (ms === undefined) return 'next_retry_at_ms is not an int64, as a number or a text.';
    if (ms !== 0) fields.nextRetryAtMs = ms;
    return undefined;
  },
  (given, fields) => {
    fields.classification = classOf(given['classification'] ?? 0);
    return undefined;
  },
];

/** Nothing that is left out: of a name that was misspelt an empty message would be sent in place of the payload. */
export function payloadOf(value: unknown): Uint8Array | undefined {
  if (typeof value === 'string') return isBase64(value) ? Buffer.from(value, 'base64') : undefined;
  const { type, data } = Object(value) as { type?: unknown; data?: unknown };
  if (type !== 'Buffer' || !Array.isArray(data)) return undefined;
  return data.every(isByte) ? Uint8Array.from(data) : undefined;
}

/** Of either alphabet, padded or not. Node passes over whatever else it finds, and the bytes would be others. */
function isBase64(text: string): boolean {
  const isPadded = text.endsWith('=');
  return base64.test(text) && (isPadded ? text.length % 4 === 0 : text.length % 4 !== 1);
}

function isByte(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}

/** A number may have a fraction (now and a random delay, say): up, so that nothing is early. */
function timeOf(value: unknown): number | undefined {
  const isText = typeof value === 'string' && /^-?\d{1,19}$/.test(value);
  const ms = isText ? Number(value) : value;
  if (typeof ms !== 'number' || !(ms >= -INT64_MAX && ms <= INT64_MAX)) return undefined;
  return Math.ceil(ms) + 0;
}

function classOf(value: unknown): Classification {
  const name = typeof value === 'number' ? classifications[value] : value;
  return classifications.find((one) => one === name) ?? 'UNKNOWN';
}
