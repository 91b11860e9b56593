/** One request to one provider. */
import type { ClientRequest } from 'node:http';
import type { GuardedConnections } from '@redrive/engine/http';
import type { RouteAttempt } from 'redrive';
import { Answer, type WholeAnswer } from './answer.ts';
import { requestHeaders } from './forwarded-headers.ts';
import { overridden } from './override-params.ts';
import { blameClient, CLIENT_STALLED, ProviderFailure } from './provider-failure.ts';
import type { Provider } from './providers-file.ts';
import { mayRepeat, type Sent } from './repeat.ts';
import { joinPaths } from './request-target.ts';
import { isStalled, type RequestBody } from './request-body.ts';

/** What the router hands to every provider of a policy. */
export interface GatewayRequest {
  readonly method: string;
  /** What follows the policy in the URL, as it was written. */
  readonly rest: string;
  readonly rawHeaders: readonly string[];
  readonly contentType: string | undefined;
  readonly hasIdempotencyKey: boolean;
  readonly body: RequestBody;
  /** Whether the provider that was called last can have got anything. */
  wasReached: boolean;
}

/** Where a policy has no `timeout_ms`: so long the first byte of an answer is waited for. */
const FIRST_BYTE_MS = 300_000;

/** These have no body unless they bring one. */
const bodiless = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE']);

export async function callProvider(
  connections: GuardedConnections,
  provider: Provider,
  request: GatewayRequest,
  attempt: RouteAttempt,
): Promise<Answer | WholeAnswer> {
  try {
    return await send(connections, provider, request, attempt);
  } catch (error) {
    // A request that was given up ends with a reset too.
    if (attempt.signal.aborted || !isStale(error)) throw error;
    if (!mayRepeat(sentBy(request, provider))) throw error;
    // A server may close an idle connection just as the next request is on its way. That says nothing about the provider.
    return await send(connections, provider, request, attempt);
  }
}

/** What is known of a request that this provider failed. */
export function sentBy(
  request: GatewayRequest,
  { retryUnsafe }: Provider,
  answer?: Pick<Answer, 'status' | 'headers'>,
): Sent {
  const { method, hasIdempotencyKey, body, wasReached } = request;
  return {
    method,
    hasIdempotencyKey,
    isBodyKept: body.kind !== 'stream',
    isRetryUnsafe: retryUnsafe,
    wasReached,
    status: answer?.status,
    hasRetryAfter: answer?.headers['retry-after'] !== undefined,
  };
}

function send(
  connections: GuardedConnections,
  provider: Provider,
  request: GatewayRequest,
  attempt: RouteAttempt,
): Promise<Answer | WholeAnswer> {
  const { url, headers: own, idleMs } = provider;
  const { method, rest, rawHeaders } = request;
  const body = bodyFor(provider, request);
  const headers = requestHeaders({
    rawHeaders,
    host: url.host,
    own,
    length: lengthOf(method, body),
  });
  request.wasReached = false;
  return new Promise((resolve, reject) => {
    const path = joinPaths(url.pathname, rest);
    const sent = connections.request(url, method, headers, path);
    const { signal } = attempt;
    const onAbort = () => {
      request.wasReached = connections.reached(sent);
      if (request.wasReached && !isAnswered && isStalled(body)) blameClient(signal.reason);
      sent.destroy();
    };
    const limit =
      attempt.remainingMs === Infinity ? setTimeout(onSilence, FIRST_BYTE_MS) : undefined;
    let isAnswered = false;
    let answer: Answer | undefined;
    signal.addEventListener('abort', onAbort);
    sent.on('response', (response) => {
      clearTimeout(limit);
      isAnswered = true;
      request.wasReached = true;
      answer = Answer.of(response, idleMs);
      if (answer) resolve(answer.settled());
      else {
        response.destroy();
        reject(garbage());
      }
    });
    // These stay for good: a connection can fail more than once, and nobody else listens.
    sent.on('error', (error) => {
      answer?.broken(error);
      fail(error);
    });
    sent.on('close', () => {
      signal.removeEventListener('abort', onAbort);
      fail(undefined);
    });
    write(sent, body);

    function onSilence(): void {
      const message = `${provider.name} took longer than ${FIRST_BYTE_MS} ms.`;
      const status = isStalled(body) && connections.reached(sent) ? CLIENT_STALLED : 'timeout';
      reject(new ProviderFailure('FIRST_BYTE_TIMEOUT', message, { status }));
      onAbort();
    }

    function fail(error: NodeJS.ErrnoException | undefined): void {
      // What happens after that is told by the answer.
      if (isAnswered) return;
      clearTimeout(limit);
      request.wasReached ||= connections.reached(sent);
      const code = error?.code ?? 'NO_ANSWER';
      const isStaleSocket = sent.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');
      const cause = isStaleSocket ? STALE : error;
      // Messages of Node name hosts and ports, never headers.
      const message = `${provider.name} gave no answer (${code}).`;
      reject(new ProviderFailure(code, message, { cause }));
    }
  });
}

const STALE = Symbol('the connection had been idle');

function isStale(error: unknown): boolean {
  return error instanceof ProviderFailure && error.cause === STALE;
}

function garbage(): ProviderFailure {
  return new ProviderFailure(
    'INVALID_ANSWER',
    'The answer has a status or headers that are not HTTP.',
  );
}

function bodyFor({ overrideParams }: Provider, { body, contentType }: GatewayRequest): RequestBody {
  if (!overrideParams || body.kind !== 'kept') return body;
  return { kind: 'kept', bytes: overridden(body.bytes, contentType, overrideParams) };
}

function lengthOf(method: string, body: RequestBody): number | 'chunked' | undefined {
  switch (body.kind) {
    case 'none':
      return bodiless.has(method) ? undefined : 0;
    case 'kept':
      return body.bytes.length;
    case 'stream':
      return body.length ?? 'chunked';
  }
}

function write(sent: ClientRequest, body: RequestBody): void {
  if (body.kind === 'kept') sent.end(body.bytes);
  else if (body.kind === 'none') sent.end();
  else {
    sent.write(body.first);
    body.rest.pipe(sent);
  }
}
