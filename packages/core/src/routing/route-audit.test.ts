import { describe, expect, it, vi } from 'vitest';
import { replayAudit } from '../audit/audit.ts';
import { eraseEvent } from '../audit/audit-erase.ts';
import { type AuditEntry, type AuditEvent, policyEntry } from '../audit/audit-events.ts';
import { definePolicy } from '../policy/policy.ts';
import { virtualClock } from '../virtual-clock.ts';
import { decideRoute } from './decide-route.ts';
import { routeEntry, routingPolicyEntry } from './route-audit.ts';
import type { RouteContext } from './route-context.ts';
import { createRouter } from './router/router.ts';
import { parseRoutingPolicy } from './routing-policy.ts';

const policy = parseRoutingPolicy({
  version: '1.0',
  providers: [
    { name: 'a', weight: 50 },
    { name: 'b', weight: 50 },
  ],
  fallbacks: [
    { when: { status: '5xx', plan: 'gold' }, to: 'b', retry: 2 },
    { when: { status: '5xx' }, to: 'c', retry: 1 },
  ],
  sticky: { enabled: true },
});

/** An event as it comes back from a sink. */
function written(entry: AuditEntry, sequence = 1): AuditEvent {
  const redrive = { instance: 'one', run: 1, sequence, ...entry.redrive };
  const event = { ...entry, timestamp: '2026-01-01T00:00:00.000Z', redrive };
  return JSON.parse(JSON.stringify(event)) as AuditEvent;
}

function decided(context: RouteContext, nowMs = 1000): AuditEvent {
  const decision = decideRoute(policy, context, { seed: 5, nowMs });
  return written(routeEntry({ policy, context, nowMs, decision }));
}

const failed: RouteContext = {
  request_id: 'r1',
  current_provider: 'a',
  status: 503,
  plan: 'gold',
  secret: 'not a fact',
  tenant_id: 't',
};

describe('the event of a routing decision', () => {
  it('has the decision and its facts, and nothing else of the caller', () => {
    const event = decided(failed);
    expect(event).toEqual({
      event_type: 'route_decided',
      timestamp: '2026-01-01T00:00:00.000Z',
      operation: 'default',
      request_id: 'r1',
      status: '503',
      result: 'retry',
      provider: 'a',
      error: null,
      reason: 'retry',
      backoff_ms: expect.any(Number),
      tenant_id: 't',
      trace_id: null,
      redrive: {
        instance: 'one',
        run: 1,
        sequence: 1,
        policy: policy.fingerprint,
        seed: 5,
        key: 'r1',
        facts: {
          context: { request_id: 'r1', current_provider: 'a', status: '503', plan: 'gold' },
          now_ms: 1000,
        },
        decision: {
          result: 'retry',
          provider: 'a',
          error: null,
          reason: 'retry',
          retry_info: expect.objectContaining({ retry_attempt: 1, retry_max: 2 }),
        },
      },
    });
  });

  it.each<[string, RouteContext]>([
    ['a first choice', { request_id: 7 }],
    ['a session', { sticky: { provider: 'b', expires_at_ms: 1001 } }],
    ['an expired session', { sticky: { provider: 'b', expires_at_ms: 1000 } }],
    ['a session without an end', { sticky: { provider: 'b', expires_at_ms: Infinity } }],
    ['a session whose end is no number', { sticky: { provider: 'b', expires_at_ms: NaN } }],
    ['a retry', failed],
    ['a long wait', { ...failed, retry_after_ms: Infinity }],
    ['a wait with a fraction', { ...failed, retry_after_ms: 1234.56 }],
    ['used retries', { ...failed, [policy.rules[0]!.counter]: 2 }],
    ['a fallback without a wait', { ...failed, skip_retry: true }],
    ['an open breaker', { ...failed, open_providers: ['a', 'gone'] }],
    ['exhausted providers', { ...failed, exhausted_providers: ['a', 'b'] }],
    ['a condition that is a list', { ...failed, plan: ['gold'] }],
    ['no rule', { ...failed, status: 'odd' }],
    ['no provider', { open_providers: ['a', 'b', 'c'] }],
  ])('is made again: %s', async (_, context) => {
    const events = [written(routingPolicyEntry(policy), 1), { ...decided(context) }];
    expect(await replayAudit(events)).toMatchObject({ checked: 1, same: 1, unreadable: 0 });
  });

  it('that somebody changed is found', async () => {
    const registered = written(routingPolicyEntry(policy));
    const fieldsOf = async (change: (event: AuditEvent) => void) => {
      const event = decided(failed);
      change(event);
      return (await replayAudit([registered, event])).differing[0]?.fields;
    };
    expect(await fieldsOf((event) => (event['provider'] = 'b'))).toEqual(['provider']);
    expect(await fieldsOf((event) => (event['backoff_ms'] = 1))).toEqual(['backoff_ms']);
    expect(
      await fieldsOf((event) =>
        Object.assign(event.redrive?.decision as object, { provider: 'b' }),
      ),
    ).toEqual(['decision.provider']);
    expect(await fieldsOf((event) => (event.redrive!.seed = 6))).toContain('backoff_ms');
    const [difference] = (await replayAudit([registered, { ...decided(failed), result: 'ok' }]))
      .differing;
    expect(difference).toMatchObject({
      written: { result: 'retry' },
      decided: { result: 'retry', provider: 'a' },
      fields: ['result'],
    });
  });

  it('waits for its policy, takes one that is handed in, and refuses one that is not what it says', async () => {
    const registered = written(routingPolicyEntry(policy));
    expect(await replayAudit([decided(failed), registered])).toMatchObject({ same: 1 });
    expect(await replayAudit([decided(failed)], { policies: [policy] })).toMatchObject({ same: 1 });
    expect(await replayAudit([decided(failed)])).toMatchObject({ checked: 0, unknownPolicy: 1 });
    const wrong = [
      { ...registered, policy: 'x' },
      { ...registered, definition: { version: 'x' } },
    ];
    expect((await replayAudit(wrong)).wrongPolicies).toEqual(['x', policy.fingerprint]);
  });

  it('that was erased is made again, and must be empty', async () => {
    const registered = written(routingPolicyEntry(policy));
    const erased = eraseEvent(decided(failed), 0);
    expect(erased).toMatchObject({ tenant_id: null, request_id: 'r1' });
    expect(await replayAudit([registered, erased])).toMatchObject({ same: 1, erased: 1 });
    const [difference] = (await replayAudit([registered, { ...erased, tenant_id: 't' }])).differing;
    expect(difference?.fields).toEqual(['tenant_id']);
  });

  it('that cannot be read is counted', async () => {
    const registered = written(routingPolicyEntry(policy));
    const retryPolicy = definePolicy();
    const change = (details: object) => {
      const event = decided(failed);
      return { ...event, redrive: { ...event.redrive, ...details } };
    };
    const events = [
      registered,
      written(policyEntry(retryPolicy)),
      change({ facts: {} }),
      change({ facts: { context: { current_provider: 'gone' }, now_ms: 1 } }),
      change({ seed: 'x' }),
      change({ policy: retryPolicy.fingerprint }),
      { ...decided(failed), event_type: 'retry_attempt' },
    ];
    expect(await replayAudit(events)).toMatchObject({ checked: 0, unreadable: 5 });
  });
});

describe('the audit of a router', () => {
  it('has every decision, with the policy first and again after an hour, and replays', async () => {
    const clock = virtualClock();
    const entries: AuditEntry[] = [];
    const error = Object.assign(new Error('down'), { status: 503 });
    const router = createRouter(policy, {
      providers: {
        a: () => Promise.reject(error),
        b: () => Promise.reject(error),
        c: () => 'ok',
      },
      audit: (entry) => entries.push(entry),
      clock,
      skipWaits: true,
    });
    for (let i = 0; i < 50; i++) {
      const call = router.call(undefined, {
        plan: i % 2 ? 'gold' : 'none',
        session_id: `s${i % 9}`,
      });
      await clock.run();
      await call.catch(() => undefined);
    }
    await clock.advance('1h');
    await router.call(undefined);
    const types = entries.map((entry) => entry.event_type);
    expect(types[0]).toBe('routing_policy_registered');
    expect(types.filter((type) => type === 'routing_policy_registered')).toHaveLength(2);
    const decisions = types.filter((type) => type === 'route_decided').length;
    expect(decisions).toBeGreaterThan(60);
    const replay = await replayAudit(entries.map((entry, i) => written(entry, i)));
    expect(replay).toMatchObject({
      checked: decisions,
      same: decisions,
      unreadable: 0,
      missing: 0,
    });
  });

  it('that fails changes nothing', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const audit = () => {
      throw new Error('full');
    };
    const ok = () => 'ok';
    const router = createRouter(policy, { providers: { a: ok, b: ok, c: ok }, audit });
    expect(await router.call(undefined)).toMatchObject({ value: 'ok' });
    expect(report).toHaveBeenCalledTimes(2);
    report.mockRestore();
  });
});
