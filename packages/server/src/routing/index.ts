/** Routing in the service: the routers of ROUTING_DIR, their sessions, and decisions by a policy that a request brings. */
import type { Logger } from 'pino';
import {
  type AuditEntry,
  type Clock,
  decideRoute,
  type DetailLevel,
  parseRoutingPolicy,
  type RouteContext,
  type RouteDecided,
  type RouteDecision,
  routeEntry,
  type RoutingPolicy,
  routingPolicyEntry,
} from 'redrive';
import type { RouteCounts } from '../observe/metrics/route-counts.ts';
import type { Settings } from '../settings/settings.ts';
import { createRouterSet, type RouterSet, type SetRouterOptions } from './router-set.ts';
import { openSessions, type Sessions } from './sessions.ts';

interface RoutingOptions<Input, Output> {
  settings: Pick<Settings, 'routingDir' | 'redisUrl' | 'databaseUrl' | 'dataDir'>;
  log: Logger;
  clock: Clock;
  counts: RouteCounts;
  /** Absent: there is no trail. */
  audit?: ((entry: AuditEntry) => unknown) | undefined;
  /** How the gateway calls providers. */
  optionsFor?: ((policy: RoutingPolicy) => SetRouterOptions<Input, Output>) | undefined;
}

export interface Routing<Input = unknown, Output = unknown> {
  /** Undefined without ROUTING_DIR. */
  readonly routers: RouterSet<Input, Output> | undefined;
  readonly counts: RouteCounts;
  /** What is wrong with policies and with the store of sessions, in sentences. */
  readonly troubles: readonly string[];
  /** Why a gateway could serve no request; undefined: there is a policy in force. */
  readonly gatewayTrouble: string | undefined;
  /** A decision by a policy of the caller's own. It knows no state; it is counted and audited. */
  decideInline(policy: unknown, context: RouteContext, options: InlineOptions): RouteDecision;
  /** Reads the policies, and watches them from now on. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface InlineOptions {
  seed?: number | undefined;
  detailLevel?: DetailLevel | undefined;
}

/** Policies of requests that the trail has, at most. Past that it gets them once more. */
const MAX_REGISTERED = 1000;
const REGISTERED_FOR_MS = 3_600_000;
const MAX_TROUBLES = 10;

export async function createRouting<Input = unknown, Output = unknown>(
  options: RoutingOptions<Input, Output>,
): Promise<Routing<Input, Output>> {
  const { settings, log, clock, counts, audit, optionsFor } = options;
  const { routingDir: dir } = settings;
  const sessions = dir === undefined ? undefined : await openSessions(settings, clock, log);
  const routers =
    dir === undefined
      ? undefined
      : createRouterSet<Input, Output>({
          dir,
          log,
          clock,
          audit,
          sticky: sessions,
          optionsFor,
          on: (policy, event) => counts.heard(policy, event),
        });
  if (routers) counts.states = () => statesOf(routers);
  const trail = audit && trailOf(audit, clock);
  return {
    routers,
    counts,
    get troubles() {
      return routers ? troublesOf(routers, sessions) : [];
    },
    get gatewayTrouble() {
      return routers && gatewayTroubleOf(routers);
    },
    decideInline(data, context, { seed, detailLevel }) {
      const policy = parseRoutingPolicy(data);
      const nowMs = clock.now();
      const decision = decideRoute(policy, context, { seed, detailLevel, nowMs });
      counts.decidedInline(decision.result);
      trail?.({ policy, context, nowMs, decision });
      return decision;
    },
    async start() {
      await routers?.start();
    },
    async stop() {
      routers?.close();
      await sessions?.close();
    },
  };
}

/** Writes a policy before its first decision and once an hour, so that a trail whose start was cut off replays alone. */
function trailOf(
  audit: (entry: AuditEntry) => unknown,
  clock: Clock,
): (decided: RouteDecided) => void {
  const registered = new Map<string, number>();
  return (decided) => {
    const { policy } = decided;
    const until = registered.get(policy.fingerprint) ?? -Infinity;
    if (clock.monotonic() >= until) {
      if (registered.size >= MAX_REGISTERED) registered.clear();
      registered.set(policy.fingerprint, clock.monotonic() + REGISTERED_FOR_MS);
      audit(routingPolicyEntry(policy));
    }
    audit(routeEntry(decided));
  };
}

function* statesOf(routers: Pick<RouterSet, 'list'>) {
  for (const { id: policy, router } of routers.list()) {
    for (const [provider, { state }] of Object.entries(router?.health() ?? {})) {
      yield { policy, provider, state };
    }
  }
}

function gatewayTroubleOf(routers: Pick<RouterSet, 'list'>): string | undefined {
  const entries = routers.list();
  if (entries.some(({ router }) => router !== undefined)) return undefined;
  const what = 'No routing policy is in force, so the gateway can serve no request.';
  const bad = entries.find(({ fault }) => fault !== undefined);
  if (!bad) return `${what} Put <policy_id>.json into ROUTING_DIR.`;
  return `${what} ${bad.id}.json: ${bad.fault!.message}`;
}

function troublesOf(
  routers: Pick<RouterSet, 'list' | 'fault'>,
  sessions: Sessions | undefined,
): string[] {
  const troubles: string[] = [];
  if (routers.fault) troubles.push(routers.fault.message);
  const bad = routers.list().filter(({ fault }) => fault !== undefined);
  for (const { id, router, fault } of bad.slice(0, MAX_TROUBLES)) {
    const then = router ? ' The last good policy is in force.' : ' It is not in force.';
    troubles.push(`${id}.json: ${fault?.code}: ${fault?.message}${then}`);
  }
  if (bad.length > MAX_TROUBLES) troubles.push(`And ${bad.length - MAX_TROUBLES} more files.`);
  if (sessions?.trouble !== undefined) troubles.push(sessions.trouble);
  return troubles;
}
