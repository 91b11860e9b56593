import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { virtualClock } from '../../virtual-clock.ts';
import type { RoutingPolicyDocument } from '../routing-fields.ts';
import { type RouteAttemptRecord, RouteError } from './route-error.ts';
import { createRouter } from './router.ts';

const names = ['a', 'b', 'c'];
const fates = fc.constantFrom('ok', 'timeout', '503', '429', '404', 'hang', 'throw', 'paused');
const rule = fc.record({
  when: fc.constantFrom({}, { status: '5xx' }, { status: ['timeout', 'rate_limit'] }),
  to: fc.constantFrom(...names),
  retry: fc.integer({ min: 0, max: 3 }),
});
const worlds = fc.record({
  policy: fc.record({
    version: fc.constant('1.0'),
    providers: fc.constant(names.map((name, i) => ({ name, weight: 50 - 25 * i }))),
    fallbacks: fc.array(rule, { maxLength: 4 }),
    circuit_breaker: fc.record({
      enabled: fc.boolean(),
      failure_threshold: fc.integer({ min: 1, max: 3 }),
      timeout_ms: fc.constantFrom(50, 5000),
    }),
    timeout_ms: fc.constant(1000),
    sticky: fc.record({ enabled: fc.boolean() }),
  }),
  fates: fc.array(fates, { minLength: 1, maxLength: 20 }),
  options: fc.record(
    {
      skipWaits: fc.boolean(),
      hedgeAfter: fc.constantFrom(10, 2000),
      deadline: fc.constantFrom(500, 20_000),
      maxAttempts: fc.integer({ min: 1, max: 6 }),
    },
    { requiredKeys: [] },
  ),
  calls: fc.integer({ min: 1, max: 6 }),
  abortAfterMs: fc.option(fc.integer({ min: 0, max: 3000 }), { nil: undefined }),
});

describe('whatever the policy, the failures and the options', () => {
  it('every call ends within its limits, and nothing stays in flight', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ policy, fates: list, options, calls, abortAfterMs }) => {
        const clock = virtualClock();
        let turn = 0;
        const call = (): unknown => {
          const fate: string = list[turn++ % list.length] ?? 'ok';
          switch (fate) {
            case 'ok':
              return Promise.resolve('ok');
            case 'hang':
              return new Promise(() => {});
            case 'throw':
              throw new TypeError('a bug');
            case 'timeout':
              return Promise.reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }));
            case 'paused':
              return Promise.reject(
                Object.assign(new Error('x'), { status: 429, retryAfterMs: 700 }),
              );
            default:
              return Promise.reject(Object.assign(new Error('x'), { status: Number(fate) }));
          }
        };
        const router = createRouter(policy as RoutingPolicyDocument, {
          ...options,
          providers: { a: call, b: call, c: call },
          clock,
        });
        const controller = new AbortController();
        const ends = Array.from({ length: calls }, (_, i) =>
          router
            .call(undefined, { session_id: `s${i % 2}` }, { signal: controller.signal })
            .catch((error: unknown) => error),
        );
        if (abortAfterMs !== undefined) {
          await clock.advance(abortAfterMs);
          controller.abort();
        }
        await clock.run();
        for (const end of await Promise.all(ends)) {
          const { attempts } = end as { attempts: readonly RouteAttemptRecord[] };
          expect(attempts.length).toBeLessThanOrEqual(options.maxAttempts ?? 20);
          const last = attempts.at(-1);
          const limit = options.deadline ?? Infinity;
          for (const { startedAtMs, durationMs } of attempts) {
            expect(startedAtMs + durationMs).toBeLessThanOrEqual(limit + 1);
            expect(durationMs).toBeLessThanOrEqual(1000);
          }
          if (!(end instanceof RouteError)) {
            expect(end).toMatchObject({ value: 'ok' });
            expect(attempts.filter(({ outcome }) => outcome === 'ok')).toHaveLength(1);
          } else if (end.code === 'ABORTED') expect(abortAfterMs).toBeDefined();
          else expect(last?.outcome ?? 'failed').toBe('failed');
          // A provider that was left does not come back.
          const order = attempts.map(({ provider }) => provider);
          const runs = order.filter((provider, i) => provider !== order[i - 1]);
          if (options.hedgeAfter === undefined) expect(new Set(runs).size).toBe(runs.length);
        }
        for (const health of Object.values(router.health())) expect(health.inFlight).toBe(0);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 400 },
    );
  });
});
