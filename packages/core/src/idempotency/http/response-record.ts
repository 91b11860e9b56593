import { isObject } from '../../options/fields.ts';

/** A response as it is stored and sent again. */
export interface KeptResponse {
  status: number;
  /** Names in lower case. A name may come twice. */
  headers: readonly HeaderPair[];
  /** Absent where the body was not kept; `unkept` says why then. */
  body?: Uint8Array;
  unkept?: string;
}

export type HeaderPair = readonly [name: string, value: string];

/** The JSON of a kept response. A body of UTF-8 is a text, so that operators can read it in the store. */
interface ResponseRecord {
  status: number;
  headers: HeaderPair[];
  text?: string;
  base64?: string;
  unkept?: string;
}

/**
 * Whether a response leaves the key free: the client is expected to try again, and the next try may work. A status that
 * is none (101, 0) has no body to keep.
 */
export function releasesKey(status: number): boolean {
  return status < 200 || status >= 500 || status === 408 || status === 425 || status === 429;
}

const MAX_HEADERS = 100;
const MAX_HEADER_CHARACTERS = 16 * 1024;

export function toRecord({ status, headers, body, unkept }: KeptResponse): ResponseRecord {
  const kept = keptHeaders(headers);
  const size = kept.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (kept.length > MAX_HEADERS || size > MAX_HEADER_CHARACTERS) {
    const limits = `${MAX_HEADERS} headers with ${MAX_HEADER_CHARACTERS} characters`;
    return { status, headers: [], unkept: `its headers are over the limit of ${limits}` };
  }
  const record = { status, headers: kept };
  if (!body) return { ...record, unkept: unkept ?? 'it was not sent as one body' };
  const text = asText(body);
  return text === undefined ? { ...record, base64: toBase64(body) } : { ...record, text };
}

/** The response that was stored; undefined where something else is. A store is not trusted with headers. */
export function fromRecord(record: unknown): KeptResponse | undefined {
  if (!isObject(record) || !Array.isArray(record['headers'])) return undefined;
  const { status, text, base64, unkept } = record;
  if (!isStatus(status)) return undefined;
  const headers = keptHeaders((record['headers'] as unknown[]).filter(isPair));
  if (typeof unkept === 'string') return { status, headers, unkept };
  if (typeof text === 'string') return { status, headers, body: new TextEncoder().encode(text) };
  const body = typeof base64 === 'string' ? fromBase64(base64) : undefined;
  return body && { status, headers, body };
}

/** Responses that never have a body. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/**
 * Never stored: what belongs to one connection (RFC 9110, 7.6.1), to one moment, or to one client. A cookie may be a
 * session.
 */
const unstored = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'date',
  'age',
  'set-cookie',
  'set-cookie2',
  'idempotency-replayed',
]);

const headerName = /^[!#$%&'*+\-.^`|~\w]+$/;
/** No control character: a line break would start another header. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

function keptHeaders(headers: readonly HeaderPair[]): HeaderPair[] {
  const lower = headers.map(([name, value]): HeaderPair => [name.toLowerCase(), value]);
  const named = lower
    .filter(([name]) => name === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(','));
  const dropped = new Set([...unstored, ...named.map((name) => name.trim())]);
  return lower.filter(
    ([name, value]) => !dropped.has(name) && headerName.test(name) && headerValue.test(value),
  );
}

function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599;
}

function isPair(pair: unknown): pair is HeaderPair {
  return Array.isArray(pair) && typeof pair[0] === 'string' && typeof pair[1] === 'string';
}

function asText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // Not UTF-8.
  }
}

/** `fromCharCode` takes as many arguments as fit on the stack. */
const PIECE = 8192;

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += PIECE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(binary);
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined; // Not base64.
  }
}
