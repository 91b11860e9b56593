import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import {
  type Claim,
  ConfigError,
  type IdempotencyRefusal,
  type IdempotentHttpOptions,
} from 'redrive';
import {
  bodyUnavailable,
  type KeptResponse,
  problemOf,
  readHttpOptions,
  readKeyHeader,
  refusal,
} from 'redrive/internal';
import { BodyDigests } from './body-digest.ts';
import { beginRun, HandlerRun } from './run.ts';

export interface FastifyIdempotencyOptions extends IdempotentHttpOptions {
  /**
   * Who asks: the id of a user, an account or a token, with its tenant where there are several. Called in the last
   * preHandler, so hooks that authenticate have run.
   */
  principal: (request: FastifyRequest) => string | PromiseLike<string>;
  /** Makes an error of a refusal, which is thrown to your error handler. Unless given, a problem document is sent. */
  refuse?: ((refusal: IdempotencyRefusal, request: FastifyRequest) => unknown) | undefined;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** False: the route has no idempotency keys. */
    idempotency?: false | { required?: boolean };
  }
  interface FastifyRequest {
    /** The claim under which the request is processed; null without an `Idempotency-Key`. */
    idempotency: Claim | null;
  }
}

/**
 * A Fastify plugin: routes that are added after it do their work once for each `Idempotency-Key` and send the same
 * response to each retry, by the IETF's draft. The response is recorded before it is sent.
 *
 * @example await app.register(fastifyIdempotency, { store, principal: (request) => request.user.id });
 */
export const fastifyIdempotency = Object.assign(addIdempotency, {
  // Its hooks are those of the scope that registers it.
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@redrive/engine/fastify',
});

async function addIdempotency(
  app: FastifyInstance,
  options: FastifyIdempotencyOptions,
): Promise<void> {
  const { principal: principalOf, refuse, ...http } = Object(options) as typeof options;
  if (typeof principalOf !== 'function') {
    throw new ConfigError(
      'NOT_A_FUNCTION',
      'The option principal must be a function: app.register(fastifyIdempotency, { store, principal: (request) => request.user.id }).',
    );
  }
  const settings = readHttpOptions(http);
  const { methods, isRequired, describedBy } = settings;
  const digests = new BodyDigests();
  const runs = new WeakMap<FastifyRequest, HandlerRun>();
  app.decorateRequest('idempotency', null);

  app.addHook('onRoute', (route) => {
    const { config, method, preParsing, preHandler, onSend, handler } = route;
    if (config?.idempotency === false || ![method].flat().some((one) => methods.has(one))) return;
    route.preParsing = [...listOf(preParsing), digest];
    // Behind those of the route itself: they may authenticate.
    route.preHandler = [...listOf(preHandler), begin];
    // Of the route, not of the application: other routes pay nothing.
    route.onSend = [...listOf(onSend), keep];
    route.handler = function (request, reply) {
      const result = handler.call(this, request, reply);
      runs.get(request)?.follow(result, reply);
      return result;
    };
  });

  async function keep(
    request: FastifyRequest,
    reply: FastifyReply,
    payload: unknown,
  ): Promise<unknown> {
    const run = runs.get(request);
    return run ? run.send(reply, payload) : payload;
  }

  const digest: Extract<RouteOptions['preParsing'], (...args: never[]) => unknown> = (
    request,
    _,
    payload,
    done,
  ) => {
    const isKeyed = methods.has(request.method) && keyOf(request) !== undefined;
    done(null, isKeyed ? digests.follow(request, payload) : payload);
  };

  async function begin(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { method, url, routeOptions } = request;
    if (!methods.has(method)) return undefined;
    const header = readKeyHeader(keyOf(request));
    if (header.state === 'absent') {
      const { required = isRequired } = routeOptions.config.idempotency || {};
      return required ? refused(refusal('IDEMPOTENCY_KEY_MISSING'), request, reply) : undefined;
    }
    if (header.state === 'malformed') {
      return refused(refusal('IDEMPOTENCY_KEY_INVALID'), request, reply);
    }
    const principal = await principalOf(request);
    const bodyDigest = digests.of(request);
    if (bodyDigest === undefined) throw bodyUnavailable('No parser has read it.');
    const route = routeOptions.url ?? url;
    const keyed = { principal, method, route, key: header.key, url, bodyDigest };
    const begun = await beginRun(settings, keyed);
    if (begun instanceof HandlerRun) {
      runs.set(request, begun);
      request.idempotency = begun.claim;
      return undefined;
    }
    return begun.kind === 'replay'
      ? replay(begun.response, reply)
      : refused(begun.refusal, request, reply);
  }

  function refused(given: IdempotencyRefusal, request: FastifyRequest, reply: FastifyReply) {
    if (refuse) throw refuse(given, request);
    const { status, headers, body } = problemOf(given, describedBy);
    return reply.code(status).headers(headers).send(body);
  }
}

function listOf<T>(hooks: T | T[] | undefined): T[] {
  return hooks === undefined ? [] : ([hooks].flat() as T[]);
}

/** Two headers are one text with a comma, which is no key. */
function keyOf({ headers }: FastifyRequest): string | undefined {
  const header = headers['idempotency-key'];
  return Array.isArray(header) ? header.join(', ') : header;
}

function replay({ status, headers, body }: KeptResponse, reply: FastifyReply): FastifyReply {
  const values = new Map<string, string[]>();
  for (const [name, value] of headers) values.set(name, [...(values.get(name) ?? []), value]);
  for (const [name, list] of values) {
    // Of the present request are what other plugins have set already, such as CORS and rate limits.
    const isOfBody = name.startsWith('content-');
    if (isOfBody || !reply.hasHeader(name))
      void reply.header(name, list.length > 1 ? list : list[0]);
  }
  void reply.code(status).header('idempotency-replayed', 'true');
  if (!body?.length) return reply.send();
  if (values.has('content-type')) return reply.send(Buffer.from(body));
  // Of bytes without a type Fastify would say what they are; of a stream it does not.
  return reply.header('content-length', body.length).send(Readable.from([body]));
}
