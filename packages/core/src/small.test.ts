import fc from 'fast-check';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { createBreaker } from './circuit/breaker.ts';
import { createBudget } from './limits/budget.ts';
import { createBulkhead } from './limits/bulkhead.ts';
import { classify } from './failure/classify.ts';
import { decide } from './decide.ts';
import { definePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import * as full from './retry.ts';
import type { RetryEvent, Runtime } from './run/runtime.ts';
import * as small from './small.ts';
import { virtualClock } from './virtual-clock.ts';

/** How often, and when, a function that always throws is called. */
async function timesOf(
  retry: typeof full.retry,
  policy: Policy | undefined,
  thrown: unknown = new Error('down'),
  runtime: Runtime = {},
): Promise<number[]> {
  const clock = virtualClock();
  const times: number[] = [];
  const call = retry(
    () => {
      times.push(clock.monotonic());
      throw thrown;
    },
    policy,
    { clock, random: () => 0.5, ...runtime },
  );
  await Promise.all([call.catch(() => {}), clock.run()]);
  return times;
}

describe('redrive/small', () => {
  it('has the same types', () => {
    expectTypeOf(small.retry).toEqualTypeOf<typeof full.retry>();
    expectTypeOf(small.retrier).toEqualTypeOf<typeof full.retrier>();
    expectTypeOf(small.retryable).toEqualTypeOf<typeof full.retryable>();
    expectTypeOf<small.Runtime>().toEqualTypeOf<Runtime>();
    expectTypeOf<small.Policy>().toEqualTypeOf<Policy>();
  });

  const duration = fc.oneof(
    fc.integer({ min: 0, max: 100_000 }),
    fc.constantFrom('0ms' as const, '250ms' as const, '1.5s' as const, '2m' as const),
  );
  const policies: fc.Arbitrary<Policy> = fc.record(
    {
      maxAttempts: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
      strategy: fc.constantFrom('exponential' as const, 'linear' as const, 'fixed' as const),
      base: fc.option(duration, { nil: undefined }),
      cap: duration,
      multiplier: fc.integer({ min: 1, max: 10 }),
      jitter: fc.constantFrom('none' as const, 'up' as const, 'add' as const, 'full' as const),
      jitterAdd: duration,
      hardCap: fc.boolean(),
      retryOn: fc.constantFrom<string[]>(['any'], ['transient'], ['ECONNRESET'], ['unknown']),
      neverOn: fc.constantFrom<string[]>([], ['ECONNRESET'], ['Error']),
    },
    { requiredKeys: [] },
  );
  const schedules: fc.Arbitrary<Policy> = fc.record(
    { maxAttempts: fc.integer({ min: 1, max: 6 }), schedule: fc.array(duration, { minLength: 1 }) },
    { requiredKeys: ['schedule'] },
  );

  it('makes the same attempts at the same times as redrive, whatever the policy', async () => {
    const error = Object.assign(new Error('down'), { code: 'E_OTHER' });
    await fc.assert(
      fc.asyncProperty(fc.oneof(policies, schedules), async (policy) => {
        expect(await timesOf(small.retry, policy, error)).toEqual(
          await timesOf(full.retry, policy, error),
        );
      }),
      { numRuns: 300 },
    );
    expect(await timesOf(small.retry, undefined)).toEqual(await timesOf(full.retry, undefined));
  });

  it('returns what works, by all three functions', async () => {
    expect(await small.retry(() => 1)).toBe(1);
    expect(await small.retrier({ maxAttempts: 2 })(async () => 2)).toBe(2);
    const owner = {
      base: 3,
      add: small.retryable(function (this: { base: number }, n: number) {
        return this.base + n;
      }),
    };
    expect(await owner.add(4)).toBe(7);
  });

  it('calls the function at once, as redrive does', () => {
    const work = vi.fn(() => 1);
    void small.retry(work);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it('adds the runtime of a call to that of its retrier', async () => {
    const seen: string[] = [];
    const call = small.retrier({}, { key: 'usual' });
    await call(({ idempotencyKey }) => seen.push(idempotencyKey));
    await call(({ idempotencyKey }) => seen.push(idempotencyKey), { key: 'other' });
    expect(seen).toEqual(['usual', 'other']);
  });

  it('retries every error but an AbortError, since it does not classify', async () => {
    for (const error of [new TypeError('bug'), 'text', null, { status: 404 }]) {
      expect(await timesOf(small.retry, {}, error)).toHaveLength(4);
    }
    expect(await timesOf(small.retry, {}, new DOMException('', 'AbortError'))).toHaveLength(1);
    const hostile = Object.defineProperty({}, 'name', {
      get() {
        throw new Error('no');
      },
    });
    expect(await timesOf(small.retry, {}, hostile)).toHaveLength(4);
  });

  it('knows names, codes, statuses and waits that an error has itself', async () => {
    expect(await timesOf(small.retry, { neverOn: ['TypeError'] }, new TypeError())).toHaveLength(1);
    expect(await timesOf(small.retry, { neverOn: ['503'] }, { status: 503 })).toHaveLength(1);
    const busy = { code: 'BUSY', retryAfterMs: 5000 };
    const times = await timesOf(small.retry, { maxAttempts: 2, retryOn: ['BUSY'] }, busy);
    expect(times).toEqual([0, 5250]);
  });

  it('classifies where it is handed the classification', async () => {
    const runtime = { classify: (error: unknown) => classify(error) };
    expect(await timesOf(small.retry, {}, new TypeError('bug'), runtime)).toHaveLength(1);
  });

  it('rejects what is not a function, and overrides that were not defined', async () => {
    await expect(small.retry(5 as never)).rejects.toThrow('Write retry(() => work())');
    expect(() => small.retryable(5 as never)).toThrow('Write retry(() => work())');
    const overrides = { 503: { maxAttempts: 2 } };
    await expect(small.retry(() => 1, { overrides })).rejects.toThrow('definePolicy');
    const policy = definePolicy({ overrides });
    expect(await timesOf(small.retry, policy, { status: 503 })).toHaveLength(2);
  });

  it('lets the decision of an event be made again', async () => {
    const events: RetryEvent[] = [];
    const policy = { maxAttempts: 3, base: '1s' } as const;
    const runtime: Runtime = { random: undefined, on: (event) => events.push(event) };
    await timesOf(small.retry, policy, new Error('down'), runtime);
    const decided = events.filter((event) => 'decision' in event);
    expect(decided).toHaveLength(3);
    for (const { facts, decision } of decided) expect(decide(policy, facts)).toEqual(decision);
  });

  it('serves everything that is alive', async () => {
    const clock = virtualClock();
    const runtime: Runtime = {
      clock,
      budget: createBudget(),
      breaker: createBreaker({ clock }),
      bulkhead: createBulkhead({ maxConcurrent: 1 }),
      signal: new AbortController().signal,
      retryIf: { result: (result) => result === 1 },
      beforeRetry: () => {},
    };
    let calls = 0;
    const call = small.retry(() => (calls += 1), { deadline: '1m', attemptTimeout: '1s' }, runtime);
    await Promise.all([call, clock.run()]);
    expect(calls).toBe(2);
  });
});
