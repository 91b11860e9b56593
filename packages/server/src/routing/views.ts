/** Routing in the words of the wire. */
import type { ProviderHealth, RouteDecision, Router } from 'redrive';
import type { PolicyFileFault } from './policy-file.ts';
import type { RouterSetEntry } from './router-set.ts';

type AnyRouter = Pick<Router<never, unknown>, 'policy' | 'health'>;

export function decisionView(decision: RouteDecision) {
  const { result, explanation, seed, context, warnings } = decision;
  const chosen =
    result === 'error'
      ? { error: decision.error }
      : {
          provider: decision.provider,
          ...(decision.retryInfo ? { retry_info: decision.retryInfo } : {}),
        };
  return { result, ...chosen, explanation, seed, context, warnings };
}

export function policyView({ id, router, loadedAtMs, fault }: RouterSetEntry<never, unknown>) {
  const { policy } = router ?? {};
  return {
    policy_id: id,
    version: policy?.version ?? null,
    fingerprint: policy?.fingerprint ?? null,
    loaded_at: timeText(loadedAtMs),
    providers: policy?.providers.map(({ name }) => name) ?? [],
    notes: policy?.notes ?? [],
    warnings: policy?.warnings ?? [],
    ...faultView(fault),
  };
}

export function faultView(fault: PolicyFileFault | undefined) {
  return fault ? { fault } : {};
}

export function providerViews(policyId: string, router: AnyRouter) {
  const health = router.health();
  return router.policy.providers.map(({ name, weight }) =>
    providerView(policyId, name, weight, health[name] as ProviderHealth),
  );
}

function providerView(policyId: string, provider: string, weight: number, health: ProviderHealth) {
  const { state, outUntilMs, inFlight, calls, failures, failureRate, latencyMs } = health;
  return {
    policy_id: policyId,
    provider,
    weight,
    state,
    out_until: timeText(outUntilMs),
    in_flight: inFlight,
    calls,
    failures,
    failure_rate: failureRate,
    latency_ms: latencyMs ?? null,
  };
}

function timeText(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
