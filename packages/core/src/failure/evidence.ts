import type { Clock } from '../clock.ts';
import type { RetryError } from '../errors.ts';
import { isNetworkMessage, neverConnected } from '../fetch/network-errors.ts';
import { type Failure, type FailureClass, failureClasses } from './failure.ts';
import { header, parseNumber, parseRetryAfter, wholeMs } from './retry-after.ts';

/** What is known of a failure so far. */
export type Evidence = Partial<Failure>;

/** One more place to look, of an error whose codes and names say nothing. */
export type Look = (error: unknown, names: readonly string[]) => Evidence | undefined;

/** The wall clock, for a Retry-After date in a response that has no `Date` of its own. */
export type Now = Pick<Clock, 'now'>;

/** Anything that was thrown, as the object it may be. */
interface Thrown {
  [key: string]: unknown;
}

const maxCauses = 8;
const maxNames = 16;
const maxMessage = 1024;

// The last four were Bun's before it took over Node's.
const transientCodes =
  /^(?:E(?:TIMEDOUT|CONN(?:REFUSED|RESET|ABORTED)|(?:NET|HOST)(?:UNREACH|DOWN)|PIPE|AI_AGAIN|NOTFOUND|NOMEM|[MN]FILE|AGAIN|BUSY|NOBUFS)|UND_ERR_(?:(?:CONNECT|HEADERS|BODY)_TIMEOUT|SOCKET)|ERR_(?:STREAM_PREMATURE_CLOSE|TLS_HANDSHAKE_TIMEOUT)|Connection(?:Refused|Closed|Reset)|FailedToOpenSocket)$/;
const technicalCodes =
  /^(?:E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|INVAL|NOSPC)|(?:CERT|ERR_TLS|ERR_INVALID)_.*|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT(?:_IN_CHAIN)?|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT.*))$/;
const notExecutedCodes =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

// By number, and for each the index of its class in `failureClasses`; OK speaks for none.
const grpcCodes =
  'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED'.split(
    ' ',
  );
const grpcClasses = '-2310111010122021';

const mistakes = /^(?:Type|Reference|Range|Syntax|Eval|URI|Assertion)Error$/;

/**
 * A failure from what an error carries: codes and statuses, here or down the causes, then names. `look` is asked
 * where those say nothing. Total: there is nothing it throws on.
 */
export function examine(error: unknown, clock?: Now, look?: Look): Failure {
  try {
    return inspect(error, clock, look);
  } catch {
    // Getters and proxies can throw: then nothing is known.
    return { class: 'unknown' };
  }
}

function inspect(error: unknown, clock: Now | undefined, look: Look | undefined): Failure {
  const failure: Failure = { class: 'unknown' };
  const message = Object(error) === error ? messageOf(error) : String(error);
  if (message !== undefined) {
    failure.message = message.length > maxMessage ? message.slice(0, maxMessage) : message;
  }
  const names = namesOf(error);
  if (names.length > 0) failure.names = names;

  // Codes and statuses anywhere come before names and words anywhere, which are easily wrong.
  const links = chainOf(error);
  const own: Evidence = {};
  const below: Evidence = {};
  let weak: Evidence | undefined;
  for (let i = 0; i < links.length && !own.class && !below.class; i++) {
    carried(links[i] as Thrown, i > 0 ? below : own, clock);
  }
  for (let i = 0; i < links.length && !own.class && !below.class && !weak; i++) {
    const called = i > 0 ? namesOf(links[i]) : names;
    weak = named(links[i], called) ?? look?.(links[i], called);
  }
  if (links.length > 1) Object.assign(failure, below);
  if (weak) Object.assign(failure, weak);
  Object.assign(failure, own);
  if (failure.status) failure.code ??= `HTTP_${failure.status}`;
  return failure;
}

/** The error and its causes. A ring of them ends by its length. */
function chainOf(error: unknown): unknown[] {
  const links: unknown[] = [];
  let link = error;
  while (link != null && links.length <= maxCauses) {
    links.push(link);
    link = (link as Thrown)['cause'];
  }
  return links;
}

/** The strong evidence, put there for machines. Of each kind the nearest stays. */
function carried(error: Thrown, found: Evidence, clock: Now | undefined): void {
  const { status, statusCode, response, $metadata, metadata, headers, decision } = error;
  const inner = (decision as Thrown | undefined)?.['failure'] as Failure | undefined;
  if (failureClasses.includes(inner?.class as FailureClass)) {
    return gaveUp(error, inner as Failure, found);
  }
  const code = codeOf(error);
  const httpStatus =
    statusOf(status) ??
    statusOf(statusCode) ??
    statusOf((response as Thrown | undefined)?.['status']) ??
    statusOf(($metadata as Thrown | undefined)?.['httpStatusCode']);
  if (code !== undefined || httpStatus !== undefined) {
    const kind = classOf(code, httpStatus);
    if (kind) found.class ??= kind;
    if (code !== undefined) found.code ??= code;
    if (httpStatus !== undefined) found.status ??= httpStatus;
    if (httpStatus === 429 || notExecutedCodes.test(code ?? '')) found.notExecuted = true;
  }
  const pushback = metadata ? header(metadata, 'grpc-retry-pushback-ms') : '';
  const waitMs =
    wholeMs(error['retryAfterMs']) ??
    (pushback ? wholeMs(parseNumber(pushback)) : undefined) ??
    retryAfter(headers) ??
    retryAfter((response as Thrown | undefined)?.['headers']);
  if (waitMs !== undefined) found.retryAfterMs ??= waitMs;
  // Pushback that is no wait says: do not come back.
  if (pushback && waitMs === undefined) found.class = 'technical';

  function retryAfter(given: unknown): number | undefined {
    return given ? parseRetryAfter(given, clock?.now(), httpStatus) : undefined;
  }
}

/** What gave up inside is judged by what it gave up on, unless somebody wanted it to. */
function gaveUp(error: Thrown, failure: Failure, found: Evidence): void {
  const { history, attempts, retryAfterMs } = error as Partial<RetryError>;
  const aborted = error['code'] === 'ABORTED';
  note(found, 'class', aborted ? 'technical' : failure.class);
  note(found, 'code', aborted ? 'ABORT_ERR' : failure.code);
  note(found, 'status', failure.status);
  note(found, 'retryAfterMs', wholeMs(retryAfterMs));
  // Its last attempt did not run, perhaps, but did an earlier one?
  const isWhole = history?.length === attempts;
  if (isWhole && history?.every((each) => each.failure.notExecuted)) found.notExecuted = true;
  if (attempts === 0 && failure.counted === false) found.counted = false;
}

function codeOf(error: Thrown): string | undefined {
  const { code, metadata } = error;
  if (typeof code === 'string') return code;
  // Small numbers are codes of many things: DOMException's, errno's, an application's own.
  const isGrpc =
    typeof code === 'number' &&
    (typeof error['details'] === 'string' ||
      Object(metadata) === metadata ||
      ['ConnectError', 'ClientError'].includes(error['name'] as string));
  return isGrpc ? grpcCodes[code] : undefined;
}

function classOf(code = '', status = 0): FailureClass | undefined {
  if (transientCodes.test(code)) return 'transient';
  if (technicalCodes.test(code)) return 'technical';
  if (status >= 500 || [408, 425, 429].includes(status)) return 'transient';
  if (status >= 400) return 'business';
  return failureClasses[Number(grpcClasses[grpcCodes.indexOf(code)])];
}

/** The weak evidence: what the error is called. */
function named(error: unknown, names: readonly string[]): Evidence | undefined {
  if (names === justError) return undefined;
  if (names.includes('AbortError')) return { class: 'technical', code: 'ABORT_ERR' };
  if (names.includes('TimeoutError')) return { class: 'transient', code: 'TIMEOUT' };
  if (names.includes('TypeError')) {
    // What has no message has no names either.
    const message = messageOf(error)!;
    if (isNetworkMessage(message)) return failedFetch(message, (error as Thrown)['cause']);
  }
  return names.some((name) => mistakes.test(name)) ? { class: 'technical' } : undefined;
}

function failedFetch(message: string, cause: unknown): Evidence {
  const evidence: Evidence = { class: 'transient', code: 'FETCH_FAILED' };
  if (neverConnected(message) || neverConnected(messageOf(cause) ?? ''))
    evidence.notExecuted = true;
  return evidence;
}

function statusOf(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) < 600
    ? (value as number)
    : undefined;
}

export function messageOf(error: unknown): string | undefined {
  const message = typeof error === 'string' ? error : (error as Thrown | undefined)?.['message'];
  return typeof message === 'string' ? message : undefined;
}

const justError: readonly string[] = ['Error'];

/** The name, then those of the classes, the most specific first. */
function namesOf(error: unknown): readonly string[] {
  if (Object(error) !== error || messageOf(error) === undefined) return [];
  let name = (error as Thrown)['name'];
  let type: unknown = Object.getPrototypeOf(error);
  if (name === 'Error' && type === Error.prototype) return justError;
  const names: string[] = [];
  for (let i = 0; typeof name === 'string' && i < maxNames; i++) {
    if (name && name !== 'Object' && !names.includes(name)) names.push(name);
    name = (type as Thrown | null)?.constructor?.name;
    type = type && Object.getPrototypeOf(type);
  }
  // A class that sets no name of its own is called Error first, though that says the least.
  if (names[0] === 'Error') names.push(...names.splice(0, 1));
  return names;
}

/** Of each kind the nearest stays, and what is absent is no key at all. */
function note<K extends keyof Failure>(
  found: Evidence,
  key: K,
  value: Failure[K] | undefined,
): void {
  if (value !== undefined) found[key] ??= value as Evidence[K];
}
