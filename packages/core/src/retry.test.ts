/* oxlint-disable unicorn/no-thenable -- what a thenable may do is a subject here */
import { describe, expect, it, vi } from 'vitest';
import { ConfigError, isConfigError, isRetryError, RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retrier, retry, retryable } from './retry.ts';
import type { Attempt, Runtime } from './run/runtime.ts';
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

describe.each([
  ['without anything to watch', {}],
  ['with a signal', { signal: new AbortController().signal }],
] satisfies [string, Runtime][])('a call %s', (_, runtime) => {
  it('gives the result of an attempt that works at once', async () => {
    const fn = flaky(0);
    await expect(retry(fn, steady, runtime)).resolves.toBe(1);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('gives the result of the attempt that worked in the end', async () => {
    const clock = virtualClock();
    const call = retry(flaky(2), steady, { ...runtime, clock });
    expect(await clock.run()).toBe(300);
    await expect(call).resolves.toBe(3);
  });

  it.each([
    ['a value', () => 7],
    ['a promise', () => Promise.resolve(7)],
    ['a thenable', () => ({ then: (done: (value: number) => void) => done(7) })],
    [
      'a thenable that is a function',
      () => Object.assign(() => 0, { then: (done: (value: number) => void) => done(7) }),
    ],
    [
      'a thenable of a thenable',
      () => ({
        then: (done: (value: unknown) => void) =>
          done({ then: (inner: (value: number) => void) => inner(7) }),
      }),
    ],
  ])('waits for %s', async (_kind, fn: () => unknown) => {
    const result = vi.fn(() => false);
    await expect(retry(fn, steady, runtime)).resolves.toBe(7);
    await expect(retry(fn, steady, { ...runtime, retryIf: { result } })).resolves.toBe(7);
    expect(result).toHaveBeenCalledExactlyOnceWith(7, 1);
  });

  it.each([
    [
      'a function that throws',
      () => {
        throw reset();
      },
    ],
    [
      'a thenable that rejects',
      () => ({ then: (_ok: unknown, no: (e: unknown) => void) => no(reset()) }),
    ],
    [
      'a thenable that throws',
      () => ({
        then() {
          throw reset();
        },
      }),
    ],
  ])('tries %s again', async (_kind, fn: () => unknown) => {
    const error = await fails(fn, steady, runtime);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4 });
  });

  it('listens only once to a thenable that answers twice', async () => {
    const retryIf = { error: vi.fn(() => undefined), result: vi.fn(() => false) };
    const twice = {
      then(done: (value: number) => void, no: (error: unknown) => void) {
        done(1);
        no(reset());
        done(2);
      },
    };
    await expect(retry(() => twice, steady, { ...runtime, retryIf })).resolves.toBe(1);
    expect(retryIf.result).toHaveBeenCalledTimes(1);
    expect(retryIf.error).not.toHaveBeenCalled();
  });

  it('throws an error that was permanent on the first attempt as it is', async () => {
    const bug = new TypeError('x is not a function');
    const fn = flaky(9, () => bug);
    await expect(retry(fn, steady, runtime)).rejects.toBe(bug);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('wraps an error that was permanent later', async () => {
    const errors = [reset(), new TypeError('x is not a function')];
    const fn = flaky(9, () => errors.shift() as Error);
    const error = await fails(fn, steady, runtime);
    expect(error).toMatchObject({ name: 'RetryError', code: 'PERMANENT', attempts: 2 });
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(error.history.map((record) => record.delayMs)).toEqual([100, undefined]);
  });

  it('says when all attempts failed: code, sentence, cause, attempts, history, decision', async () => {
    const thrown: Error[] = [];
    const fn = flaky(9, () => {
      thrown.push(reset());
      return thrown.at(-1) as Error;
    });
    const error = await fails(fn, { ...steady, maxAttempts: 3 }, runtime);
    expect(error).toBeInstanceOf(RetryError);
    expect(isRetryError(error)).toBe(true);
    expect(error.code).toBe('EXHAUSTED');
    expect(error.message).toBe('Gave up after 3 attempts (EXHAUSTED): reset');
    expect(error.cause).toBe(thrown[2]);
    expect(error.attempts).toBe(3);
    expect(error.history).toMatchObject([
      { attempt: 1, error: thrown[0], failure: { code: 'ECONNRESET' }, delayMs: 100 },
      { attempt: 2, error: thrown[1], delayMs: 200 },
      { attempt: 3, error: thrown[2] },
    ]);
    expect(error.history[2]).not.toHaveProperty('delayMs');
    expect(error.decision).toMatchObject({ action: 'giveUp', reason: 'EXHAUSTED', attempt: 3 });
    expect(error).not.toHaveProperty('result');
    expect(error).not.toHaveProperty('retryAfterMs');
  });

  it('keeps the newest fifty attempts', async () => {
    const error = await fails(flaky(99), { base: 0, maxAttempts: 60 }, runtime);
    expect(error.attempts).toBe(60);
    expect(error.history).toHaveLength(50);
    expect(error.history.map((record) => record.attempt)).toEqual(
      Array.from({ length: 50 }, (_each, index) => index + 11),
    );
  });

  it('rejects with what was thrown even if that is nothing at all', async () => {
    // oxlint-disable-next-line prefer-promise-reject-errors
    const error = await fails(() => Promise.reject(undefined), { maxAttempts: 1 }, runtime);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 1, cause: undefined });
  });

  it.each(['classify', 'random'] as const)(
    'ends with the error of a %s that throws',
    async (name) => {
      const clock = virtualClock();
      const broken = () => {
        throw new Error(`${name} is broken`);
      };
      const fn = flaky(9);
      const call = retry(fn, { deadline: '1h' }, { ...runtime, clock, [name]: broken });
      await expect(call).rejects.toThrow(`${name} is broken`);
      expect(fn).toHaveBeenCalledTimes(1);
      expect(clock.pending).toBe(0);
    },
  );
});

describe('retrier', () => {
  it('retries every function it is given by one policy', async () => {
    const clock = virtualClock();
    const run = retrier(steady, { clock, key: 'k' });
    const calls = [run(flaky(1)), run(({ idempotencyKey }) => idempotencyKey)];
    expect(await clock.run()).toBe(100);
    await expect(Promise.all(calls)).resolves.toEqual([2, 'k']);
  });

  it('takes more for a single call', async () => {
    const run = retrier(undefined, { key: 'k' });
    await expect(run(({ idempotencyKey }) => idempotencyKey, { key: 'own' })).resolves.toBe('own');
    await expect(run(() => 1, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
  });
});

describe('retryable', () => {
  it('keeps arguments and `this`', async () => {
    const clock = virtualClock();
    const account = {
      total: 10,
      calls: 0,
      add: retryable(
        function (this: { total: number; calls: number }, a: number, b: number) {
          if (++this.calls < 3) throw reset();
          return this.total + a + b;
        },
        steady,
        { clock },
      ),
    };
    const sum = account.add(1, 2);
    await clock.run();
    await expect(sum).resolves.toBe(13);
    expect(account.calls).toBe(3);
  });

  it('counts attempts anew for each call', async () => {
    const fn = flaky(1);
    const wrapped = retryable(fn as unknown as () => Promise<number>, { base: 0, maxAttempts: 2 });
    await expect(wrapped()).resolves.toBe(2);
    await expect(wrapped()).resolves.toBe(3);
  });
});

describe('bad input', () => {
  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [Promise.resolve(1), 'object'],
    ['work', 'string'],
  ])('says what it got instead of a function: %s', async (given, word) => {
    const fn = given as unknown as () => number;
    for (const call of [retry(fn), retrier()(fn)]) {
      await expect(call).rejects.toMatchObject({
        name: 'ConfigError',
        code: 'NOT_A_FUNCTION',
        message: expect.stringContaining(`got ${word}. Write retry(() => work())`),
      });
    }
    expect(() => retryable(fn)).toThrow(ConfigError);
  });

  it('rejects the call for a policy with faults, and names them all', async () => {
    const policy = { maxAttempts: 0, deadline: -1, base: Infinity, retries: 3 } as Policy;
    const fn = vi.fn();
    const error: unknown = await retry(fn, policy).catch((caught: unknown) => caught);
    expect(isConfigError(error)).toBe(true);
    expect(error).toMatchObject({ code: 'INVALID_POLICY' });
    expect((error as ConfigError).faults.map((fault) => [fault.path, fault.code])).toEqual([
      ['maxAttempts', 'INVALID_VALUE'],
      ['deadline', 'INVALID_DURATION'],
      ['base', 'INVALID_DURATION'],
      ['retries', 'UNKNOWN_FIELD'],
    ]);
    expect(fn).not.toHaveBeenCalled();
  });

  it.each([{ attemptTimeout: NaN }, { deadline: '-1s' }, { cap: '1 fortnight' }, null, 5])(
    'throws at once where a policy is kept for later: %j',
    (given) => {
      const policy = given as Policy;
      expect(() => retrier(policy)).toThrow(ConfigError);
      expect(() => retryable(() => 1, policy)).toThrow(ConfigError);
    },
  );

  it('tells its errors by name, not by class', () => {
    expect(isRetryError({ name: 'RetryError', history: [] })).toBe(true);
    expect(isRetryError({ name: 'RetryError' })).toBe(false);
    expect(isConfigError({ name: 'ConfigError', faults: [] })).toBe(true);
    for (const other of [undefined, null, 'RetryError', new Error('x')]) {
      expect(isRetryError(other) || isConfigError(other)).toBe(false);
    }
  });
});
