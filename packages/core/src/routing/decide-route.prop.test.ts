import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideRoute, type RouteDecision } from './decide-route.ts';
import type { RouteContext } from './route-context.ts';
import type { RoutingPolicyDocument } from './routing-fields.ts';
import { parseRoutingPolicy, type RoutingPolicy } from './routing-policy.ts';

const NOW = 1_800_000_000_000;
const names = ['a', 'b', 'c', 'd', 'e'];
const status = fc.constantFrom('timeout', '5xx', '4xx', 'rate_limit', '503', '404', 'odd');
const name = fc.constantFrom(...names);

const backoff = fc.record(
  {
    strategy: fc.constantFrom('exponential', 'linear', 'fixed'),
    base_ms: fc.integer({ min: 1, max: 10_000 }),
    max_ms: fc.integer({ min: 1, max: 60_000 }),
    jitter: fc.boolean(),
  },
  { requiredKeys: [] },
);
const rule = fc.record(
  {
    when: fc.record(
      {
        status: fc.oneof(status, fc.array(status, { maxLength: 4 })),
        current_provider: name,
      },
      { requiredKeys: [] },
    ),
    to: name,
    retry: fc.constantFrom(0, 1, 2, 3, 10),
    backoff,
  },
  { requiredKeys: ['when', 'to'] },
);
const policies = fc
  .record({
    version: fc.constant('1.0'),
    providers: fc
      .constantFrom(1, 3, 5)
      .chain((count) =>
        fc.tuple(
          ...names
            .slice(0, count)
            .map((each) =>
              fc.record({ name: fc.constant(each), weight: fc.integer({ min: 0, max: 100 }) }),
            ),
        ),
      ),
    fallbacks: fc.array(rule, { maxLength: 8 }),
    sticky: fc.record({ enabled: fc.boolean() }),
  })
  .map((document) => parseRoutingPolicy(document as RoutingPolicyDocument));

/** What happens between decisions: a failure, and which breakers are open by then. */
const event = fc.record({
  status,
  open: fc.array(name, { maxLength: 2 }),
  skip: fc.constantFrom(undefined, undefined, true),
  waitMs: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
});
const stories = fc.record({
  policy: policies,
  events: fc.array(event, { minLength: 1, maxLength: 8 }),
  seed: fc.integer(),
  sticky: fc.option(
    fc.record({ provider: name, expires_at_ms: fc.constantFrom(NOW - 1, NOW, NOW + 1) }),
    { nil: undefined },
  ),
});

interface Step {
  asked: RouteContext;
  decision: RouteDecision;
}

/** Lets providers fail for ever. It must end by itself. */
function play({ policy, events, seed, sticky }: ValueOf<typeof stories>): Step[] {
  const steps: Step[] = [];
  let asked: RouteContext = { request_id: 'r', ...(sticky ? { sticky } : {}) };
  for (let i = 0; ; i++) {
    const decision = decideRoute(policy, asked, { seed, nowMs: NOW });
    steps.push({ asked, decision });
    if (decision.result === 'error') return steps;
    expect(i).toBeLessThan(limitOf(policy));
    const next = events[i % events.length] as ValueOf<typeof event>;
    asked = {
      ...decision.context,
      status: next.status,
      open_providers: next.open,
      ...(next.skip ? { skip_retry: true } : {}),
      ...(next.waitMs === undefined ? {} : { retry_after_ms: next.waitMs }),
    };
  }
}

type ValueOf<A> = A extends fc.Arbitrary<infer V> ? V : never;

/** Every retry of every rule, every provider once, and the error. */
function limitOf(policy: RoutingPolicy): number {
  return policy.rules.reduce((sum, { retry }) => sum + retry, 0) + policy.providers.length + 1;
}

describe('whatever the policy and the failures', () => {
  it('a request ends, with at most as many retries per rule as the rule has', () => {
    fc.assert(
      fc.property(stories, (story) => {
        const steps = play(story);
        const retries = new Map<string, number>();
        for (const { decision } of steps) {
          if (decision.result !== 'retry') continue;
          const id = decision.retryInfo.fallback_rule_id;
          retries.set(id, (retries.get(id) ?? 0) + 1);
          expect(decision.retryInfo.retry_attempt).toBe(retries.get(id));
        }
        for (const { id, retry } of story.policy.rules) {
          expect(retries.get(id) ?? 0).toBeLessThanOrEqual(retry);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('no provider is chosen that is exhausted or open, and none that was left comes back', () => {
    fc.assert(
      fc.property(stories, (story) => {
        const left = new Set<string>();
        let current: string | undefined;
        for (const { asked, decision } of play(story)) {
          if (decision.result === 'error') break;
          const { provider } = decision;
          expect(asked.exhausted_providers ?? []).not.toContain(provider);
          expect(asked.open_providers ?? []).not.toContain(provider);
          expect(left).not.toContain(provider);
          if (current !== undefined && provider !== current) left.add(current);
          current = provider;
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('the decision is a function of policy, context, seed and time, and changes no input', () => {
    fc.assert(
      fc.property(stories, (story) => {
        const again = parseRoutingPolicy(JSON.parse(JSON.stringify(story.policy)));
        for (const { asked, decision } of play(story)) {
          const before = JSON.stringify(asked);
          const copy = JSON.parse(before) as RouteContext;
          expect(decideRoute(again, copy, { seed: story.seed, nowMs: NOW })).toEqual(decision);
          expect(JSON.stringify(asked)).toBe(before);
          for (const detailLevel of ['minimal', 'verbose'] as const) {
            const other = decideRoute(again, copy, { seed: story.seed, nowMs: NOW, detailLevel });
            expect({ ...other, explanation: 0 }).toEqual({ ...decision, explanation: 0 });
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('the explanation agrees with what happened', () => {
    fc.assert(
      fc.property(stories, (story) => {
        for (const { asked, decision } of play(story)) {
          const { explanation } = decision;
          const { steps, reason, context } = explanation;
          const stages = steps.map((step) => Number(step[0]));
          expect(explanation.provider_id).toBe(
            decision.result === 'error' ? null : decision.provider,
          );
          if (decision.result === 'error') expect(reason).toBe(decision.error);
          const first = asked.status === undefined;
          const wantsSticky = story.policy.sticky.enabled;
          if (reason === 'sticky') expect(stages).toEqual([1]);
          else if (first) expect(stages).toEqual(wantsSticky ? [1, 2] : [2]);
          else expect(stages).toEqual([3]);
          if (decision.result === 'retry') {
            const { retry_attempt: a, retry_max: m, backoff_ms: d } = decision.retryInfo;
            expect(reason).toBe('retry');
            expect(steps).toEqual([`3. Retry attempt ${a}/${m} with backoff ${d}ms`]);
            expect(context).toMatchObject({ retry_attempts_used: a, retry_max: m, backoff_ms: d });
            expect(decision.provider).toBe(asked.current_provider);
          }
          if (reason === 'fallback' && asked['skip_retry'] !== true) {
            const { retry_attempt: u, retry_max: m } =
              decision.result === 'ok' ? decision.retryInfo! : { retry_attempt: -1, retry_max: -1 };
            expect(u).toBe(m);
            expect(steps).toEqual([
              `3. Applied fallback rule after ${u}/${m} retry attempts exhausted`,
            ]);
          }
          if (reason === 'circuit_breaker_fallback') {
            expect(asked.open_providers).toContain(asked.current_provider);
          }
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('a wait is whole ms, at most max_ms unless the provider asked for more, and never shorter than asked', () => {
    fc.assert(
      fc.property(stories, (story) => {
        for (const { asked, decision } of play(story)) {
          if (decision.result !== 'retry') continue;
          const {
            backoff_ms: wait,
            backoff_applied: applied,
            fallback_rule_id: id,
          } = decision.retryInfo;
          const cap = story.policy.rules.find((each) => each.id === id)!.backoff.cap;
          const floor = asked.retry_after_ms ?? 0;
          expect(Number.isInteger(wait)).toBe(true);
          expect(wait).toBeGreaterThanOrEqual(floor);
          expect(wait).toBeLessThanOrEqual(Math.max(cap, Math.ceil(floor) * 1.1));
          expect(applied).toBe(wait > 0);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('retry counts at their edges', () => {
  it.each([0, 10])('retry %i is kept to', (retry) => {
    const policy = parseRoutingPolicy({
      version: '1.0',
      weights: { a: 100 },
      fallbacks: [{ when: {}, to: 'b', retry }],
    });
    const events = [{ status: 'timeout' as const, open: [], skip: undefined, waitMs: undefined }];
    const steps = play({ policy, events, seed: 1, sticky: undefined });
    const results = steps.map(({ decision }) => decision.result);
    expect(results.filter((result) => result === 'retry')).toHaveLength(retry);
    expect(results.at(-1)).toBe('error');
  });

  it.each([-1, 11, 1.5, '1', null])('retry %j is refused', (retry) => {
    const fallbacks = [{ when: {}, to: 'b', retry }];
    expect(() => parseRoutingPolicy({ version: '1.0', weights: { a: 100 }, fallbacks })).toThrow(
      'whole number from 0 to 10',
    );
  });

  it('any random context is decided or refused with a code, never anything else', () => {
    const keys = fc.constantFrom(
      'request_id',
      'current_provider',
      'status',
      'exhausted_providers',
      'open_providers',
      'sticky',
      'retry_after_ms',
      'skip_retry',
      'tenant_id',
      'retry_attempts_x',
      '__proto__',
    );
    const policy = parseRoutingPolicy({
      version: '1.0',
      weights: { a: 60, b: 40 },
      fallbacks: [{ when: { status: '5xx' }, to: 'b' }],
      sticky: { enabled: true },
    });
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom('a', 'b', '5xx', ['a'], 0));
    fc.assert(
      fc.property(fc.dictionary(keys, value), (context) => {
        try {
          expect(['ok', 'retry', 'error']).toContain(decideRoute(policy, context).result);
        } catch (error) {
          expect(['INVALID_CONTEXT', 'UNKNOWN_PROVIDER']).toContain(
            (error as { code: string }).code,
          );
        }
      }),
      { numRuns: 3000 },
    );
  });
});
