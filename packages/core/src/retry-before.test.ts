import { describe, expect, it, vi } from 'vitest';
import { createBreaker } from './circuit/breaker.ts';
import { decide, type Facts } from './decide.ts';
import type { RetryError } from './errors.ts';
import { explain } from './explain.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, BeforeRetry, RetryEvent } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

const fail = () => Promise.reject(reset());

describe('beforeRetry', () => {
  it('is awaited after the wait and before each attempt but the first', async () => {
    const clock = virtualClock();
    const log: string[] = [];
    const at = (what: string) => log.push(`${clock.monotonic() - start} ${what}`);
    const start = clock.monotonic();
    const call = retry(
      ({ attempt }) => {
        at(`attempt ${attempt}`);
        return attempt < 3 ? fail() : 'fine';
      },
      steady,
      {
        clock,
        on: ({ type }) => at(type),
        beforeRetry: ({ attempt }) =>
          new Promise<void>((resolve) => {
            at(`before ${attempt}`);
            clock.setTimer(resolve, 7);
          }),
      },
    );
    await clock.run();
    expect(await call).toBe('fine');
    expect(log).toEqual([
      '0 attempt',
      '0 attempt 1',
      '0 wait',
      '100 before 2',
      '107 attempt',
      '107 attempt 2',
      '107 wait',
      '307 before 3',
      '314 attempt',
      '314 attempt 3',
      '314 success',
    ]);
  });

  it('is told what failed and what is left, and shares the signal of the attempt', async () => {
    const clock = virtualClock();
    const seen: BeforeRetry[] = [];
    const contexts: { signal: AbortSignal; remainingMs: number; key: string }[] = [];
    const error = reset();
    const call = retry(
      ({ attempt, signal, remainingMs, idempotencyKey }) => {
        contexts.push({ signal, remainingMs, key: idempotencyKey });
        if (attempt === 1) throw error;
        return 'fine';
      },
      { ...steady, deadline: 1000, attemptTimeout: 300 },
      { clock, key: 'order 17', beforeRetry: (info) => void seen.push(info) },
    );
    await clock.run();
    await call;
    expect(seen).toMatchObject([
      {
        attempt: 2,
        maxAttempts: 4,
        error,
        failure: { class: 'transient', code: 'ECONNRESET' },
        remainingMs: 900,
        idempotencyKey: 'order 17',
      },
    ]);
    expect(contexts[1]).toMatchObject({ remainingMs: 300, key: 'order 17' });
    expect(contexts[1]?.signal).toBe(seen[0]?.signal);
    expect(seen[0]?.signal.aborted).toBe(false);
  });

  it('has no part in the time of the attempt, only in the deadline', async () => {
    const clock = virtualClock();
    const left: number[] = [];
    const call = retry(
      ({ attempt, remainingMs }) => {
        left.push(remainingMs);
        return attempt === 1 ? fail() : 'fine';
      },
      { ...steady, deadline: 1000, attemptTimeout: 300 },
      {
        clock,
        beforeRetry: () =>
          new Promise<void>((resolve) => {
            clock.setTimer(resolve, 800);
          }),
      },
    );
    await clock.run();
    expect(await call).toBe('fine');
    expect(left).toEqual([300, 100]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no token');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no token'))],
  ])('that %s ends the retry, with its error as the cause', async (_, beforeRetry) => {
    const clock = virtualClock();
    const fn = vi.fn(fail);
    const events: RetryEvent[] = [];
    const on = (event: RetryEvent) => events.push(event);
    const policy = { ...steady, deadline: '1h' } as const;
    const settled = retry(fn, policy, { clock, beforeRetry, on }).catch((error: unknown) => error);
    await clock.run();
    const error = (await settled) as RetryError;
    expect(error).toMatchObject({
      name: 'RetryError',
      code: 'BEFORE_RETRY_FAILED',
      message: 'Gave up after 1 attempt (BEFORE_RETRY_FAILED): no token',
      attempts: 1,
      cause: { message: 'no token' },
      history: [{ attempt: 1, error: { message: 'reset' }, delayMs: 100 }],
    });
    expect(fn).toHaveBeenCalledTimes(1);
    expect(clock.pending).toBe(0);
    const last = events.at(-1) as Extract<RetryEvent, { type: 'giveUp' }>;
    expect(last).toMatchObject({ type: 'giveUp', error });
    expect(decide(policy, last.facts)).toEqual(last.decision);
    expect(explain(last.decision)).toBe(
      'Attempt 2 of 4 was not started; gave up because beforeRetry failed.',
    );
  });

  it('need not be async, and what it returns is ignored', async () => {
    const clock = virtualClock();
    const fn = ({ attempt }: Attempt) => (attempt === 1 ? fail() : attempt);
    const call = retry(fn, steady, { clock, beforeRetry: () => false });
    await clock.run();
    expect(await call).toBe(2);
  });

  it('runs before an attempt that has the number of the one before, which was not counted', async () => {
    const clock = virtualClock();
    const seen: number[] = [];
    let calls = 0;
    const call = retry(() => (++calls < 3 ? fail() : calls), steady, {
      clock,
      classify: () => ({ counted: false }),
      beforeRetry: ({ attempt }) => void seen.push(attempt),
    });
    await clock.run();
    expect(await call).toBe(3);
    expect(seen).toEqual([1, 1]);
  });

  it('runs before a retry of a refused result too', async () => {
    const clock = virtualClock();
    const seen: unknown[] = [];
    const call = retry(({ attempt }) => attempt, steady, {
      clock,
      retryIf: { result: (value) => value < 2 },
      beforeRetry: ({ error, failure }) => void seen.push([error, failure.code]),
    });
    await clock.run();
    expect(await call).toBe(2);
    expect(seen).toEqual([[undefined, 'RESULT']]);
  });
});

describe('beforeRetry does not run', () => {
  it('where nothing is retried', async () => {
    const beforeRetry = vi.fn();
    await retry(() => 1, steady, { beforeRetry });
    await retry(fail, { maxAttempts: 1 }, { beforeRetry }).catch(() => {});
    await retry(fail, steady, { beforeRetry, retryIf: () => false }).catch(() => {});
    await retry((parent) => retry(fail, steady, { parent, beforeRetry }), {
      maxAttempts: 2,
      base: 0,
    }).catch(() => {});
    expect(beforeRetry).not.toHaveBeenCalled();
  });

  it('where the caller aborts during the wait', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const beforeRetry = vi.fn();
    const call = retry(fail, steady, { clock, signal: controller.signal, beforeRetry });
    const settled = call.catch((error: unknown) => error);
    await clock.advance(50);
    controller.abort();
    expect(await settled).toMatchObject({ code: 'ABORTED' });
    expect(beforeRetry).not.toHaveBeenCalled();
  });

  it('where the breaker refuses the attempt, and once where it lets it through', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ failures: 1, openFor: 1000, clock });
    const times: number[] = [];
    const start = clock.monotonic();
    const call = retry(({ attempt }) => (attempt === 1 ? fail() : 'fine'), steady, {
      clock,
      breaker,
      beforeRetry: () => void times.push(clock.monotonic() - start),
    });
    await clock.run();
    expect(await call).toBe('fine');
    expect(times).toHaveLength(1);
    expect(times[0]).toBeGreaterThanOrEqual(1000);
  });

  it('before a first attempt that a breaker held up', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ failures: 1, openFor: 1000, clock });
    await retry(fail, { maxAttempts: 1 }, { breaker }).catch(() => {});
    const beforeRetry = vi.fn();
    const call = retry(() => 'fine', steady, { clock, breaker, beforeRetry });
    await clock.run();
    expect(await call).toBe('fine');
    expect(beforeRetry).not.toHaveBeenCalled();
  });
});

describe('while beforeRetry is pending', () => {
  function pending(policy: Policy) {
    const clock = virtualClock();
    const controller = new AbortController();
    const fn = vi.fn(fail);
    const infos: BeforeRetry[] = [];
    let reject: ((error: Error) => void) | undefined;
    const call = retry(fn, policy, {
      clock,
      signal: controller.signal,
      beforeRetry: (info) => {
        infos.push(info);
        return new Promise((_, no) => {
          reject = no;
        });
      },
    });
    const settled = call.catch((error: unknown) => error) as Promise<RetryError>;
    return { clock, controller, fn, infos, settled, late: () => reject?.(new Error('late')) };
  }

  it('an abort ends the call at once, and the next attempt does not start', async () => {
    const { clock, controller, fn, infos, settled, late } = pending(steady);
    await clock.advance(100);
    controller.abort(new Error('left'));
    expect(await settled).toMatchObject({
      code: 'ABORTED',
      attempts: 1,
      cause: { message: 'left' },
      history: [{}],
    });
    expect(infos[0]?.signal.reason).toMatchObject({ message: 'left' });
    late();
    await clock.run();
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('the deadline ends the call at once, and the next attempt does not start', async () => {
    const { clock, fn, infos, settled, late } = pending({ ...steady, deadline: 500 });
    await clock.advance(500);
    expect(await settled).toMatchObject({ code: 'DEADLINE', attempts: 1, history: [{}] });
    expect(infos[0]?.signal.reason).toMatchObject({ name: 'TimeoutError' });
    late();
    expect(clock.pending).toBe(0);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('the deadline ends the call, also where its timer fires a moment early', async () => {
    const virtual = virtualClock();
    const setTimer: typeof virtual.setTimer = (callback, ms) => virtual.setTimer(callback, ms - 1);
    const clock = { ...virtual, setTimer };
    const fn = vi.fn(fail);
    const policy = { base: 10, jitter: 'none', deadline: 50 } as const;
    const beforeRetry = () => new Promise<void>(() => {});
    const settled = retry(fn, policy, { clock, beforeRetry }).catch((e: unknown) => e);
    await virtual.advance(49);
    expect(await settled).toMatchObject({ code: 'DEADLINE', attempts: 1 });
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('an abort by itself ends the call, whether it throws or not', async () => {
    for (const error of [undefined, new Error('token')]) {
      const clock = virtualClock();
      const controller = new AbortController();
      const fn = vi.fn(fail);
      const call = retry(fn, steady, {
        clock,
        signal: controller.signal,
        beforeRetry: () => {
          controller.abort(new Error('left'));
          if (error) throw error;
        },
      });
      const settled = call.catch((reason: unknown) => reason);
      await clock.run();
      expect(await settled).toMatchObject({ code: 'ABORTED', cause: { message: 'left' } });
      expect(fn).toHaveBeenCalledTimes(1);
    }
  });

  it('a breaker gets its ticket back when it fails, so that another call can probe', async () => {
    const clock = virtualClock();
    const breaker = createBreaker({ failures: 1, openFor: 1000, clock });
    const beforeRetry = () => Promise.reject(new Error('no token'));
    const settled = retry(fail, steady, { clock, breaker, beforeRetry }).catch((e: unknown) => e);
    await clock.run();
    expect(await settled).toMatchObject({ code: 'BEFORE_RETRY_FAILED' });
    expect(breaker.state).toBe('half_open');
    expect(await retry(() => 'fine', steady, { clock, breaker })).toBe('fine');
    expect(breaker.state).toBe('closed');
  });

  it('takes none of the facts of a decision without it', () => {
    const facts: Facts = { attempt: 1, failure: { class: 'transient' } };
    expect(decide(steady, { ...facts, beforeRetryFailed: false })).toMatchObject({
      action: 'retry',
    });
    expect(decide(steady, { ...facts, beforeRetryFailed: true, aborted: true })).toMatchObject({
      reason: 'ABORTED',
    });
  });
});
