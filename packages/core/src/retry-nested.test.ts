import { describe, expect, it, vi } from 'vitest';
import { createBreaker } from './circuit/breaker.ts';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none', maxAttempts: 3 } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

async function outcome(
  fn: (attempt: Attempt) => unknown,
  policy: Policy,
  clock = virtualClock(),
): Promise<RetryError> {
  const call = retry(fn, policy, { clock });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return settled as RetryError;
}

describe('a call inside an attempt, handed its parent', () => {
  it('leaves the retrying to it: three inside three are three', async () => {
    const fn = vi.fn(() => Promise.reject(reset()));
    const error = await outcome((parent) => retry(fn, steady, { parent }), steady);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 3, cause: { message: 'reset' } });
    expect(fn).toHaveBeenCalledTimes(3);
  });

  it('leaves it to the outermost: three inside three inside three are three', async () => {
    const fn = vi.fn((_attempt: Attempt) => Promise.reject(reset()));
    const middle = (parent: Attempt) => retry(fn, steady, { parent });
    const error = await outcome(
      (parent) => retry((inner) => middle(inner), steady, { parent }),
      steady,
    );
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 3 });
    expect(fn).toHaveBeenCalledTimes(3);
    expect(fn.mock.calls.map(([{ attempt, maxAttempts }]) => [attempt, maxAttempts])).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
  });

  it('multiplies without a parent, which is what the parent is for', async () => {
    const fn = vi.fn(() => Promise.reject(reset()));
    const policy = { ...steady, base: 0 };
    await outcome(() => retry(fn, policy), policy);
    expect(fn).toHaveBeenCalledTimes(9);
  });

  it('throws its error as it is, so that the parent sees what happened', async () => {
    const limit = Object.assign(new Error('slow down'), {
      status: 429,
      headers: { 'retry-after': '7' },
    });
    const clock = virtualClock();
    const error = await outcome(
      (parent) => retry(() => Promise.reject(limit), steady, { parent, clock }),
      { ...steady, maxAttempts: 2 },
      clock,
    );
    expect(error.cause).toBe(limit);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(7000);
  });

  it('passes on what a refused Response asks for', async () => {
    const clock = virtualClock();
    const response = () => new Response(null, { status: 503, headers: { 'retry-after': '7' } });
    const error = await outcome(
      (parent) => retry(response, steady, { parent, clock, retryIf: { result: () => true } }),
      { ...steady, maxAttempts: 2 },
      clock,
    );
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 2 });
    expect(error.cause).toMatchObject({ code: 'EXHAUSTED', attempts: 1, retryAfterMs: 7000 });
    expect(error.cause).toHaveProperty('result.status', 503);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(7000);
  });

  it('asks for no wait where none was asked for', async () => {
    const error = await outcome(
      (parent) => retry(() => 'no', steady, { parent, retryIf: { result: () => true } }),
      steady,
    );
    expect(error.cause).toMatchObject({ code: 'EXHAUSTED', result: 'no' });
    expect(error.cause).not.toHaveProperty('retryAfterMs');
  });

  it('gives its result to the parent', async () => {
    const works = (parent: Attempt) =>
      retry(() => (parent.attempt < 3 ? Promise.reject(reset()) : 'third'), steady, { parent });
    expect(await outcome(works, steady)).toBe('third');
  });

  it('retries by itself where the parent has but one attempt', async () => {
    const clock = virtualClock();
    const fn = vi.fn(() => Promise.reject(reset()));
    const error = await outcome(
      (parent) => retry(fn, steady, { parent, clock }),
      { maxAttempts: 1 },
      clock,
    );
    expect(fn).toHaveBeenCalledTimes(3);
    expect(error.cause).toMatchObject({ code: 'EXHAUSTED', attempts: 3 });
  });

  it('does not wait for a breaker either: the parent does, once, and it costs no attempt', async () => {
    const clock = virtualClock();
    const breaker = createBreaker(
      { clock },
      { state: 'open', failures: 5, openUntilMs: clock.now() + 7000 },
    );
    const fn = vi.fn(() => 'through');
    const outer = vi.fn((parent: Attempt) => retry(fn, steady, { parent, clock, breaker }));
    expect(await outcome(outer, steady, clock)).toBe('through');
    expect(outer.mock.calls.map(([{ attempt }]) => attempt)).toEqual([1, 1]);
    expect(fn).toHaveBeenCalledTimes(1);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(7000);
    expect(clock.monotonic()).toBeLessThanOrEqual(7700);
  });
});

describe('a call that gave up inside another, without a parent', () => {
  const once = { ...steady, idempotent: false } as const;

  it('is not repeated by work that must not run twice, though it ended at a breaker', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ clock, failures: 1 });
    const fn = vi.fn(() => Promise.reject(reset()));
    const inner = () => retry(fn, { ...steady, deadline: '1s' }, { clock, breaker });
    expect(await outcome(inner, once, clock)).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 1 });
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('is not repeated by such work either if only its last attempt surely did not run', async () => {
    const clock = virtualClock();
    const errors = [reset(), Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })];
    const fn = vi.fn(({ attempt }: Attempt) => Promise.reject(errors[attempt - 1] as Error));
    const inner = () => retry(fn, { ...steady, maxAttempts: 2 }, { clock });
    expect(await outcome(inner, once, clock)).toMatchObject({ code: 'EXHAUSTED', attempts: 2 });
    expect(fn).toHaveBeenCalledTimes(2);
  });

  it('is repeated by such work if none of its attempts ran', async () => {
    const clock = virtualClock();
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const fn = vi.fn(() => Promise.reject(refused));
    const inner = () => retry(fn, { ...steady, maxAttempts: 2 }, { clock });
    expect(await outcome(inner, once, clock)).toMatchObject({ code: 'EXHAUSTED', attempts: 3 });
    expect(fn).toHaveBeenCalledTimes(6);
  });

  it('is not repeated when it was aborted', async () => {
    const fn = vi.fn(() => retry(() => 1, {}, { signal: AbortSignal.abort() }));
    expect(await outcome(fn, steady)).toMatchObject({ code: 'ABORTED' });
    expect(fn).toHaveBeenCalledTimes(1);
  });
});

describe('the limits of a parent', () => {
  it('hold for the call inside: its time', async () => {
    const clock = virtualClock();
    const left: number[] = [];
    const error = await outcome(
      (parent) =>
        retry(
          ({ remainingMs }) => {
            left.push(remainingMs);
            throw reset();
          },
          { ...steady, deadline: '1h' },
          { parent, clock },
        ),
      { maxAttempts: 1, attemptTimeout: 250 },
      clock,
    );
    // At 0 and at 100; the third would start at 300.
    expect(left).toEqual([250, 150]);
    expect(error.cause).toMatchObject({ code: 'DEADLINE', attempts: 2 });
    expect(clock.monotonic()).toBe(100);
  });

  it('hold for the call inside: its own deadline where that is shorter', async () => {
    const clock = virtualClock();
    const error = await outcome(
      (parent) =>
        retry(() => new Promise(() => {}), { ...steady, deadline: 40 }, { parent, clock }),
      { maxAttempts: 1, deadline: '1s' },
      clock,
    );
    expect(error.cause).toMatchObject({ code: 'DEADLINE', attempts: 1 });
    expect(clock.monotonic()).toBe(40);
  });

  it('keep the call inside from starting when no time is left', async () => {
    const parent: Attempt = {
      attempt: 1,
      maxAttempts: 3,
      remainingMs: 0,
      signal: new AbortController().signal,
      idempotencyKey: 'p',
    };
    const fn = vi.fn();
    for (const maxAttempts of [1, 3]) {
      await expect(
        retry(fn, steady, { parent: { ...parent, maxAttempts }, clock: virtualClock() }),
      ).rejects.toMatchObject({
        name: 'RetryError',
        code: 'DEADLINE',
        attempts: 0,
        history: [],
        cause: undefined,
        decision: { failure: { code: 'TIMEOUT', notExecuted: true } },
      });
    }
    expect(fn).not.toHaveBeenCalled();
  });

  it('hold for the call inside: its signal', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const reason = new Error('stop');
    let inner: Promise<unknown> | undefined;
    let signal: AbortSignal | undefined;
    const outer = retry(
      (parent) =>
        (inner = retry(
          (attempt) => {
            signal = attempt.signal;
            return new Promise(() => {});
          },
          steady,
          { parent, clock },
        )),
      steady,
      { clock, signal: controller.signal },
    );
    controller.abort(reason);
    await expect(outer).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
    await expect(inner).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
    expect(signal?.reason).toBe(reason);
  });

  it('do not start a call inside an attempt that was aborted already', async () => {
    const clock = virtualClock();
    const fn = vi.fn();
    let inner: Promise<unknown> | undefined;
    await outcome(
      (parent) =>
        new Promise(() => {
          clock.setTimer(() => {
            inner = retry(fn, steady, { parent, clock });
            inner.catch(() => {});
          }, 500);
        }),
      { maxAttempts: 1, attemptTimeout: 100 },
      clock,
    );
    await expect(inner).rejects.toMatchObject({ code: 'ABORTED', cause: { name: 'TimeoutError' } });
    expect(fn).not.toHaveBeenCalled();
  });

  it('leave no listener on the signal of the parent', async () => {
    let removed = 0;
    await retry(async (parent) => {
      const added = vi.spyOn(parent.signal, 'addEventListener');
      const gone = vi.spyOn(parent.signal, 'removeEventListener');
      await retry(() => 1, steady, { parent, signal: parent.signal });
      expect(added.mock.calls.map(([, listener]) => listener)).toEqual(
        gone.mock.calls.map(([, listener]) => listener),
      );
      removed = gone.mock.calls.length;
    });
    expect(removed).toBeGreaterThan(0);
  });
});
