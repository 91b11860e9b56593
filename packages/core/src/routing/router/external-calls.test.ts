import { describe, expect, it, vi } from 'vitest';
import { replayAudit } from '../../audit/audit.ts';
import type { AuditEntry } from '../../audit/audit-events.ts';
import { virtualClock } from '../../virtual-clock.ts';
import type { RouteContext } from '../route-context.ts';
import type { RoutingPolicyDocument } from '../routing-fields.ts';
import { createRouter, type RouteEvent } from './router.ts';
import type { RouterOptions } from './router-options.ts';
import { memorySticky } from './sticky-store.ts';

const breaker = {
  enabled: true,
  failure_threshold: 2,
  success_threshold: 2,
  timeout_ms: 1000,
  half_open_max_calls: 1,
};

const backoff = { strategy: 'fixed', base_ms: 100, jitter: false } as const;

const base: RoutingPolicyDocument = {
  version: '1.0',
  providers: [
    { name: 'a', weight: 100 },
    { name: 'b', weight: 0 },
  ],
  fallbacks: [{ when: { status: ['timeout', '5xx', 'rate_limit'] }, to: 'b', retry: 1, backoff }],
  circuit_breaker: breaker,
};

const clock = () => virtualClock(1_000_000);

function setUp(
  policy: Partial<RoutingPolicyDocument> = {},
  options: Partial<RouterOptions<never>> = {},
  time = clock(),
) {
  const entries: AuditEntry[] = [];
  const calls: string[] = [];
  const provider = (name: string) => async () => {
    calls.push(name);
    return name;
  };
  const router = createRouter(
    { ...base, ...policy },
    {
      clock: time,
      random: () => 0.5,
      audit: (entry) => entries.push(entry),
      ...(options as object),
      providers: { a: provider('a'), b: provider('b') },
    },
  );
  const fail = async (name: string, times: number) => {
    for (let i = 0; i < times; i++) await router.report({ provider: name, status: 'timeout' });
  };
  return { router, entries, calls, time, fail };
}

const chosen = async (decision: Promise<{ explanation: { provider_id: string | null } }>) =>
  (await decision).explanation.provider_id;

describe('router.decide', () => {
  it('drives a request: first choice, retry, fallback, error', async () => {
    const { router } = setUp();
    const first = await router.decide({ request_id: 'r1' }, { seed: 7 });
    expect(first).toMatchObject({ result: 'ok', provider: 'a', seed: 7 });
    const again = (context: RouteContext) =>
      router.decide({ ...context, status: 'timeout' }, { seed: 7 });
    const second = await again(first.context);
    expect(second).toMatchObject({ result: 'retry', retryInfo: { backoff_ms: 100 } });
    const third = await again(second.context);
    expect(third).toMatchObject({ result: 'ok', provider: 'b' });
    expect(await again(third.context)).toMatchObject({ result: 'error', error: 'no_fallback' });
  });

  it('gives a request without an id one of its own, and hands it back', async () => {
    const { router } = setUp();
    const { context } = await router.decide();
    const other = await router.decide();
    expect(context.request_id).toMatch(/-1$/);
    expect(other.context.request_id).toMatch(/-2$/);
  });

  it('spreads requests without an id by the weights', async () => {
    const providers = ['a', 'b'].map((name) => ({ name, weight: 50 }));
    const { router } = setUp({ providers });
    const names = await Promise.all(Array.from({ length: 40 }, () => chosen(router.decide())));
    expect(new Set(names)).toEqual(new Set(['a', 'b']));
  });

  it('uses the state that call uses, both ways', async () => {
    const { router, fail, calls } = setUp();
    await fail('a', 2);
    const { provider } = await router.call(undefined);
    expect(provider).toBe('b');
    expect(calls).toEqual(['b']);
    expect(await chosen(router.decide())).toBe('b');
  });

  it('hands back the open providers that the caller named, not those of the router', async () => {
    const { router, fail, time } = setUp();
    const { context } = await router.decide({ request_id: 'r1', open_providers: ['b'] });
    expect(context.open_providers).toEqual(['b']);
    await fail('a', 2);
    const open = await router.decide({ request_id: 'r2' });
    expect(open).toMatchObject({
      provider: 'b',
      explanation: { reason: 'circuit_breaker_fallback' },
    });
    expect(open.context).not.toHaveProperty('open_providers');
    await time.advance(1000);
    expect(await chosen(router.decide({ request_id: 'r2' }))).toBe('a');
  });

  it('gives a half-open provider to as many requests as may probe it', async () => {
    const { router, fail, time } = setUp();
    await fail('a', 2);
    await time.advance(1000);
    expect(await chosen(router.decide())).toBe('a');
    expect(await chosen(router.decide())).toBe('b');
    await router.report({ provider: 'a', status: 'ok' });
    expect(router.health()['a']).toMatchObject({ state: 'half_open' });
    expect(await chosen(router.decide())).toBe('a');
    await router.report({ provider: 'a', status: 'ok' });
    expect(router.health()['a']).toMatchObject({ state: 'closed' });
  });

  it('gives out a probe again whose report never came', async () => {
    const { router, fail, time } = setUp();
    await fail('a', 2);
    await time.advance(1000);
    expect(await chosen(router.decide())).toBe('a');
    expect(await chosen(router.decide())).toBe('b');
    await time.advance(1000);
    expect(await chosen(router.decide())).toBe('a');
  });

  it('goes to the fallback of a retry whose provider may not be probed, without using a retry', async () => {
    const { router, fail, time } = setUp();
    const first = await router.decide({ request_id: 'r1' });
    await fail('a', 2);
    await time.advance(1000);
    await router.decide({ request_id: 'probe' });
    const next = await router.decide({ ...first.context, status: 'timeout' });
    expect(next).toMatchObject({ provider: 'b', retryInfo: { retry_attempt: 0 } });
  });

  it('audits decisions that can be made again', async () => {
    const { router, fail, entries } = setUp({ sticky: { enabled: true } });
    const { context, seed } = await router.decide({ request_id: 'r1', session_id: 's1' });
    await fail('a', 2);
    await router.decide({ ...context, status: '503' }, { seed, detailLevel: 'minimal' });
    await router.decide({ request_id: 'r2' });
    const events = entries.map((entry, i) => ({ ...entry, sequence: i + 1 }));
    const result = await replayAudit(events as never);
    expect(result).toMatchObject({ checked: 3, same: 3, different: 0 });
  });

  it('tells of the decision that it returns, and of none that it considered on the way', async () => {
    const told: string[] = [];
    const on = (event: RouteEvent) =>
      event.type === 'decision' && told.push(event.decision.explanation.reason);
    const { router, fail, time } = setUp({}, { on });
    await fail('a', 2);
    await router.decide();
    await time.advance(1000);
    await router.decide();
    await router.decide();
    expect(told).toEqual(['circuit_breaker_fallback', 'weighted', 'circuit_breaker_fallback']);
  });

  it('explains as much as is asked for', async () => {
    const { router } = setUp();
    const { explanation } = await router.decide({}, { detailLevel: 'verbose' });
    expect(explanation.details?.providers).toHaveLength(2);
    const minimal = await router.decide({}, { detailLevel: 'minimal' });
    expect(minimal.explanation.steps).toEqual([]);
  });

  it('rejects a context that is none, or names a stranger', async () => {
    const { router } = setUp();
    await expect(router.decide(null as never)).rejects.toMatchObject({ code: 'INVALID_CONTEXT' });
    await expect(router.decide({ current_provider: 'c' })).rejects.toMatchObject({
      code: 'UNKNOWN_PROVIDER',
      message: expect.stringContaining('a, b'),
    });
    await expect(router.decide({ open_providers: 'a' as never })).rejects.toMatchObject({
      code: 'INVALID_CONTEXT',
    });
  });
});

describe('router.report', () => {
  it('opens the breaker by failures that count, and by no others', async () => {
    const { router } = setUp();
    for (const status of ['404', 'rate_limit', 'error', '4xx', 429]) {
      await router.report({ provider: 'a', status });
      await router.report({ provider: 'a', status });
    }
    expect(router.health()['a']).toMatchObject({ state: 'closed', failures: 10 });
    await router.report({ provider: 'a', status: 503 });
    await router.report({ provider: 'a', status: 'connection_error' });
    expect(router.health()['a']).toMatchObject({ state: 'open' });
  });

  it('takes ok and numbers from 200 to 299 for a success, which ends a run of failures', async () => {
    const { router, fail } = setUp();
    for (const status of ['ok', 200, '204']) {
      await fail('a', 1);
      await router.report({ provider: 'a', status });
    }
    expect(router.health()['a']).toMatchObject({ state: 'closed', calls: 6, failures: 3 });
  });

  it('neither closes an open breaker nor keeps it open for longer', async () => {
    const { router, fail, time } = setUp();
    await fail('a', 2);
    await time.advance(900);
    await router.report({ provider: 'a', status: 'timeout' });
    await router.report({ provider: 'a', status: 'ok' });
    expect(router.health()['a']).toMatchObject({ state: 'open', outUntilMs: 1_001_000 });
    await time.advance(100);
    expect(router.health()['a']).toMatchObject({ state: 'half_open' });
  });

  it('counts as a probe in half open, also where nobody asked for a decision', async () => {
    const { router, fail, time } = setUp();
    await fail('a', 2);
    await time.advance(1000);
    await router.report({ provider: 'a', status: 'ok' });
    await router.report({ provider: 'a', status: 'ok' });
    expect(router.health()['a']).toMatchObject({ state: 'closed' });
    await fail('a', 2);
    await time.advance(1000);
    await router.report({ provider: 'a', status: '503' });
    expect(router.health()['a']).toMatchObject({ state: 'open', outUntilMs: 1_003_000 });
  });

  it('does not take the place of a probe that a call is making', async () => {
    const time = clock();
    const pending = new Promise<never>(() => {});
    const router = createRouter(
      { ...base, circuit_breaker: { ...breaker, success_threshold: 5 } },
      { clock: time, providers: { a: () => pending, b: () => pending } },
    );
    const ok = { provider: 'a', status: 'ok' };
    for (let i = 0; i < 2; i++) await router.report({ provider: 'a', status: 'timeout' });
    await time.advance(1000);
    expect(await chosen(router.decide())).toBe('a');
    await router.report(ok);
    void router.call(undefined);
    await router.report(ok);
    expect(await chosen(router.decide())).toBe('b');
  });

  it('gives the probe back for a failure that says nothing of the provider', async () => {
    const { router, fail, time } = setUp();
    await fail('a', 2);
    await time.advance(1000);
    await router.decide();
    await router.report({ provider: 'a', status: '404' });
    expect(await chosen(router.decide())).toBe('a');
  });

  it('keeps requests away for as long as a rate limit asks', async () => {
    const { router, time } = setUp();
    await router.report({ provider: 'a', status: 'rate_limit', retryAfterMs: 5000 });
    expect(router.health()['a']).toMatchObject({ state: 'cooling', outUntilMs: 1_005_000 });
    expect(await chosen(router.decide())).toBe('b');
    await time.advance(5000);
    expect(await chosen(router.decide())).toBe('a');
    await router.report({ provider: 'a', status: 'timeout', retryAfterMs: 5000 });
    expect(router.health()['a']).toMatchObject({ state: 'closed' });
  });

  it('has percentiles of the calls whose latency is known', async () => {
    const { router } = setUp();
    await router.report({ provider: 'a', status: 'ok' });
    expect(router.health()['a']).toMatchObject({ calls: 1, latencyMs: undefined, inFlight: 0 });
    for (let ms = 1; ms <= 100; ms++) {
      await router.report({ provider: 'a', status: 'ok', latencyMs: ms });
    }
    expect(router.health()['a']?.latencyMs).toEqual({ p50: 51, p95: 96, p99: 100 });
  });

  it('says all that is wrong with a report', async () => {
    const { router } = setUp();
    const wrong = { provider: 1, status: '', latencyMs: -1, retryAfterMs: NaN, context: 'x' };
    await expect(router.report(wrong as never)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      faults: ['provider', 'status', 'latencyMs', 'retryAfterMs', 'context'].map((path): unknown =>
        expect.objectContaining({ path }),
      ),
    });
    await expect(router.report(undefined as never)).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
    });
    await expect(router.report({ provider: 'c', status: 'ok' })).rejects.toMatchObject({
      code: 'UNKNOWN_PROVIDER',
      message: expect.stringContaining("provider is 'c'"),
    });
  });
});

describe('sessions of callers who report', () => {
  const sticky = { enabled: true, ttl_seconds: 10 };
  const providers = ['a', 'b'].map((name) => ({ name, weight: 50 }));
  const context = { session_id: 's1', tenant_id: 't1' };

  it('lead to the provider that was reported as working, until they expire', async () => {
    const time = clock();
    const store = memorySticky({ now: () => time.now() });
    const { router } = setUp({ sticky, providers }, { sticky: store }, time);
    for (const provider of ['a', 'b']) {
      await router.report({ provider, status: 'ok', context });
      for (let i = 0; i < 10; i++) expect(await chosen(router.decide(context))).toBe(provider);
    }
    const { explanation } = await router.decide({ ...context, tenant_id: 't2' });
    expect(explanation.reason).toBe('weighted');
    await time.advance(10_000);
    expect((await router.decide(context)).explanation.reason).toBe('weighted');
  });

  it('end with a failure of their provider, not with the caller’s own or another’s', async () => {
    const { router } = setUp({ sticky, providers });
    await router.report({ provider: 'a', status: 'ok', context });
    await router.report({ provider: 'a', status: '404', context });
    await router.report({ provider: 'b', status: 'timeout', context });
    expect((await router.decide(context)).explanation.reason).toBe('sticky');
    await router.report({ provider: 'a', status: 'timeout', context });
    expect((await router.decide(context)).explanation.reason).toBe('weighted');
  });

  it('cost nothing but themselves while their store is away', async () => {
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const away = { get: fails, set: fails, delete: fails };
    const { router } = setUp({ sticky, providers }, { sticky: away });
    await router.report({ provider: 'a', status: 'ok', context });
    await router.report({ provider: 'a', status: 'timeout', context });
    expect((await router.decide(context)).result).toBe('ok');
    expect(told).toHaveBeenCalledTimes(3);
    told.mockRestore();
  });

  it('are not waited for longer than a second', async () => {
    const time = clock();
    const never = () => new Promise<never>(() => {});
    const { router } = setUp(
      { sticky, providers },
      { sticky: { get: never, set: never, delete: never } },
      time,
    );
    const work = Promise.all([
      router.decide(context),
      router.report({ provider: 'a', status: 'ok', context }),
      router.report({ provider: 'a', status: 'timeout', context }),
    ]);
    await time.run();
    expect((await work)[0].result).toBe('ok');
    expect(time.monotonic()).toBe(1000);
  });

  it('are not looked up after a failure', async () => {
    const asked: string[] = [];
    const store = {
      get: (key: string) => void asked.push(key),
      set: () => undefined,
      delete: () => undefined,
    };
    const { router } = setUp({ sticky }, { sticky: store });
    const first = await router.decide(context);
    await router.decide({ ...first.context, status: 'timeout' });
    expect(asked).toHaveLength(1);
  });
});

describe('a router that replaces another', () => {
  it('takes over breakers, pauses and outcomes of providers of the same name', async () => {
    const time = clock();
    const { router: before, fail } = setUp({}, {}, time);
    await fail('a', 2);
    await before.report({ provider: 'b', status: 429, retryAfterMs: 500 });
    const timeout_ms = 9000;
    const { router } = setUp({ timeout_ms }, { continueFrom: before }, time);
    expect(router.policy.timeoutMs).toBe(9000);
    expect(router.health()).toMatchObject({
      a: { state: 'open', calls: 2 },
      b: { state: 'cooling' },
    });
    await before.report({ provider: 'b', status: 'ok', latencyMs: 3 });
    expect(router.health()['b']).toMatchObject({ calls: 2 });
  });

  it('begins anew where the settings of the breaker changed', async () => {
    const time = clock();
    const { router: before, fail } = setUp({}, {}, time);
    await fail('a', 2);
    const circuit_breaker = { ...breaker, timeout_ms: 2000 };
    const { router } = setUp({ circuit_breaker }, { continueFrom: before }, time);
    expect(router.health()['a']).toMatchObject({ state: 'closed', calls: 0 });
  });
});

const fails = () => Promise.reject(new Error('The store is away.'));
