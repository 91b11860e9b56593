import { faultView, policyView, providerViews } from '../../routing/views.ts';
import {
  DecideRequest,
  Decision,
  OutcomeRequest,
  PolicyList,
  Provider,
  ProviderList,
  ProvidersQuery,
} from '../schemas/routing.ts';
import { about, answers, answersToBody, forRole, type Routes } from './route.ts';
import { bodyWith } from '../reading/validate.ts';
import { decideFaults, decideRequest, outcomeRequest, routerOf } from './routing-requests.ts';

const MAX_PROVIDERS = 1000;

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
      validatorCompiler: bodyWith(decideFaults),
    },
    async ({ body }, reply) => reply.send(await decideRequest(routing, body)),
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
    async ({ body }, reply) => reply.send(await outcomeRequest(routing, body)),
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
