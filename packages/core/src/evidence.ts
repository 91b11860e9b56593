import { failureClasses } from './failure.ts';
import type { Failure, FailureClass } from './failure.ts';
import { header, parseNumber, parseRetryAfter, wholeMs } from './retry-after.ts';

/** What is known of a failure so far. */
export type Evidence = Partial<Failure>;

/** One more place to look, of an error whose codes and names say nothing. */
export type Look = (error: unknown, names: readonly string[]) => Evidence | undefined;

const maxCauses = 8;
export const maxMembers = 16;
const maxMessage = 1024;

const transientCodes =
  /^(?:E(?:TIMEDOUT|CONN(?:REFUSED|RESET|ABORTED)|(?:NET|HOST)(?:UNREACH|DOWN)|PIPE|AI_AGAIN|NOTFOUND|NOMEM|[MN]FILE|AGAIN|BUSY|NOBUFS)|UND_ERR_(?:(?:CONNECT|HEADERS|BODY)_TIMEOUT|SOCKET)|ERR_(?:STREAM_PREMATURE_CLOSE|TLS_HANDSHAKE_TIMEOUT))$/;
const technicalCodes =
  /^(?:E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|INVAL|NOSPC)|(?:CERT|ERR_TLS|ERR_INVALID)_.*|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT(?:_IN_CHAIN)?|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT.*))$/;
const notExecutedCodes = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/;

// By number, and for each the index of its class in `failureClasses`; OK speaks for none.
const grpcCodes = (
  'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS ' +
  'PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED ' +
  'INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED'
).split(' ');
const grpcClasses = '-2310111010122021';

const mistakes = /^(?:Type|Reference|Range|Syntax|Eval|URI|Assertion)Error$/;
const failedFetch =
  /^(?:Failed to fetch|Load failed|NetworkError when attempting to fetch resource\.|fetch failed)(?: \(.*\))?$/;

/**
 * A failure from what an error carries: codes and statuses, here or down the causes, then names. `look` is asked
 * where those say nothing. Total: there is nothing it throws on.
 */
export function examine(error: unknown, nowMs?: number, look?: Look): Failure {
  const links: unknown[] = [];
  let own: Evidence | undefined;
  let found: Evidence = {};
  for (
    let link = error;
    link != null && !found.class && links.length <= maxCauses && !links.includes(link);
    link = read(link, 'cause')
  ) {
    const evidence = strongEvidence(link, nowMs);
    links.push(link);
    own ??= evidence;
    found = { ...evidence, ...found };
  }
  const names = namesOf(error);
  let weak: Evidence | undefined;
  for (let i = 0; !found.class && !weak && i < links.length; i++) {
    const called = i > 0 ? namesOf(links[i]) : names;
    weak = weakEvidence(links[i], called) ?? look?.(links[i], called);
  }
  const message = Object(error) === error ? messageOf(error) : String(error);
  const failure: Failure = {
    class: 'unknown',
    ...found,
    ...weak,
    ...own,
    ...(message !== undefined && { message: message.slice(0, maxMessage) }),
    ...(names.length > 0 && { names }),
  };
  if (failure.status) failure.code ??= `HTTP_${failure.status}`;
  return failure;
}

function strongEvidence(error: unknown, nowMs: number | undefined): Evidence {
  const given = givenClass(error);
  const inner = read(read(error, 'decision'), 'failure');
  // What gave up inside is judged by what it gave up on, and what was aborted by nothing else.
  if (givenClass(inner)) {
    return read(error, 'code') === 'ABORTED'
      ? { class: 'technical', code: 'ABORT_ERR' }
      : strongEvidence(inner, nowMs);
  }
  const response = read(error, 'response');
  const metadata = read(error, 'metadata');
  const code = codeOf(error, metadata);
  const status = [
    read(error, 'status'),
    read(error, 'statusCode'),
    read(response, 'status'),
    read(read(error, '$metadata'), 'httpStatusCode'),
  ].find(isStatus);
  const pushback = header(metadata, 'grpc-retry-pushback-ms');
  const pushbackMs = wholeMs(parseNumber(pushback));
  // Pushback that is no wait says: do not come back.
  const refused = pushback && pushbackMs === undefined;
  return known({
    class: given ?? (refused ? 'technical' : classOf(code ?? '', status ?? 0)),
    code,
    status,
    retryAfterMs:
      wholeMs(read(error, 'retryAfterMs')) ??
      pushbackMs ??
      parseRetryAfter(read(error, 'headers'), nowMs, status) ??
      parseRetryAfter(read(response, 'headers'), nowMs, status),
    // Of a failure that was put together from others, its code and status prove nothing.
    notExecuted:
      (given
        ? read(error, 'notExecuted') === true
        : status === 429 || notExecutedCodes.test(code ?? '')) || undefined,
    counted: given && read(error, 'counted') === false ? false : undefined,
  });
}

function codeOf(error: unknown, metadata: unknown): string | undefined {
  const code = read(error, 'code');
  // Small numbers are codes of many things: DOMException's, errno's, an application's own.
  const grpc =
    typeof read(error, 'details') === 'string' ||
    Object(metadata) === metadata ||
    ['ConnectError', 'ClientError'].includes(read(error, 'name') as string);
  if (typeof code === 'number' && grpc) return grpcCodes[code];
  return typeof code === 'string' ? code : undefined;
}

function classOf(code: string, status: number): FailureClass | undefined {
  if (transientCodes.test(code)) return 'transient';
  if (technicalCodes.test(code)) return 'technical';
  if (status >= 500 || [408, 425, 429].includes(status)) return 'transient';
  if (status >= 400) return 'business';
  return failureClasses[Number(grpcClasses[grpcCodes.indexOf(code)])];
}

function weakEvidence(error: unknown, names: readonly string[]): Evidence | undefined {
  if (names.includes('AbortError')) return { class: 'technical', code: 'ABORT_ERR' };
  if (names.includes('TimeoutError')) return { class: 'transient', code: 'TIMEOUT' };
  if (names.includes('TypeError') && failedFetch.test(String(messageOf(error)))) {
    return { class: 'transient', code: 'FETCH_FAILED' };
  }
  return names.some((name) => mistakes.test(name)) ? { class: 'technical' } : undefined;
}

/** The class of what already is a failure. An error's stack is costly to read, so it comes last. */
function givenClass(value: unknown): FailureClass | undefined {
  const given = read(value, 'class');
  const name = failureClasses.find((each) => each === given);
  return name && read(value, 'stack') === undefined ? name : undefined;
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) < 600;
}

export function messageOf(error: unknown): string | undefined {
  const message = typeof error === 'string' ? error : read(error, 'message');
  return typeof message === 'string' ? message : undefined;
}

export function namesOf(error: unknown): string[] {
  if (givenClass(error))
    return listOf(read(error, 'names')).filter((name) => typeof name === 'string');
  const names: string[] = [];
  let name = typeof messageOf(error) === 'string' && read(error, 'name');
  for (let type = error, i = 0; typeof name === 'string' && i < maxMembers; i++) {
    if (name && name !== 'Object' && !names.includes(name)) names.push(name);
    const below = type;
    type = guarded<unknown>(() => Object.getPrototypeOf(below));
    name = read(read(type, 'constructor'), 'name');
  }
  // A class that sets no name of its own is called Error first, though that says the least.
  if (names[0] === 'Error') names.push(...names.splice(0, 1));
  return names;
}

/** One more than is looked at, so that a longer list can be told. */
export function listOf(value: unknown): unknown[] {
  return guarded(() => Array.isArray(value) && Array.from(value.slice(0, maxMembers + 1))) || [];
}

export function read(value: unknown, key: string): unknown {
  return guarded(() => (value as Record<string, unknown> | null | undefined)?.[key]);
}

/** Getters, proxies and what else may be thrown can throw themselves. */
function guarded<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** What is absent is no key at all. */
export function known(all: { [K in keyof Failure]?: Failure[K] | undefined }): Evidence {
  const present: Record<string, unknown> = {};
  for (const key in all) {
    const value = all[key as keyof Failure];
    if (value !== undefined) present[key] = value;
  }
  return present;
}
