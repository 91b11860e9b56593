import { describe, expect, it, vi } from 'vitest';
import { decide, type Facts } from './decide.ts';
import type { RetryError } from './errors.ts';
import { definePolicy } from './policy/policy.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent, Runtime } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

/** A function that fails so often, then returns how often it was called. */
function flaky(failures: number, fail: () => Error = reset) {
  let calls = 0;
  return vi.fn((_attempt: Attempt) => {
    calls += 1;
    return calls <= failures ? Promise.reject(fail()) : Promise.resolve(calls);
  });
}

/** Lets virtual time pass until the call is over, and gives what it was rejected with. */
async function fails(
  fn: (attempt: Attempt) => unknown,
  policy: Policy = steady,
  runtime: Runtime = {},
): Promise<RetryError> {
  const clock = virtualClock();
  const call = retry(fn, policy, { clock, ...runtime });
  const [error] = await Promise.all([call.catch((caught: unknown) => caught), clock.run()]);
  return error as RetryError;
}

/** The waits of a call that fails to the end. */
async function delaysOf(policy: Policy, runtime: Runtime = {}): Promise<unknown[]> {
  const error = await fails(() => Promise.reject(reset()), policy, runtime);
  return error.history.slice(0, -1).map((record) => record.delayMs);
}

describe('the key', () => {
  it('is the same over all attempts of a call, and another for the next call', async () => {
    const keys: string[] = [];
    const fn = ({ idempotencyKey }: Attempt) => {
      keys.push(idempotencyKey);
      throw reset();
    };
    await fails(fn, { ...steady, maxAttempts: 3 });
    await fails(fn, { ...steady, maxAttempts: 2 }, { on: () => {} });
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
    expect(new Set(keys.slice(3)).size).toBe(1);
    expect(keys[0]).not.toBe(keys[3]);
    expect(keys[0]).toMatch(/^[\da-f]{8}-[\da-f]{4}-4/);
  });

  it('is the one that was given', async () => {
    const fn = ({ idempotencyKey }: Attempt) => idempotencyKey;
    await expect(retry(fn, {}, { key: 'order-17' })).resolves.toBe('order-17');
  });

  it('is made only for a call that needs one', async () => {
    const made = vi.spyOn(crypto, 'randomUUID');
    await retry(() => 1);
    await retry(() => 1, { deadline: '1s' }, { signal: new AbortController().signal });
    expect(made).not.toHaveBeenCalled();
    await retry(({ idempotencyKey }) => idempotencyKey);
    expect(made).toHaveBeenCalledTimes(1);
    made.mockRestore();
  });
});

describe('delays', () => {
  it('are exact when the randomness is given', async () => {
    expect(await delaysOf({ base: 100, maxAttempts: 5 }, { random: () => 0.5 })).toEqual([
      50, 100, 200, 400,
    ]);
  });

  it('of the decorrelated jitter build on the delay before', async () => {
    const policy = { base: 100, maxAttempts: 5, jitter: 'decorrelated' } as const;
    expect(await delaysOf(policy, { random: () => 0.5 })).toEqual([200, 350, 575, 912]);
  });

  it('repeat for the same key, and differ for another', async () => {
    const policy = { base: '1m', maxAttempts: 6 } as const;
    const first = await delaysOf(policy, { key: 'a' });
    expect(await delaysOf(policy, { key: 'a', signal: new AbortController().signal })).toEqual(
      first,
    );
    expect(await delaysOf(policy, { key: 'b' })).not.toEqual(first);
    expect(await delaysOf(policy)).not.toEqual(await delaysOf(policy));
  });

  it('can be worked out again from the events alone', async () => {
    const events: RetryEvent[] = [];
    const policy = definePolicy({ base: '1m', maxAttempts: 4, jitter: 'decorrelated' });
    await fails(flaky(9), policy, { on: (event) => events.push(event) });
    const decided = events.filter((event) => event.type === 'wait' || event.type === 'giveUp');
    expect(decided).toHaveLength(4);
    for (const { facts, decision } of decided) {
      expect(decide(policy, JSON.parse(JSON.stringify(facts)) as Facts)).toEqual(decision);
    }
  });

  it('may be longer than a host timer can be', async () => {
    const clock = virtualClock();
    const call = retry(flaky(1), { schedule: ['60d'], jitter: 'none' }, { clock });
    await clock.advance('59d');
    expect(clock.pending).toBe(1);
    await clock.advance('1d');
    await expect(call).resolves.toBe(2);
  });

  it('of nothing still let the event loop turn, so that a timer can abort', async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 1);
    const fn = vi.fn(() => {
      throw reset();
    });
    const call = retry(fn, { base: 0, maxAttempts: 1e9 }, { signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(fn.mock.calls.length).toBeGreaterThan(1);
  });

  it('are the only timers of a call without limits', async () => {
    const clock = virtualClock();
    const setTimer = vi.spyOn(clock, 'setTimer');
    const call = retry(flaky(1), steady, { clock, on: () => {} });
    await clock.run();
    await call;
    expect(setTimer.mock.calls.map(([, ms]) => ms)).toEqual([100]);
  });

  it('of nothing use no timer for a few attempts', async () => {
    await expect(
      retry(flaky(8), { base: 0, maxAttempts: 9 }, { clock: virtualClock() }),
    ).resolves.toBe(9);
  });

  it.each<[string, Runtime]>([
    ['without a signal', {}],
    ['with a signal', { signal: new AbortController().signal }],
  ])('of nothing take no time at all, except each sixteenth, %s', async (_, runtime) => {
    const clock = virtualClock();
    const setTimer = vi.spyOn(clock, 'setTimer');
    const fn = vi.fn(() => {
      throw reset();
    });
    const call = retry(fn, { base: 0, maxAttempts: 40 }, { ...runtime, clock });
    // Not even a microtask has passed.
    expect(fn).toHaveBeenCalledTimes(16);
    expect(clock.pending).toBe(1);
    const settled = call.catch((error: unknown) => error);
    await clock.run();
    expect(await settled).toMatchObject({ code: 'EXHAUSTED', attempts: 40 });
    expect(setTimer.mock.calls.map(([, ms]) => ms)).toEqual([0, 0]);
    expect(clock.monotonic()).toBe(0);
  });

  it.each([true, undefined])(
    'tell the clock whether to keep the process alive: unref %s',
    async (unref) => {
      const clock = virtualClock();
      const setTimer = vi.spyOn(clock, 'setTimer');
      const call = retry(flaky(1), { ...steady, attemptTimeout: '1s' }, { clock, unref });
      await clock.run();
      await call;
      expect(setTimer.mock.calls.map(([, ms, given]) => [ms, given])).toEqual([
        [1000, unref],
        [100, unref],
        [1000, unref],
      ]);
    },
  );
});

describe('what counts as a failure to retry', () => {
  it('can be said by the caller, with a class or parts of a failure', async () => {
    const classify = vi.fn((error: unknown) =>
      (error as Error).message === 'reset' ? ('business' as const) : undefined,
    );
    const error = reset();
    await expect(retry(() => Promise.reject(error), {}, { classify })).rejects.toBe(error);
    expect(classify).toHaveBeenCalledExactlyOnceWith(error);
    const later = await fails(() => Promise.reject(new TypeError('fixable')), steady, {
      classify: () => ({ class: 'transient', code: 'MINE', retryAfterMs: 900 }),
      random: () => 0,
    });
    expect(later.history[0]).toMatchObject({
      failure: { class: 'transient', code: 'MINE', message: 'fixable' },
      delayMs: 900,
    });
  });

  it('leaves the policy alone where the caller has no opinion', async () => {
    const error = await fails(flaky(9), steady, { classify: () => undefined });
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4 });
  });

  it('keeps the number of an attempt that consumes none, and limits those', async () => {
    const numbers: number[] = [];
    const fn = ({ attempt }: Attempt) => {
      numbers.push(attempt);
      throw reset();
    };
    const policy = { ...steady, maxAttempts: 2, maxUncounted: 3 };
    const error = await fails(fn, policy, { classify: () => ({ counted: false }) });
    expect(error).toMatchObject({ code: 'TOO_MANY_UNCOUNTED', attempts: 4 });
    expect(numbers).toEqual([1, 1, 1, 1]);
    expect(error.history.map((record) => record.delayMs)).toEqual([100, 200, 400, undefined]);
  });

  it('is only what surely did not run, for work that must not run twice', async () => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const policy = { ...steady, idempotent: false };
    expect(await fails(() => Promise.reject(refused), policy)).toMatchObject({ attempts: 4 });
    const error = reset();
    expect(await fails(() => Promise.reject(error), policy)).toBe(error);
  });

  it('follows the override for its code', async () => {
    const policy = { ...steady, overrides: { ECONNRESET: { schedule: [7], maxAttempts: 3 } } };
    expect(await delaysOf(policy)).toEqual([7, 7]);
  });
});

describe('a runtime that cannot work', () => {
  it('is refused before anything runs, every fault at once', async () => {
    const fn = vi.fn();
    const runtime = { signal: 'x', budget: {}, breaker: 5, clock: {} } as unknown as Runtime;
    await expect(retry(fn, {}, runtime)).rejects.toMatchObject({
      name: 'ConfigError',
      code: 'INVALID_CONFIG',
      faults: ['signal', 'budget', 'breaker', 'clock'].map((path) => ({ path })),
    });
    expect(fn).not.toHaveBeenCalled();
  });

  it('may leave out what it has not, also as null', async () => {
    const runtime = { signal: null, budget: null, on: () => {} } as unknown as Runtime<number>;
    await expect(retry(() => 1, {}, runtime)).resolves.toBe(1);
  });
});
