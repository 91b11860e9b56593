import {
  type Fault,
  isConfigError,
  type RouteContext,
  type RouteReport,
  type Router,
  type RoutingPolicy,
} from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';
import type { Static } from 'typebox';
import { decisionView, faultView, policyView, providerViews } from '../../routing/views.ts';
import type { ServiceContext } from '../../service-context.ts';
import { pointer, type WireFault } from '../reading/faults.ts';
import { Problem } from '../problem.ts';
import {
  DecideRequest,
  Decision,
  OutcomeRequest,
  PolicyList,
  Provider,
  ProviderList,
  ProvidersQuery,
} from '../schemas/routing.ts';
import { invalid } from '../reading/validate.ts';
import { about, answers, answersToBody, forRole, type Routes } from './route.ts';

type Routing = ServiceContext['routing'];

const MAX_PROVIDERS = 1000;
const MAX_NAMED = 20;

/** Which provider comes next, for callers of any language. No route of these asks the store. */
export const routingRoutes: Routes = (app, { routing }) => {
  app.post(
    '/api/v1/route/decide',
    {
      config: { role: 'reader', plainNumbers: true, idempotency: false },
      schema: {
        ...about(
          'route',
          'Decide which provider to call',
          'By `policy_id` with the sessions, breakers and pauses that this service knows; by `policy` without. A policy that leads nowhere is answered too: 200 with `result: "error"`.',
        ),
        body: DecideRequest,
        ...answersToBody({ 200: Decision }, 'ROUTE_POLICY_UNKNOWN', 'UNKNOWN_PROVIDER'),
      },
    },
    async ({ body }, reply) => reply.send(decisionView(await decide(routing, body))),
  );

  app.post(
    '/api/v1/route/outcome',
    {
      config: { role: 'operator', plainNumbers: true },
      schema: {
        ...about(
          'route',
          'Report how a call of a provider ended',
          'Feeds the breaker, the pause, the session and the health of the provider. Answers what is known of the provider then.',
        ),
        body: OutcomeRequest,
        ...answersToBody({ 200: Provider }, 'ROUTE_POLICY_UNKNOWN', 'UNKNOWN_PROVIDER'),
      },
    },
    async ({ body }, reply) => {
      const { policy_id: id, provider } = body;
      const router = routerOf(routing, id);
      await refusing('', () => router.report(reportOf(router.policy, body)));
      routing.counts.ended(id, provider, String(body.status));
      return reply.send(providerViews(id, router).find((one) => one.provider === provider)!);
    },
  );

  app.get(
    '/api/v1/route/policies',
    {
      ...forRole('reader'),
      schema: {
        ...about('route', 'List the routing policies', 'With what is wrong with their files.'),
        ...answers({ 200: PolicyList }),
      },
    },
    (_, reply) => {
      const items = routing.routers?.list().map(policyView) ?? [];
      return reply.send({ items, ...faultView(routing.routers?.fault) });
    },
  );

  app.get(
    '/api/v1/route/providers',
    {
      ...forRole('reader'),
      schema: {
        ...about('route', 'Show the health of providers', 'As this instance knows it.'),
        querystring: ProvidersQuery,
        ...answers({ 200: ProviderList }, 'ROUTE_POLICY_UNKNOWN'),
      },
    },
    ({ query }, reply) => {
      const { policy_id: id } = query;
      const items =
        id === undefined
          ? (routing.routers?.list() ?? []).flatMap((one) =>
              one.router ? providerViews(one.id, one.router) : [],
            )
          : providerViews(id, routerOf(routing, id));
      const truncated = items.length > MAX_PROVIDERS;
      return reply.send({ items: items.slice(0, MAX_PROVIDERS), truncated });
    },
  );
};

async function decide(routing: Routing, body: Static<typeof DecideRequest>) {
  const { policy_id: id, policy, context, seed, detail_level: detailLevel } = body;
  if (id !== undefined && policy !== undefined) {
    throw bad('policy', 'INVALID_VALUE', 'Both policy_id and policy are given. Give one of them.');
  }
  if (policy !== undefined) {
    return refusing('policy', () => routing.decideInline(policy, context, { seed, detailLevel }));
  }
  if (id === undefined) {
    throw bad('policy_id', 'MISSING_FIELD', 'It is missing. Give policy_id, or a policy.');
  }
  const router = routerOf(routing, id);
  return refusing('policy', () => router.decide(context, { seed, detailLevel }));
}

function reportOf({ sticky }: RoutingPolicy, body: Static<typeof OutcomeRequest>): RouteReport {
  const { provider, status, latency_ms, retry_after_ms, session, tenant_id } = body;
  // From entries, since a key of a policy may be `__proto__`.
  const context = Object.fromEntries([
    ['tenant_id', tenant_id],
    ...(session === undefined ? [] : [[sticky.sessionKey, session]]),
  ]) as RouteContext;
  return { provider, status, latencyMs: latency_ms, retryAfterMs: retry_after_ms, context };
}

function routerOf({ routers }: Routing, id: string): Router<unknown, unknown> {
  const router = routers?.get(id);
  if (router) return router;
  throw new Problem('ROUTE_POLICY_UNKNOWN', unknownPolicy(routers, id));
}

function unknownPolicy(routers: Routing['routers'], id: string): string {
  const what = `There is no routing policy '${id}'`;
  if (!routers) return `${what}: ROUTING_DIR is not set. Set it to a folder of policies.`;
  const entry = routers.list().find((one) => one.id === id);
  if (entry?.fault) return `${what} in force: its file has a fault. ${entry.fault.message}`;
  const ids = routers.list().flatMap((one) => (one.router ? [one.id] : []));
  if (ids.length === 0) return `${what}: ROUTING_DIR has none. Put ${id}.json there.`;
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : '';
  const list = `${ids.slice(0, MAX_NAMED).join(', ')}${more}`;
  return `${what}. There are: ${list}.${didYouMean(nearest(id, ids))}`;
}

/** What core refuses, with the place in the body. `under` is where the faults of a policy are. */
async function refusing<T>(under: string, ask: () => T | Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isConfigError(error)) throw error;
    const { code, message, faults } = error;
    if (code === 'UNKNOWN_PROVIDER') throw new Problem(code, message);
    const place = code === 'INVALID_CONTEXT' ? 'context' : under;
    throw invalid(faults.map((fault) => wireFault(fault, place)));
  }
}

function wireFault({ path, code, message }: Fault, place: string): WireFault {
  const parts = [place, ...path.split('.')].filter((part) => part !== '');
  return { in: 'body', path: pointer(parts), code, message };
}

function bad(field: string, code: string, message: string): Problem {
  return invalid([{ in: 'body', path: `/${field}`, code, message }]);
}
