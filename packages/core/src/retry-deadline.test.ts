import { describe, expect, it, vi } from 'vitest';
import type { Clock } from './clock.ts';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { createBulkhead } from './limits/bulkhead.ts';
import { retry } from './retry.ts';
import type { Attempt, Runtime } from './run/runtime.ts';
import { virtualClock, type VirtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

/** Work that takes its time, whatever its signal says. */
function taking(clock: Clock, ms: number, result: unknown = 'done') {
  return vi.fn(
    (_attempt: Attempt) =>
      new Promise((resolve, reject) => {
        clock.setTimer(() => (result instanceof Error ? reject(result) : resolve(result)), ms);
      }),
  );
}

async function outcome(
  clock: VirtualClock,
  fn: (attempt: Attempt) => unknown,
  policy: Policy,
  runtime: Runtime = {},
): Promise<RetryError> {
  const call = retry(fn, policy, { clock, ...runtime });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return settled as RetryError;
}

describe('an attempt timeout', () => {
  it('aborts the signal with a TimeoutError and counts as a transient failure', async () => {
    const clock = virtualClock();
    const signals: AbortSignal[] = [];
    const error = await outcome(
      clock,
      ({ signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      },
      { ...steady, maxAttempts: 3, attemptTimeout: '1s' },
    );
    expect(error).toMatchObject({
      code: 'EXHAUSTED',
      attempts: 3,
      cause: { name: 'TimeoutError', message: 'Attempt 3 took longer than 1000 ms.' },
      history: [
        { attempt: 1, failure: { class: 'transient', code: 'TIMEOUT' }, delayMs: 100 },
        { attempt: 2, failure: { class: 'transient', code: 'TIMEOUT' }, delayMs: 200 },
        { attempt: 3, failure: { class: 'transient', code: 'TIMEOUT' } },
      ],
    });
    expect(clock.monotonic()).toBe(3300);
    for (const [index, signal] of signals.entries()) {
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBe(error.history[index]?.error);
    }
    expect(new Set(signals).size).toBe(3);
  });

  it('is seen by work that looks at its signal only afterwards', async () => {
    const clock = virtualClock();
    const contexts: Attempt[] = [];
    await outcome(
      clock,
      (attempt) => {
        contexts.push(attempt);
        return new Promise(() => {});
      },
      { maxAttempts: 1, attemptTimeout: 5 },
    );
    expect(contexts[0]?.signal).toMatchObject({ aborted: true, reason: { name: 'TimeoutError' } });
  });

  it('leaves an attempt that was fast enough alone', async () => {
    const clock = virtualClock();
    let given: AbortSignal | undefined;
    const fn = taking(clock, 999);
    const result = await outcome(
      clock,
      (attempt) => {
        given = attempt.signal;
        return fn(attempt);
      },
      { attemptTimeout: '1s' },
    );
    expect(result).toBe('done');
    await clock.advance('1h');
    expect(given?.aborted).toBe(false);
  });

  it('disposes of a result that comes too late, while the next attempt runs', async () => {
    const clock = virtualClock();
    const dispose = vi.fn();
    const slow = taking(clock, 1500, { [Symbol.dispose]: dispose });
    const fn = (attempt: Attempt) => (attempt.attempt === 1 ? slow(attempt) : 'second');
    expect(await outcome(clock, fn, { ...steady, attemptTimeout: '1s' })).toBe('second');
    expect(dispose).toHaveBeenCalledTimes(1);
  });

  it('is not retried for work that must not run twice', async () => {
    const clock = virtualClock();
    const policy = { attemptTimeout: 5, idempotent: false };
    const error = await outcome(clock, () => new Promise(() => {}), policy);
    expect(error).toMatchObject({ name: 'TimeoutError' });
  });

  it('counts from the start of the attempt, also the part that cannot be interrupted', async () => {
    const clock = virtualClock();
    let blockedMs = 0;
    const blocked: Clock = {
      now: clock.now,
      monotonic: () => clock.monotonic() + blockedMs,
      setTimer: clock.setTimer,
      clearTimer: clock.clearTimer,
    };
    const fn = () => {
      blockedMs = 300;
      return new Promise(() => {});
    };
    const policy = { attemptTimeout: '1s', maxAttempts: 1 } as const;
    const error = await outcome(clock, fn, policy, { clock: blocked });
    expect(error).toMatchObject({ code: 'EXHAUSTED', cause: { name: 'TimeoutError' } });
    expect(blocked.monotonic()).toBe(1000);
  });

  it('may be longer than a host timer can be', async () => {
    const clock = virtualClock();
    const fn = taking(clock, 30 * 86_400_000);
    expect(await outcome(clock, fn, { attemptTimeout: '31d' })).toBe('done');
  });
});

describe('a deadline', () => {
  it('holds over attempts and waits, and an attempt that cannot fit is not started', async () => {
    const clock = virtualClock();
    await clock.advance('1h');
    const fn = taking(clock, 400, reset());
    const error = await outcome(clock, fn, { ...steady, deadline: '1s' });
    // 400 + 100 + 400 + 200: the third would start at 1100.
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 2, cause: { message: 'reset' } });
    expect(error.message).toBe('Gave up after 2 attempts (DEADLINE): reset');
    expect(clock.monotonic()).toBe(3_600_900);
    expect(clock.pending).toBe(0);
  });

  it('leaves an attempt that would start at its very end unstarted', async () => {
    const clock = virtualClock();
    const error = await outcome(clock, taking(clock, 0, reset()), { ...steady, deadline: 100 });
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 1 });
    expect(clock.monotonic()).toBe(0);
    const later = virtualClock();
    const second = await outcome(later, taking(later, 0, reset()), { ...steady, deadline: 101 });
    expect(second).toMatchObject({ code: 'DEADLINE', attempts: 2 });
  });

  it('ends the attempt that is running when it passes', async () => {
    const clock = virtualClock();
    const contexts: Attempt[] = [];
    const error = await outcome(
      clock,
      (attempt) => {
        contexts.push(attempt);
        return new Promise(() => {});
      },
      { ...steady, attemptTimeout: '700ms', deadline: '1s' },
    );
    expect(error).toMatchObject({
      code: 'DEADLINE',
      attempts: 2,
      cause: { name: 'TimeoutError', message: 'Attempt 2 took longer than 200 ms.' },
    });
    expect(error.history).toHaveLength(2);
    expect(clock.monotonic()).toBe(1000);
    expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  });

  it('is the reason also where it falls together with the attempt timeout', async () => {
    const clock = virtualClock();
    const policy = { attemptTimeout: 100, deadline: 100 };
    const error = await outcome(clock, () => new Promise(() => {}), policy);
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 1 });
  });

  it('is met although the fractions of its clock do not add up', async () => {
    const clock = virtualClock();
    // As doubles, the second reading and the time from there to the deadline add up to less than the deadline.
    const readings = [1.2508634954435482];
    const odd: Clock = {
      now: clock.now,
      monotonic: () => readings.shift() ?? 42.18812393632845 + clock.monotonic(),
      setTimer: clock.setTimer,
      clearTimer: clock.clearTimer,
    };
    const fn = vi.fn(() => new Promise(() => {}));
    const policy = { base: 0, deadline: 2003.6820205602712 };
    const error = await outcome(clock, fn, policy, { clock: odd });
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 1 });
  });

  it('lets nothing start when a timer fires late', async () => {
    const clock = virtualClock();
    let lateMs = 0;
    const late: Clock = {
      now: clock.now,
      monotonic: () => clock.monotonic() + lateMs,
      setTimer: clock.setTimer,
      clearTimer: clock.clearTimer,
    };
    const fn = vi.fn(() => Promise.reject(reset()));
    const policy = { ...steady, deadline: '1s' } as const;
    const on = { wait: () => void (lateMs = 950) };
    const error = await outcome(clock, fn, policy, { clock: late, on });
    expect(error).toMatchObject({
      code: 'DEADLINE',
      attempts: 1,
      cause: { message: 'reset' },
      history: [{ attempt: 1, delayMs: 100 }],
    });
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('says so also where a full bulkhead would refuse the attempt anyway', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    let lateMs = 0;
    const late: Clock = { ...clock, monotonic: () => clock.monotonic() + lateMs };
    const other = taking(clock, 60_000);
    const on = {
      wait: () => {
        lateMs = 950;
        void retry(other, steady, { clock, bulkhead });
      },
    };
    const fn = vi.fn(() => Promise.reject(reset()));
    const policy = { ...steady, deadline: '1s' } as const;
    const error = await outcome(clock, fn, policy, { clock: late, bulkhead, on });
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 1 });
    expect(other).toHaveBeenCalledOnce();
  });

  it('keeps a result that came after it when nothing could have stopped the work', async () => {
    const clock = virtualClock();
    let blockedMs = 0;
    const blocked: Clock = {
      now: clock.now,
      monotonic: () => clock.monotonic() + blockedMs,
      setTimer: clock.setTimer,
      clearTimer: clock.clearTimer,
    };
    const fn = () => {
      blockedMs = 5000;
      return 'late but here';
    };
    const call = retry(fn, { deadline: '1s' }, { clock: blocked });
    await expect(call).resolves.toBe('late but here');
  });

  it('does not care about jumps of the wall clock', async () => {
    const clock = virtualClock();
    const fn = (attempt: Attempt) => {
      clock.jump(-86_400_000);
      if (attempt.attempt < 3) throw reset();
      return attempt.remainingMs;
    };
    expect(await outcome(clock, fn, { ...steady, deadline: '1s' })).toBe(700);
  });
});

describe('the time that is left', () => {
  it('is handed to the function, by the attempt timeout and the deadline', async () => {
    const clock = virtualClock();
    const left: number[] = [];
    const error = await outcome(
      clock,
      (attempt) => {
        left.push(attempt.remainingMs);
        return taking(clock, 300, reset())(attempt);
      },
      { ...steady, attemptTimeout: '500ms', deadline: '1s' },
    );
    expect(left).toEqual([500, 500, 100]);
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 3 });
  });

  it('shrinks as time passes, and never below nothing', async () => {
    const clock = virtualClock();
    let context: Attempt | undefined;
    const call = retry(
      (attempt) => {
        context = attempt;
        return new Promise(() => {});
      },
      { attemptTimeout: '1s', maxAttempts: 1 },
      { clock },
    ).catch(() => {});
    await clock.advance(400);
    expect(context?.remainingMs).toBe(600);
    await clock.advance(4000);
    await call;
    expect(context?.remainingMs).toBe(0);
  });

  it('is endless without limits', async () => {
    const fn = ({ remainingMs }: Attempt) => remainingMs;
    await expect(retry(fn)).resolves.toBe(Infinity);
    await expect(retry(fn, {}, { on: () => {} })).resolves.toBe(Infinity);
  });

  it('is measured by the clock of the host unless another is given', async () => {
    const left = await retry(({ remainingMs }) => remainingMs, { deadline: '1h' });
    expect(left).toBeGreaterThan(3_590_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
  });
});

describe('what the other side asks for', () => {
  function busy(seconds: number) {
    return new Response('busy', { status: 429, headers: { 'retry-after': `${seconds}` } });
  }

  it.each([
    ['a thrown Response', () => busy(2)],
    ['an error with a response', () => Object.assign(new Error('busy'), { response: busy(2) })],
    [
      'an error with headers',
      () => Object.assign(new Error('x'), { status: 503, headers: { 'Retry-After': '2' } }),
    ],
    ['an error that says it', () => Object.assign(reset(), { retryAfterMs: 2000 })],
  ])('is a floor for the wait: %s', async (_, fail) => {
    const clock = virtualClock();
    // oxlint-disable-next-line prefer-promise-reject-errors
    const fn = (attempt: Attempt) => (attempt.attempt > 1 ? 'ok' : Promise.reject(fail()));
    expect(await outcome(clock, fn, steady, { random: () => 0.5 })).toBe('ok');
    expect(clock.monotonic()).toBe(2100);
  });

  it('may be a date, measured against the clock that was given', async () => {
    const clock = virtualClock(Date.UTC(2031, 0, 1));
    const headers = { 'retry-after': new Date(clock.now() + 5000).toUTCString() };
    const error = Object.assign(new Error('down'), { status: 503, headers });
    const fn = (attempt: Attempt) => (attempt.attempt > 1 ? 'ok' : Promise.reject(error));
    expect(await outcome(clock, fn, steady, { random: () => 0 })).toBe('ok');
    expect(clock.monotonic()).toBe(5000);
  });

  it('ends the call where it is too long, and says how long it was', async () => {
    const clock = virtualClock();
    const fn = vi.fn(() => Promise.reject(Object.assign(reset(), { retryAfterMs: 61_000 })));
    const error = await outcome(clock, fn, steady);
    expect(error).toMatchObject({
      code: 'RETRY_AFTER_TOO_LONG',
      retryAfterMs: 61_000,
      attempts: 1,
    });
    expect(clock.monotonic()).toBe(0);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('ends the call where the deadline comes first', async () => {
    const clock = virtualClock();
    const fn = () => Promise.reject(Object.assign(reset(), { retryAfterMs: 5000 }));
    const error = await outcome(clock, fn, { ...steady, deadline: '4s' });
    expect(error).toMatchObject({ code: 'DEADLINE', retryAfterMs: 5000, attempts: 1 });
    expect(clock.monotonic()).toBe(0);
  });
});
