import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { openDoor } from '../gateway/door.ts';
import { type RequestTracing, traceRequests } from '../observe/trace/traced-requests.ts';
import type { ServiceContext } from '../service-context.ts';
import { BodyBudget } from './limits/body-budget.ts';
import { readBody } from './reading/body.ts';
import { type ConnectionLimits, CONNECTIONS, Connections } from './limits/connections.ts';
import { Deadlines } from './limits/deadlines.ts';
import { createGuard } from './guard.ts';
import { hostFault } from './host.ts';
import { addIdempotency } from './idempotency.ts';
import { isHealth, securityHeaders, serverOptions } from './limits/limits.ts';
import { addDocument } from './openapi.ts';
import { Problem, PROBLEM_TYPE, problemOf } from './problem.ts';
import { auditRoutes } from './routes/audit.ts';
import { bulkRoutes } from './routes/bulk.ts';
import { criterionRoutes } from './routes/criteria.ts';
import { eventRoutes } from './routes/events.ts';
import { laneRoutes } from './routes/lanes.ts';
import { notificationRoutes } from './routes/notifications.ts';
import { policyRoutes } from './routes/policies.ts';
import { retryRoutes } from './routes/retries.ts';
import { reviewRoutes } from './routes/review.ts';
import { routingRoutes } from './routes/routing.ts';
import type { App } from './routes/route.ts';
import { serviceRoutes, version } from './routes/service.ts';
import { taskRoutes } from './routes/tasks.ts';
import { answerBroken, answerConnect } from './reading/broken-request.ts';
import { RateLimit } from './limits/rate-limit.ts';
import { RouteList } from './route-list.ts';
import { compileValidator, invalid } from './reading/validate.ts';

const resources = [
  serviceRoutes,
  retryRoutes,
  taskRoutes,
  reviewRoutes,
  bulkRoutes,
  laneRoutes,
  policyRoutes,
  criterionRoutes,
  routingRoutes,
  notificationRoutes,
  auditRoutes,
  eventRoutes,
];

/** The API, ready to listen. It asks the engine, and nothing else. */
export async function buildApp(
  context: ServiceContext,
  limits: ConnectionLimits = CONNECTIONS,
): Promise<FastifyInstance> {
  const { settings } = context;
  const app: App = fastify({
    ...serverOptions(settings),
    logger: false,
    frameworkErrors: (error, _, reply) => void answer(reply, problemOf(error)),
    clientErrorHandler: answerBroken,
  }).withTypeProvider<TypeBoxTypeProvider>();
  const connections = new Connections({ ...limits, onFull: fullWarning(context, limits) });
  if (context.gateway) {
    openDoor(app.server, context.gateway, {
      requestTimeoutMs: settings.requestTimeoutMs,
      refusal: (socket) => refusalOf(connections, socket),
    });
  }
  connections.watch(app.server);
  app.server.on('connect', answerConnect);
  // Whatever else than a 100 a client expects is not honoured, and the request answered like any other.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response);
  });
  app.setValidatorCompiler(compileValidator);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readBody);
  app.decorateRequest('by', '');
  app.decorateRequest('role', undefined);

  const routes = new RouteList();
  app.addHook('onRoute', (route) => routes.add(route));
  await addDocument(app, version, context);
  const state: State = { isStopping: false, wasStoreThere: false };
  addHooks(app, context, state, routes, connections, traceRequests(app));
  addErrors(app, context, state, routes);
  // One who takes in or delivers only answers how it is.
  const isApi = settings.only === undefined || settings.only === 'api';
  if (isApi) await addIdempotency(app, context);
  for (const add of isApi ? resources : [serviceRoutes]) add(app, context);
  await app.ready();
  return app;
}

interface State {
  isStopping: boolean;
  /** It has answered at least once. */
  wasStoreThere: boolean;
}

/** These ask no store: that they work says nothing about it. */
const storeless = /^\/api\/v1\/(events|policies\/simulate|criteria|route\/)/;

/** One hook, since each costs a request its share. In this order: a flood of requests must not even cost the look at a token. */
function addHooks(
  app: App,
  { settings, metrics }: ServiceContext,
  state: State,
  routes: RouteList,
  connections: Connections,
  tracing: RequestTracing,
): void {
  const guard = createGuard(settings);
  const deadlines = new Deadlines(settings.requestTimeoutMs);
  const budget = new BodyBudget(settings.maxRequestBytes);
  const rate = new RateLimit(settings);
  app.addHook('preClose', (done) => {
    state.isStopping = true;
    done();
  });
  app.addHook('onRequest', (request, reply, done) => {
    deadlines.begin(reply);
    void reply.headers(securityHeaders);
    const refused = begin(request, reply);
    if (!refused) tracing.begin(request, reply);
    done(refused);
  });

  /** The problem to answer with, before the body is read; undefined: the request may go on. */
  function begin(request: FastifyRequest, reply: FastifyReply): Problem | undefined {
    if (state.isStopping) return new Problem('STOPPING', 'The service stops. Ask again soon.');
    const full = refusalOf(connections, request.raw.socket);
    if (full) {
      void reply.header('connection', 'close');
      if (full.code !== 'TOO_MANY_CONNECTIONS' || !isHealth(request)) return full;
    }
    const tooMany = rate.check(request);
    if (tooMany) return tooMany;
    const fault = hostFault(request.raw);
    if (fault !== undefined) return new Problem('MALFORMED_REQUEST', fault);
    const { by, role } = guard(request);
    request.by = by;
    request.role = role;
    return request.is404 ? notFound(request, routes) : budget.begin(request, reply);
  }

  app.addHook('onResponse', (request, reply, done) => {
    deadlines.end(reply);
    const { method, routeOptions } = request;
    const { statusCode: status, elapsedTime } = reply;
    const route = routeOptions.url ?? 'unknown';
    state.wasStoreThere ||= status < 300 && route.startsWith('/api/') && !storeless.test(route);
    metrics.answered({ method, route, status, seconds: elapsedTime / 1000 });
    tracing.end(request, status);
    done();
  });
}

function addErrors(app: App, { log }: ServiceContext, state: State, routes: RouteList): void {
  app.setErrorHandler((error, request, reply) => {
    let problem = withOtherParts(problemOf(error), request);
    if (problem.code === 'STORE_UNAVAILABLE') problem = unavailable(problem, request, state);
    // `GET /bulk/preview` came as `GET /bulk/:id`, but is a wrong method for what is there.
    if (problem.faults[0]?.in === 'path' && isElsewhere(request, routes)) {
      problem = notFound(request, routes);
    }
    if (problem.status >= 500) {
      const { method, routeOptions } = request;
      const level = problem.code === 'INTERNAL' ? 'error' : 'debug';
      log[level](
        { err: problem.cause ?? problem, method, route: routeOptions.url, code: problem.code },
        'a request could not be answered',
      );
    }
    return answer(reply, problem);
  });
}

/** Fastify stops at the first part of a request that has faults. Path, body and query are told together. */
function withOtherParts(problem: Problem, request: FastifyRequest): Problem {
  const { validationContext: part } = problem as { validationContext?: string };
  if (problem.code !== 'INVALID_REQUEST' || part === undefined) return problem;
  const parts = { params: request.params, body: request.body, querystring: request.query };
  const others = Object.entries(parts).filter(([name]) => name !== part);
  const found = others.flatMap(([name, value]) => {
    const validate = request.getValidationFunction(name as 'params');
    // No body at all is null to a validator.
    const checked: unknown = validate?.(value ?? null);
    return (Object(checked) as { error?: Problem }).error?.faults ?? [];
  });
  return found.length === 0 ? problem : invalid([...problem.faults, ...found]);
}

function answer(reply: FastifyReply, problem: Problem): FastifyReply {
  // A string goes out as it is: problems are not the business of the serializers of good answers.
  return reply
    .code(problem.status)
    .headers(securityHeaders)
    .headers(problem.headers)
    .type(PROBLEM_TYPE)
    .send(problem.toText(reply.request));
}

/** Why no request of this connection is served now. */
function refusalOf(connections: Connections, socket: Socket): Problem | undefined {
  if (connections.isOverLimit(socket)) return tooManyConnections();
  return connections.isCrowded(socket) ? tooManyOnOne() : undefined;
}

function tooManyConnections(): Problem {
  const detail = 'All connections of the service are in use. Ask again soon, on few connections.';
  return new Problem('TOO_MANY_CONNECTIONS', detail);
}

function tooManyOnOne(): Problem {
  const detail =
    'Too many requests are under way on this connection. Read the answers before you send more.';
  return new Problem('RATE_LIMITED', detail);
}

const WARNING_MS = 60_000;

/** Says so in the log, but not for every connection. */
function fullWarning({ log }: ServiceContext, { max }: ConnectionLimits): () => void {
  let nextMs = 0;
  return () => {
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + WARNING_MS;
    log.warn({ max }, 'the limit of connections is reached: idle ones are closed for new ones');
  };
}

function unavailable(problem: Problem, { routeOptions }: FastifyRequest, state: State): Problem {
  // Their records may be in another database than all the rest.
  if (routeOptions.url?.startsWith('/api/v1/notifications') === true) {
    const detail =
      'The database of notifications cannot be reached now. See /health/ready. Send it again. A repeated report, or a notification with an id or idempotency_key, counts once.';
    return new Problem('STORE_UNAVAILABLE', detail, { cause: problem.cause });
  }
  return state.wasStoreThere ? problem : notStarted(problem);
}

function notStarted({ cause }: Problem): Problem {
  const detail = 'The store has not been there yet. See /health/ready, and ask again.';
  return new Problem('NOT_STARTED', detail, { cause });
}

function isElsewhere(request: FastifyRequest, routes: RouteList): boolean {
  return !routes.methodsOf(pathOf(request)).includes(request.method);
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?')[0]!;
}

function notFound(request: FastifyRequest, routes: RouteList): Problem {
  const { method } = request;
  const allowed = routes.methodsOf(pathOf(request));
  if (allowed.length === 0) {
    return new Problem('NOT_FOUND', 'There is nothing here. /openapi.json says what there is.');
  }
  const allow = allowed.join(', ');
  return new Problem('METHOD_NOT_ALLOWED', `${method} is not possible here; ${allow} is.`, {
    headers: { allow },
  });
}
