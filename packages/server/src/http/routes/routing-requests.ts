/** What is asked and reported about routing, over HTTP and over NATS alike: a body in, the answer or a problem out. */
import {
  decideRoute,
  type Fault,
  isConfigError,
  parseRoutingPolicy,
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
  if ((id === undefined) === (policy === undefined)) throw invalid(decideFaults(body));
  if (id === undefined) {
    return refusing('policy', () => routing.decideInline(policy, context, { seed, detailLevel }), {
      all: () => decideFaults(body),
    });
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

/** What no schema can say: which policy is meant, what is wrong with it, and with the context. Fields may hold anything. */
export function decideFaults(body: Partial<Record<string, unknown>>): WireFault[] {
  const { policy_id: id, policy, context } = body;
  const faults: WireFault[] = [];
  if (id === undefined && policy === undefined) {
    const message = 'It is missing. Give policy_id, or a policy.';
    faults.push({ in: 'body', path: '/policy_id', code: 'MISSING_FIELD', message });
  } else if (id !== undefined && policy !== undefined) {
    const message = 'Both policy_id and policy are given. Give one of them.';
    faults.push({ in: 'body', path: '/policy', code: 'INVALID_VALUE', message });
  }
  let read = anyPolicy;
  if (isObject(policy)) {
    const ofPolicy = faultsIn(() => (read = parseRoutingPolicy(policy)));
    faults.push(...ofPolicy.map((fault) => wireFault(fault, 'policy')));
  }
  if (!isObject(context)) return faults;
  const ofContext = faultsIn(() => decideRoute(read, context as RouteContext), 'INVALID_CONTEXT');
  return [...faults, ...ofContext.map((fault) => wireFault(fault, 'context'))];
}

/** A context is looked at with a policy. Where there is none, its own fields are. */
const anyPolicy = parseRoutingPolicy({
  version: '1.0',
  providers: [{ name: 'any', weight: 1 }],
});

function faultsIn(work: () => unknown, code?: 'INVALID_CONTEXT'): readonly Fault[] {
  try {
    work();
    return [];
  } catch (error) {
    if (!isConfigError(error)) throw error;
    return code === undefined || error.code === code ? error.faults : [];
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** What core refuses, with the place in the body. `under` is where the faults of a policy are; `all`: every fault of the request. */
async function refusing<T>(
  under: string,
  ask: () => T | Promise<T>,
  { all }: { all?: () => WireFault[] } = {},
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isConfigError(error)) throw error;
    const { code, message, faults } = error;
    if (code === 'UNKNOWN_PROVIDER') throw new Problem(code, message);
    const place = code === 'INVALID_CONTEXT' ? 'context' : under;
    throw invalid(all?.() ?? faults.map((fault) => wireFault(fault, place)));
  }
}

function wireFault({ path, code, message }: Fault, place: string): WireFault {
  const parts = [place, ...path.split('.')].filter((part) => part !== '');
  return { in: 'body', path: pointer(parts), code, message };
}
