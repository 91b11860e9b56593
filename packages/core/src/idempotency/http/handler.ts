import { ConfigError } from '../../errors.ts';
import type { Claim } from '../idempotent.ts';
import { digestOf, readAtMost } from './body.ts';
import { type KeyedRequest, serveOnce } from './exchange.ts';
import { type HttpSettings, type IdempotentHttpOptions, readHttpOptions } from './http-options.ts';
import { readKeyHeader } from './key-header.ts';
import { type IdempotencyRefusal, problemOf, refusal } from './refusal.ts';
import { isBodiless, type KeptResponse, releasesKey } from './response-record.ts';

type Handler<R extends Request, Rest extends readonly unknown[]> = (
  request: R,
  ...rest: Rest
) => Response | PromiseLike<Response>;

export interface IdempotentHandlerOptions<
  R extends Request = Request,
  Rest extends readonly unknown[] = readonly unknown[],
> extends IdempotentHttpOptions {
  /**
   * Who asks: the id of a user, an account or a token, with its tenant where there are several. Called before anything is
   * replayed. A response, such as a 401, is sent as it is.
   */
  principal: (request: R, ...rest: Rest) => string | Response | PromiseLike<string | Response>;
  /** Larger bodies of requests with a key get 413 (1 MiB, at most 64 MiB). */
  maxRequestBytes?: number | undefined;
}

/**
 * A handler of `Request` to `Response` (Hono, Next, Bun, Deno) that does its work once for each `Idempotency-Key` and
 * sends the same response to each retry, by the IETF's draft. The response is recorded before it is sent.
 *
 * @example export const POST = idempotentHandler(createOrder, { store, principal: (request) => userOf(request).id });
 */
export function idempotentHandler<R extends Request, Rest extends readonly unknown[]>(
  handler: Handler<R, Rest>,
  options: IdempotentHandlerOptions<R, Rest>,
): (request: R, ...rest: Rest) => Promise<Response> {
  const { principal: principalOf, ...http } = Object(options) as typeof options;
  for (const fn of [handler, principalOf]) {
    if (typeof fn === 'function') continue;
    throw new ConfigError(
      'NOT_A_FUNCTION',
      'The handler and the option principal must be functions: idempotentHandler(handler, { store, principal }).',
    );
  }
  const settings = readHttpOptions(http, ['maxRequestBytes']);
  const { methods, isRequired, maxRequestBytes, describedBy } = settings;
  const refused = (given: IdempotencyRefusal): Response => {
    const { body, ...init } = problemOf(given, describedBy);
    return new Response(body, init);
  };

  return async (request, ...rest) => {
    const { method, headers, url } = request;
    const header = readKeyHeader(headers.get('idempotency-key'));
    const isUntouched = !methods.has(method) || (header.state === 'absent' && !isRequired);
    if (isUntouched) return handler(request, ...rest);
    const principal = await principalOf(request, ...rest);
    if (isResponse(principal)) return principal;
    if (header.state === 'absent') return refused(refusal('IDEMPOTENCY_KEY_MISSING'));
    if (header.state === 'malformed') return refused(refusal('IDEMPOTENCY_KEY_INVALID'));
    const bodyDigest = await digestOf(request, maxRequestBytes);
    if (bodyDigest === undefined) {
      return refused(refusal('IDEMPOTENCY_BODY_TOO_LARGE', { limit_bytes: maxRequestBytes }));
    }
    const { pathname, search } = new URL(url);
    const { key } = header;
    const keyed = { principal, method, route: pathname, key, url: pathname + search, bodyDigest };
    return exchange(settings, keyed, () => handler(request, ...rest), request, refused);
  };
}

const claims = new WeakMap<Request, Claim>();

/** The claim under which a request is processed: its signal is aborted when the claim is lost. */
export function idempotencyClaim(request: Request): Claim | undefined {
  return claims.get(request);
}

async function exchange(
  settings: HttpSettings,
  keyed: KeyedRequest,
  call: () => Response | PromiseLike<Response>,
  request: Request,
  refused: (given: IdempotencyRefusal) => Response,
): Promise<Response> {
  let made: Response | undefined;
  const served = await serveOnce(settings, keyed, async (claim) => {
    claims.set(request, claim);
    made = await call();
    return keep(made, settings.maxResponseBytes);
  });
  switch (served.kind) {
    case 'ran':
      return made as Response;
    case 'refused':
      return refused(served.refusal);
    case 'replay':
      return responseOf(served.response);
  }
}

/** What is kept of a response. The response itself stays unread. */
async function keep(response: Response, maxBytes: number): Promise<KeptResponse> {
  const { status } = response;
  const headers = [...response.headers];
  if (releasesKey(status)) return { status, headers };
  // Such a stream may never end, and is worthless when it comes all at once.
  if (/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) {
    return { status, headers, unkept: 'it is a stream of events' };
  }
  if (response.bodyUsed) return { status, headers, unkept: 'its body was read before' };
  const body = await readAtMost(response.clone().body, maxBytes);
  return body
    ? { status, headers, body }
    : { status, headers, unkept: `its body is over the limit of ${maxBytes} bytes` };
}

function responseOf({ status, headers, body }: KeptResponse): Response {
  const response = new Response(isBodiless(status) ? null : (body as Uint8Array<ArrayBuffer>), {
    status,
  });
  for (const [name, value] of headers) response.headers.append(name, value);
  response.headers.set('idempotency-replayed', 'true');
  return response;
}

/** By its tag: a framework may have its own class. */
function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}
