import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { replayAudit } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { at, listAt, send, stage, type StageOptions, textAt } from '../harness.test.ts';

const root = mkdtempSync(join(tmpdir(), 'redrive-route-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
let routingDir: string;
beforeEach(() => {
  routingDir = mkdtempSync(join(root, `${folders++}-`));
});

const backoff = { strategy: 'fixed', base_ms: 100, jitter: false };
const llm = {
  version: '1.0',
  providers: [
    { name: 'primary', weight: 100 },
    { name: 'backup', weight: 0 },
  ],
  fallbacks: [{ when: { status: ['timeout', '5xx'] }, to: 'backup', retry: 1, backoff }],
  sticky: { enabled: true, session_key: 'user', ttl: '10m' },
  circuit_breaker: { enabled: true, failure_threshold: 2, timeout_ms: 1000 },
};

/** The service with these policies. */
async function routed(policies: Record<string, unknown>, options: StageOptions = {}) {
  for (const [id, policy] of Object.entries(policies)) {
    writeFileSync(join(routingDir, `${id}.json`), JSON.stringify(policy));
  }
  return stage({ routingDir, dataDir: routingDir, ...options });
}

const decide = '/api/v1/route/decide';
const outcome = '/api/v1/route/outcome';

describe('POST /api/v1/route/decide', () => {
  it('drives a request by the contexts that it hands back', async () => {
    const { post } = await routed({ llm });
    const first = await post(decide, { policy_id: 'llm', context: { request_id: 'r1' }, seed: 7 });
    expect(first).toMatchObject({
      status: 200,
      body: {
        result: 'ok',
        provider: 'primary',
        seed: 7,
        context: { request_id: 'r1', current_provider: 'primary' },
        explanation: { reason: 'weighted', policy_id: 'llm' },
        warnings: [],
      },
    });
    expect(first.body).not.toHaveProperty('retry_info');
    const again = async (body: unknown, status: string) =>
      post(decide, {
        policy_id: 'llm',
        context: { ...(at(body, 'context') as object), status },
        seed: 7,
      });
    const second = await again(first.body, 'timeout');
    expect(second.body).toMatchObject({
      result: 'retry',
      provider: 'primary',
      retry_info: { retry_attempt: 1, retry_max: 1, backoff_ms: 100, backoff_applied: true },
    });
    const third = await again(second.body, '503');
    expect(third.body).toMatchObject({ result: 'ok', provider: 'backup' });
    const fourth = await again(third.body, 'timeout');
    expect(fourth).toMatchObject({
      status: 200,
      body: { result: 'error', error: 'no_fallback', explanation: { provider_id: null } },
    });
    expect(fourth.body).not.toHaveProperty('provider');
  });

  it('decides by a policy of the request, with the same answer for the same seed', async () => {
    const { post } = await stage();
    const policy = { version: '1.0', weights: { a: 50, b: 50 } };
    const ask = async (n: number) =>
      textAt(
        (await post(decide, { policy, context: { request_id: `r${n}` }, seed: 1 })).body,
        'provider',
      );
    const names = await Promise.all(Array.from({ length: 30 }, (_, n) => ask(n)));
    expect(new Set(names)).toEqual(new Set(['a', 'b']));
    expect(await Promise.all(names.map((_, n) => ask(n)))).toEqual(names);
  });

  it('knows no state of the service for a policy of the request', async () => {
    const { post } = await routed({ llm });
    for (let i = 0; i < 2; i++) {
      await post(outcome, { policy_id: 'llm', provider: 'primary', status: 'timeout' });
    }
    const own = await post(decide, { policy: llm, context: {} });
    expect(own.body).toMatchObject({ provider: 'primary' });
    const known = await post(decide, { policy_id: 'llm', context: {} });
    expect(known.body).toMatchObject({ provider: 'backup' });
  });

  it('explains as much as is asked for', async () => {
    const { post } = await routed({ llm });
    const ask = (detail_level: string) =>
      post(decide, { policy_id: 'llm', context: {}, detail_level });
    expect(at((await ask('minimal')).body, 'explanation', 'steps')).toEqual([]);
    const { body } = await ask('verbose');
    expect(listAt(body, 'explanation', 'details', 'providers')).toHaveLength(2);
  });

  it('lists every fault of a policy with its place', async () => {
    const { post } = await stage();
    const policy = {
      version: 1,
      providers: [{ name: 'a', wieght: 1 }],
      fallbacks: [{ to: 'b', retry: 99 }],
    };
    const { status, body } = await post(decide, { policy, context: {} });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(listAt(body, 'errors').map((one) => textAt(one, 'path'))).toEqual(
      expect.arrayContaining([
        '/policy/version',
        '/policy/providers/0/wieght',
        '/policy/fallbacks/0/retry',
      ]),
    );
    expect(JSON.stringify(body)).toContain("Did you mean 'weight'?");
  });

  it('says which providers there are to a context with another one', async () => {
    const { post } = await routed({ llm });
    const context = { current_provider: 'primry', status: 'timeout' };
    const { status, body } = await post(decide, { policy_id: 'llm', context });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'UNKNOWN_PROVIDER' });
    expect(textAt(body, 'detail')).toContain("primary, backup. Did you mean 'primary'?");
  });

  it('names the place of a fault in the context', async () => {
    const { post } = await routed({ llm });
    const context = { sticky: 1, exhausted_providers: 'primary' };
    const { body } = await post(decide, { policy_id: 'llm', context });
    expect(listAt(body, 'errors')).toMatchObject([{ path: '/context/sticky' }]);
    const lists = await post(decide, { policy: llm, context: { open_providers: [1] } });
    expect(listAt(lists.body, 'errors')).toMatchObject([{ path: '/context/open_providers' }]);
  });

  it('warns of a counter that no rule has', async () => {
    const { post } = await routed({ llm });
    const context = { retry_attempts_beef: 2 };
    const { body } = await post(decide, { policy_id: 'llm', context });
    expect(listAt(body, 'warnings')).toMatchObject([
      { code: 'UNKNOWN_COUNTER', path: 'retry_attempts_beef' },
    ]);
  });

  it.each([
    [{ context: {} }, '/policy_id', 'MISSING_FIELD'],
    [{ policy_id: 'llm', policy: llm, context: {} }, '/policy', 'INVALID_VALUE'],
    [{ policy_id: 'llm' }, '/context', 'MISSING_FIELD'],
    [{ policy_id: 'llm', context: [] }, '/context', 'INVALID_VALUE'],
    [{ policy_id: 'llm', context: {}, seed: 'x' }, '/seed', 'INVALID_VALUE'],
    [{ policy_id: 'llm', context: {}, detail_level: 'all' }, '/detail_level', 'INVALID_VALUE'],
    [{ policy_id: 'llm', context: {}, polcy: 1 }, '/polcy', 'UNKNOWN_FIELD'],
  ])('refuses %j', async (body, path, code) => {
    const { post } = await routed({ llm });
    const answer = await post(decide, body);
    expect(answer.status).toBe(400);
    expect(listAt(answer.body, 'errors')).toMatchObject([{ in: 'body', path, code }]);
  });

  it('answers whatever JSON it is given, with a decision or a problem', async () => {
    const { app } = await routed({ llm });
    const odd = fc.jsonValue({ maxDepth: 3 });
    const context = fc.oneof(
      odd,
      fc.record(
        {
          request_id: odd,
          current_provider: fc.oneof(fc.constantFrom('primary', 'backup'), odd),
          status: fc.oneof(fc.constantFrom('timeout', 503, 'ok'), odd),
          sticky: fc.oneof(fc.record({ provider: odd, expires_at_ms: odd }), odd),
          open_providers: fc.oneof(fc.array(fc.constantFrom('primary', 'backup')), odd),
          exhausted_providers: odd,
          retry_after_ms: odd,
          skip_retry: odd,
          user: odd,
          tenant_id: odd,
        },
        { requiredKeys: [] },
      ),
    );
    const policy = fc.oneof(
      odd,
      fc.record({ version: fc.constant('1.0'), weights: odd, fallbacks: odd }),
    );
    const body = fc.oneof(
      fc.record(
        { policy_id: fc.constant('llm'), context, seed: odd },
        { requiredKeys: ['policy_id'] },
      ),
      fc.record({ policy, context }),
      fc.record({ policy_id: fc.constant('llm'), provider: odd, status: odd, session: odd }),
    );
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(decide, outcome), async (given, url) => {
        const { status } = await send(app, { method: 'POST', url, body: given });
        expect([200, 400]).toContain(status);
      }),
      { numRuns: 300 },
    );
  });

  it('takes keys that objects have by themselves', async () => {
    const { ask } = await routed({ llm });
    const text = '{"policy_id":"llm","context":{"__proto__":{"a":1},"constructor":1,"toString":2}}';
    const headers = { 'content-type': 'application/json' };
    const answer = await ask({ method: 'POST', url: decide, text, headers });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"constructor":1');
  });

  it('says which policies there are', async () => {
    const { post } = await routed({ llm, mail: llm, broken: { version: 1 } });
    const ask = async (id: string) =>
      textAt((await post(decide, { policy_id: id, context: {} })).body, 'detail');
    expect(await ask('llmm')).toBe(
      "There is no routing policy 'llmm'. There are: llm, mail. Did you mean 'llm'?",
    );
    expect(await ask('broken')).toContain('its file has a fault. The routing policy has faults:');
    const { post: without } = await stage();
    expect(await without(decide, { policy_id: 'llm', context: {} })).toMatchObject({
      status: 404,
      body: { code: 'ROUTE_POLICY_UNKNOWN', detail: expect.stringContaining('ROUTING_DIR') },
    });
  });

  it('audits every decision, those by a policy of the request too, so that they can be made again', async () => {
    const { post, engine } = await routed({ llm });
    const first = await post(decide, { policy_id: 'llm', context: { user: 'ada' } });
    await post(decide, {
      policy_id: 'llm',
      context: { ...(at(first.body, 'context') as object), status: 'timeout' },
      seed: at(first.body, 'seed'),
    });
    for (const version of ['1.0', '2.0', '2.0']) {
      await post(decide, { policy: { ...llm, version }, context: { request_id: 'own' } });
    }
    const events = await vi.waitFor(
      async () => {
        const page = await engine.auditEvents({ limit: 100 });
        const found = page.events.map(({ event }) => event).toReversed();
        expect(found.filter((one) => one.event_type === 'route_decided')).toHaveLength(5);
        return found;
      },
      { timeout: 20_000 },
    );
    expect(events.filter((one) => one.event_type === 'routing_policy_registered')).toHaveLength(3);
    expect(await replayAudit(events)).toMatchObject({ checked: 5, same: 5, unknownPolicy: 0 });
  });
});

describe('POST /api/v1/route/outcome', () => {
  it('opens the breaker, which decisions respect until its time is over', async () => {
    const clock = virtualClock(Date.UTC(2030, 0, 31));
    const { post } = await routed({ llm }, { clock });
    const report = (status: unknown) =>
      post(outcome, { policy_id: 'llm', provider: 'primary', status, latency_ms: 12 });
    expect((await report(503)).body).toMatchObject({ state: 'closed', calls: 1, failures: 1 });
    expect((await report('timeout')).body).toEqual({
      policy_id: 'llm',
      provider: 'primary',
      weight: 100,
      state: 'open',
      out_until: '2030-01-31T00:00:01.000Z',
      in_flight: 0,
      calls: 2,
      failures: 2,
      failure_rate: 1,
      latency_ms: { p50: 12, p95: 12, p99: 12 },
    });
    const chosen = async () =>
      textAt((await post(decide, { policy_id: 'llm', context: {} })).body, 'provider');
    expect(await chosen()).toBe('backup');
    await clock.advance(1000);
    expect(await chosen()).toBe('primary');
  });

  it('keeps a session for the provider that answered, by tenant', async () => {
    const providers = ['a', 'b'].map((name) => ({ name, weight: 50 }));
    const { post } = await routed({ llm: { ...llm, providers, fallbacks: [] } });
    const session = { session: 'ada', tenant_id: 't1' };
    for (const provider of ['a', 'b', 'a']) {
      await post(outcome, { policy_id: 'llm', provider, status: 'ok', ...session });
      const context = { user: 'ada', tenant_id: 't1' };
      const { body } = await post(decide, { policy_id: 'llm', context });
      expect(body).toMatchObject({ provider, explanation: { reason: 'sticky' } });
    }
    const other = await post(decide, { policy_id: 'llm', context: { user: 'ada' } });
    expect(at(other.body, 'explanation', 'reason')).toBe('weighted');
  });

  it('pauses a provider for as long as its rate limit asks', async () => {
    const clock = virtualClock();
    const { post } = await routed({ llm }, { clock });
    const limited = { policy_id: 'llm', provider: 'primary', status: 429, retry_after_ms: 5000 };
    expect((await post(outcome, limited)).body).toMatchObject({ state: 'cooling' });
    await clock.advance(5000);
    const { body } = await post(decide, { policy_id: 'llm', context: {} });
    expect(body).toMatchObject({ provider: 'primary' });
  });

  it('refuses strangers and nonsense', async () => {
    const { post } = await routed({ llm });
    const good = { policy_id: 'llm', provider: 'primary', status: 'ok' };
    expect((await post(outcome, { ...good, provider: 'x' })).body).toMatchObject({
      code: 'UNKNOWN_PROVIDER',
    });
    expect((await post(outcome, { ...good, policy_id: 'x' })).status).toBe(404);
    for (const wrong of [{ status: '' }, { latency_ms: -1 }, { status: true }, { tenant_id: {} }]) {
      expect((await post(outcome, { ...good, ...wrong })).status).toBe(400);
    }
  });

  it('needs an operator', async () => {
    const sha256 = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    const tokens = [{ name: 'ada', role: 'reader', sha256 }] as const;
    const { ask } = await routed({ llm }, { tokens });
    const headers = { authorization: 'Bearer secret' };
    const body = { policy_id: 'llm', provider: 'primary', status: 'ok' };
    expect((await ask({ method: 'POST', url: outcome, body, headers })).status).toBe(403);
    const question = { policy_id: 'llm', context: {} };
    expect((await ask({ method: 'POST', url: decide, body: question, headers })).status).toBe(200);
  });
});

describe('GET /api/v1/route/policies and providers', () => {
  it('show what is in force, and what is wrong with files', async () => {
    const legacy = { version: '2.0', weights: { a: 60 } };
    const { get, routing } = await routed({ llm, legacy, bad: { version: '1.0' } });
    const { body } = await get('/api/v1/route/policies');
    expect(listAt(body, 'items')).toMatchObject([
      {
        policy_id: 'bad',
        version: null,
        loaded_at: null,
        fault: { code: 'INVALID_POLICY', faults: [{ path: 'providers' }] },
      },
      {
        policy_id: 'legacy',
        version: '2.0',
        notes: [{ code: 'LEGACY_WEIGHTS' }],
        warnings: [{ code: 'WEIGHTS_NOT_100' }],
      },
      { policy_id: 'llm', providers: ['primary', 'backup'], fingerprint: expect.any(String) },
    ]);
    expect(listAt(body, 'items')[2]).not.toHaveProperty('fault');
    expect(routing.troubles).toEqual([
      expect.stringMatching(/^bad\.json: INVALID_POLICY: .* It is not in force\.$/),
    ]);
    const { body: all } = await get('/api/v1/route/providers');
    expect(listAt(all, 'items').map((one) => textAt(one, 'provider'))).toEqual([
      'a',
      'primary',
      'backup',
    ]);
    const { body: one } = await get('/api/v1/route/providers?policy_id=legacy');
    expect(listAt(one, 'items')).toMatchObject([
      { policy_id: 'legacy', state: 'closed', out_until: null, latency_ms: null },
    ]);
    expect((await get('/api/v1/route/providers?policy_id=x')).status).toBe(404);
  });

  it('are empty without a folder', async () => {
    const { get } = await stage();
    expect((await get('/api/v1/route/policies')).body).toEqual({ items: [] });
    expect((await get('/api/v1/route/providers')).body).toEqual({ items: [], truncated: false });
  });

  it('show at most 1000 providers', async () => {
    const providers = Array.from({ length: 600 }, (_, i) => ({ name: `p${i}`, weight: 1 }));
    const large = { version: '1.0', providers };
    const { get } = await routed({ one: large, two: large });
    const { body } = await get('/api/v1/route/providers');
    expect(listAt(body, 'items')).toHaveLength(1000);
    expect(at(body, 'truncated')).toBe(true);
  });
});
