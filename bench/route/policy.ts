import { defineRoutingPolicy, type RouteContext, type RoutingPolicy } from 'redrive';

const names = Array.from({ length: 10 }, (_, i) => `provider_${i}`);

/** Ten providers and as many rules as wanted. The rules for statuses that occur come last, so that all are looked at. */
export function benchPolicy(rules: number): RoutingPolicy {
  const others = Array.from({ length: rules - 3 }, (_, i) => ({
    when: { status: [`never_${i}`, `nowhere_${i}`] },
    to: names[i % 10] as string,
    retry: 1,
  }));
  return defineRoutingPolicy({
    version: '1.0',
    providers: names.map((name) => ({ name, weight: 10 })),
    fallbacks: [
      ...others,
      { when: { status: ['timeout', '5xx'] }, to: 'provider_1', retry: 2 },
      { when: { status: ['timeout', '5xx'] }, to: 'provider_2', retry: 0 },
      { when: { status: 'rate_limit' }, to: 'provider_3', retry: 0 },
    ],
    sticky: { enabled: true },
  });
}

export const MIX = '50 % first choices, a tenth of them sticky; 30 % retries; 20 % fallbacks';

/** The questions of the stated mix. Another request each time. */
export function questions(policy: RoutingPolicy): RouteContext[] {
  const rule = policy.rules.at(-3);
  return Array.from({ length: 100 }, (_, i): RouteContext => {
    const context: RouteContext = {
      request_id: `request-${1000 + i * 37}`,
      tenant_id: 'tenant',
      session_id: `session-${i}`,
    };
    if (i % 20 === 0) context.sticky = { provider: 'provider_4', expires_at_ms: 1e15 };
    if (i % 10 < 5) return context;
    const current = `provider_${4 + (i % 6)}`;
    const status = i % 3 === 0 ? 'timeout' : '503';
    const failed = { ...context, current_provider: current, status };
    return i % 10 < 8 ? failed : { ...failed, [rule?.counter ?? '']: 2 };
  });
}
