import { describe, expect, it, vi } from 'vitest';
import { type Breaker, createBreaker } from './circuit/breaker.ts';
import { createBudget } from './limits/budget.ts';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, Runtime } from './run/runtime.ts';
import { virtualClock, type VirtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

async function outcome(
  clock: VirtualClock,
  fn: (attempt: Attempt) => unknown,
  policy: Policy,
  runtime: Runtime,
): Promise<RetryError> {
  const call = retry(fn, policy, { clock, ...runtime });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return settled as RetryError;
}

/** A breaker that opened just now. */
function opened(clock: VirtualClock, openFor: number): Breaker {
  const saved = { state: 'open', failures: 5, openUntilMs: clock.now() + openFor } as const;
  return createBreaker({ clock, openFor: Math.max(openFor, 1) }, saved);
}

describe('a budget shared by calls', () => {
  it('stops retries when it is used up, before any wait, and shows it', async () => {
    const clock = virtualClock();
    const budget = createBudget({ capacity: 3, cost: 1 });
    const fn = vi.fn(() => Promise.reject(reset()));
    const first = await outcome(clock, fn, { ...steady, maxAttempts: 3 }, { budget });
    expect(first).toMatchObject({ code: 'EXHAUSTED', attempts: 3 });
    expect(budget).toMatchObject({ tokens: 1, exhausted: false });
    const before = clock.monotonic();
    const second = await outcome(clock, fn, { ...steady, maxAttempts: 3 }, { budget });
    expect(second).toMatchObject({
      code: 'BUDGET',
      attempts: 2,
      cause: { message: 'reset' },
      message: 'Gave up after 2 attempts (BUDGET): reset',
    });
    expect(clock.monotonic() - before).toBe(100);
    expect(budget.exhausted).toBe(true);
  });

  it('lets first attempts through and fills up again with successes', async () => {
    const clock = virtualClock();
    const budget = createBudget({ capacity: 2, cost: 1 });
    budget.spend();
    budget.spend();
    for (let i = 0; i < 3; i++) await retry(() => 'ok', steady, { clock, budget });
    expect(budget).toMatchObject({ tokens: 2, exhausted: false });
  });

  it('pays nothing for what is not retried anyway', async () => {
    const clock = virtualClock();
    const budget = createBudget();
    const policy = { ...steady, maxAttempts: 1 };
    await outcome(clock, () => Promise.reject(new TypeError('bug')), steady, { budget });
    await outcome(clock, () => Promise.reject(reset()), policy, { budget });
    expect(budget.tokens).toBe(budget.capacity);
  });

  it('pays nothing for waiting for a breaker', async () => {
    const clock = virtualClock();
    const budget = createBudget();
    const breaker = opened(clock, 1000);
    expect(await outcome(clock, () => 1, steady, { budget, breaker })).toBe(1);
    expect(budget.tokens).toBe(budget.capacity);
  });
});
