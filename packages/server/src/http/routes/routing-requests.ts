/** What is asked and reported about routing, over HTTP and over NATS alike: a body in, the answer or a problem out. */
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
import { decisionView, providerViews } from '../../routing/views.ts';
import type { ServiceContext } from '../../service-context.ts';
import { pointer, type WireFault } from '../reading/faults.ts';
import { Problem } from '../problem.ts';
import type { DecideRequest, OutcomeRequest } from '../schemas/routing.ts';
import { invalid } from '../reading/validate.ts';

type Routing = ServiceContext['routing'];

const MAX_NAMED = 20;

export async function decideRequest(routing: Routing, body: Static<typeof DecideRequest>) {
  return decisionView(await decide(routing, body));
}

/** Answers what is known of the provider then. */
export async function outcomeRequest(routing: Routing, body: Static<typeof OutcomeRequest>) {
  const { policy_id: id, provider, status } = body;
  const router = routerOf(routing, id);
  await refusing('', () => router.report(reportOf(router.policy, body)));
  routing.counts.ended(id, provider, String(status));
  return providerViews(id, router).find((one) => one.provider === provider)!;
}

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

export function routerOf({ routers }: Routing, id: string): Router<unknown, unknown> {
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
