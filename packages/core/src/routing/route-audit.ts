import type { AuditEntry, AuditEvent } from '../audit/audit-events.ts';
import { isObject, type Wire } from '../audit/audit-wire.ts';
import { isConfigError } from '../errors.ts';
import { wholeMs } from '../failure/retry-after.ts';
import { decideRoute, type RetryInfo, type RouteDecision } from './decide-route.ts';
import { scalarText } from './read-document.ts';
import type { RouteContext } from './route-context.ts';
import { parseRoutingPolicy, type RoutingPolicy } from './routing-policy.ts';

/** A routing decision as an audit trail has it. */
export interface RouteRecord {
  result: RouteDecision['result'];
  provider: string | null;
  error: string | null;
  reason: string;
  retry_info: RetryInfo | null;
}

/** A routing decision, with all that it was made of. */
export interface RouteDecided {
  policy: RoutingPolicy;
  context: RouteContext;
  nowMs: number;
  decision: RouteDecision;
}

/** The event of a routing decision, with the facts that `replayAudit` makes it again from. */
export function routeEntry({ policy, context, nowMs, decision }: RouteDecided): AuditEntry {
  const record = recordOf(decision);
  const requestId = scalarText(context.request_id) ?? null;
  return {
    event_type: 'route_decided',
    operation: policy.id,
    request_id: requestId,
    status: scalarText(context.status) ?? null,
    ...fieldsOf(record),
    tenant_id: scalarText(context.tenant_id) ?? null,
    trace_id: scalarText(context.trace_id) ?? null,
    redrive: {
      policy: policy.fingerprint,
      seed: decision.seed,
      key: requestId,
      facts: {
        context: factsOf(policy, context),
        now_ms: Number.isFinite(nowMs) ? nowMs : Number.MAX_SAFE_INTEGER,
      },
      decision: record,
    },
  };
}

/** A routing policy at its first use, so that a trail can be replayed alone. */
export function routingPolicyEntry(policy: RoutingPolicy): AuditEntry {
  return {
    event_type: 'routing_policy_registered',
    policy: policy.fingerprint,
    operation: policy.id,
    definition: policy.toJSON(),
  };
}

/** The policy that an event registers; undefined where it does not parse or is not what its fingerprint says. */
export function registeredRouting({ policy, definition }: AuditEvent): RoutingPolicy | undefined {
  try {
    const parsed = parseRoutingPolicy(definition);
    return parsed.fingerprint === policy ? parsed : undefined;
  } catch (error) {
    if (isConfigError(error)) return undefined;
    throw error;
  }
}

/** Makes a decision again. Undefined where its facts are none that anybody could have decided on. */
export function redecideRoute(
  event: AuditEvent,
  policy: RoutingPolicy,
): { fields: string[]; written: RouteRecord; decided: RouteRecord } | undefined {
  const { facts, decision, seed } = event.redrive as unknown as Record<string, Wire>;
  const { context, now_ms: nowMs } = facts ?? {};
  if (!isObject(context) || typeof nowMs !== 'number' || typeof seed !== 'number') return undefined;
  try {
    const options = { seed: seed as number, nowMs, detailLevel: 'minimal' } as const;
    const decided = recordOf(decideRoute(policy, context, options));
    const written = decision as unknown as RouteRecord;
    return { fields: differences(event, written, decided), written, decided };
  } catch (error) {
    if (isConfigError(error)) return undefined;
    throw error;
  }
}

function recordOf(decision: RouteDecision): RouteRecord {
  const { result, explanation } = decision;
  return {
    result,
    provider: result === 'error' ? null : decision.provider,
    error: result === 'error' ? decision.error : null,
    reason: explanation.reason,
    retry_info: (result === 'error' ? undefined : decision.retryInfo) ?? null,
  };
}

/** The fields of the event that repeat the decision. */
function fieldsOf({ result, provider, error, reason, retry_info: info }: RouteRecord): Wire {
  return { result, provider, error, reason, backoff_ms: info?.backoff_ms ?? null };
}

function differences(event: AuditEvent, written: RouteRecord, decided: RouteRecord): string[] {
  const fields = (Object.keys(decided) as (keyof RouteRecord)[])
    .filter((name) => JSON.stringify(decided[name]) !== JSON.stringify(written[name]))
    .map((name) => `decision.${name}`);
  for (const [name, value] of Object.entries(fieldsOf(decided))) {
    if (event[name] !== value) fields.push(name);
  }
  return fields;
}

/** What the decision depends on, and nothing else of the caller's: in a form that JSON does not change. */
function factsOf(policy: RoutingPolicy, context: RouteContext): RouteContext {
  const { exhausted_providers: exhausted, open_providers: open, sticky, retry_after_ms } = context;
  const known = (names: readonly string[]) => names.filter((name) => policy.hasProvider(name));
  const compared = policy.rules.flatMap(({ when }) => when.map(([key]) => key));
  const facts: [string, unknown][] = [];
  for (const key of new Set(['request_id', 'current_provider', 'status', ...compared])) {
    const text = Object.hasOwn(context, key) ? scalarText(context[key]) : undefined;
    if (text !== undefined) facts.push([key, text]);
  }
  if (exhausted?.length) facts.push(['exhausted_providers', known(exhausted)]);
  if (open?.length) facts.push(['open_providers', known(open)]);
  if (sticky && policy.sticky.enabled) {
    const until = sticky.expires_at_ms;
    const expires = Number.isNaN(until) ? 0 : Math.min(until, Number.MAX_SAFE_INTEGER);
    facts.push(['sticky', { provider: sticky.provider, expires_at_ms: expires }]);
  }
  if (retry_after_ms != null) facts.push(['retry_after_ms', wholeMs(retry_after_ms)]);
  if (context.skip_retry) facts.push(['skip_retry', true]);
  for (const { counter } of policy.rules) {
    if (context[counter] != null) facts.push([counter, context[counter]]);
  }
  // From entries, since an assignment to `__proto__` would get lost.
  return Object.fromEntries(facts);
}
