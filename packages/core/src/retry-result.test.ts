import { describe, expect, it, vi } from 'vitest';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryIfError, Runtime } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

const refuseAll = { result: () => true };

async function outcome<T>(
  fn: (attempt: Attempt) => T,
  runtime: Runtime<Awaited<T>>,
  policy: Policy = steady,
): Promise<RetryError> {
  const clock = virtualClock();
  const call = retry(fn, policy, { clock, ...runtime });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return settled as RetryError;
}

describe('a verdict on a result', () => {
  it.each([false, undefined, 1, Promise.resolve(false)])('accepts it with %s', async (verdict) => {
    const result = vi.fn(() => verdict as boolean);
    expect(await outcome(() => Promise.resolve('fine'), { retryIf: { result } })).toBe('fine');
    expect(result).toHaveBeenCalledExactlyOnceWith('fine', 1);
  });

  it('is not asked of a function, which is about errors alone', async () => {
    const retryIf = vi.fn(() => true);
    expect(await outcome(() => Promise.resolve('fine'), { retryIf })).toBe('fine');
    expect(await outcome(() => 'fine', { retryIf: { error: retryIf } })).toBe('fine');
    expect(retryIf).not.toHaveBeenCalled();
  });

  it('refuses it with true, and tries again', async () => {
    const result = vi.fn((value: string) => value !== 'try 3');
    const fn = ({ attempt }: Attempt) => `try ${attempt}`;
    expect(await outcome(fn, { retryIf: { result } })).toBe('try 3');
    expect(result.mock.calls).toEqual([1, 2, 3].map((n) => [`try ${n}`, n]));
  });

  it('ends with the last result in the error when nothing was accepted', async () => {
    const error = await outcome(({ attempt }) => `try ${attempt}`, { retryIf: refuseAll });
    expect(error).toMatchObject({
      code: 'EXHAUSTED',
      message: 'Gave up after 4 attempts (EXHAUSTED): RESULT',
      attempts: 4,
      result: 'try 4',
      cause: undefined,
    });
    expect(error.history).toHaveLength(4);
    expect(error.history[0]).toMatchObject({
      error: undefined,
      failure: { class: 'unknown', code: 'RESULT' },
    });
  });

  it('has no error of its own, whatever was thrown before', async () => {
    const fn = ({ attempt }: Attempt) => (attempt === 1 ? Promise.reject(reset()) : 'no');
    const policy = { ...steady, maxAttempts: 2 };
    const error = await outcome(fn, { retryIf: refuseAll }, policy);
    expect(error).toMatchObject({ code: 'EXHAUSTED', result: 'no', cause: undefined });
    expect(error.history.map((record) => (record.error as Error | undefined)?.message)).toEqual([
      'reset',
      undefined,
    ]);
  });

  it('keeps even a result that is undefined', async () => {
    const error = await outcome(() => undefined, { retryIf: refuseAll }, { maxAttempts: 1 });
    expect(error).toHaveProperty('result', undefined);
  });

  it('outranks the policy, which would not retry an unknown failure', async () => {
    const policy = { ...steady, retryOn: ['transient'] } as const;
    const error = await outcome(() => 1, { retryIf: refuseAll }, policy);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4 });
  });

  it('does not repeat what must not run twice, and hands the result over', async () => {
    const error = await outcome(
      () => 'no',
      { retryIf: refuseAll },
      { ...steady, idempotent: false },
    );
    expect(error).toMatchObject({ code: 'PERMANENT', attempts: 1, result: 'no' });
  });

  it('reads a refused Response: its status, and how long to wait', async () => {
    const responses: Response[] = [];
    const error = await outcome(
      () => {
        const headers = { 'retry-after': '3' };
        responses.push(new Response('busy', { status: 503, headers }));
        return Promise.resolve(responses.at(-1) as Response);
      },
      { retryIf: { result: ({ status }) => status === 503 }, random: () => 0 },
      { ...steady, maxAttempts: 2 },
    );
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 2, retryAfterMs: 3000 });
    expect(error.history).toMatchObject([
      { failure: { class: 'transient', code: 'HTTP_503', status: 503 }, delayMs: 3000 },
      { failure: { status: 503 } },
    ]);
    expect(error.result).toBe(responses[1]);
    await expect((error.result as Response).text()).resolves.toBe('busy');
  });

  it('that throws ends the call with its error, and the result is disposed of', async () => {
    const clock = virtualClock();
    const dispose = vi.fn();
    const call = retry(
      () => ({ [Symbol.dispose]: dispose }),
      { deadline: '1h' },
      {
        clock,
        retryIf: {
          result() {
            throw new Error('bad predicate');
          },
        },
      },
    );
    await expect(call).rejects.toThrow('bad predicate');
    expect(clock.pending).toBe(0);
    expect(dispose).toHaveBeenCalledTimes(1);
  });
});

describe.each<[string, (verdict: RetryIfError) => Runtime['retryIf']]>([
  ['a function', (error) => error],
  ['a function by name', (error) => ({ error })],
  ['a function beside one on results', (error) => ({ error, result: () => false })],
])('a verdict on an error by %s', (_, as) => {
  it('of true retries what the policy would not', async () => {
    const bug = new TypeError('bug');
    const error = await outcome(() => Promise.reject(bug), { retryIf: as(() => true) });
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4, cause: bug });
  });

  it('of false does not retry what the policy would', async () => {
    const error = reset();
    const verdict = vi.fn(() => false);
    expect(await outcome(() => Promise.reject(error), { retryIf: as(verdict) })).toBe(error);
    expect(verdict).toHaveBeenCalledExactlyOnceWith(error, 1);
  });

  it('is asked about each attempt by its number', async () => {
    const verdict = vi.fn((_error: unknown, attempt: number) => attempt < 3);
    const error = await outcome(() => Promise.reject(reset()), { retryIf: as(verdict) });
    expect(error).toMatchObject({ code: 'PERMANENT', attempts: 3 });
    expect(verdict.mock.calls.map(([, attempt]) => attempt)).toEqual([1, 2, 3]);
  });

  it('of undefined leaves it to the policy', async () => {
    const retryIf = as(() => undefined);
    const bug = new TypeError('bug');
    expect(await outcome(() => Promise.reject(bug), { retryIf })).toBe(bug);
    expect(await outcome(() => Promise.reject(reset()), { retryIf })).toMatchObject({
      code: 'EXHAUSTED',
    });
  });

  it('that throws ends the call with its error', async () => {
    const error = await outcome(() => Promise.reject(reset()), {
      retryIf: as(() => {
        throw new Error('bad predicate');
      }),
    });
    expect(error.message).toBe('bad predicate');
  });

  it('cannot outvote the limits', async () => {
    const policy = { ...steady, maxAttempts: 2 };
    const retryIf = as(() => true);
    const error = await outcome(() => Promise.reject(reset()), { retryIf }, policy);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 2 });
  });
});

describe('no verdict at all', () => {
  it.each<[string, Runtime['retryIf']]>([
    ['an empty object', {}],
    ['one on results only', { result: () => true }],
  ])('on errors, by %s, leaves them to the policy', async (_, retryIf) => {
    const bug = new TypeError('bug');
    expect(await outcome(() => Promise.reject(bug), { retryIf })).toBe(bug);
    expect(await outcome(() => Promise.reject(reset()), { retryIf })).toMatchObject({
      code: 'EXHAUSTED',
      attempts: 4,
    });
  });
});

describe('a refused result', () => {
  it('is disposed of before the next attempt starts', async () => {
    const log: string[] = [];
    await outcome(
      ({ attempt }) => {
        log.push(`start ${attempt}`);
        return { attempt, [Symbol.dispose]: () => log.push(`dispose ${attempt}`) };
      },
      { retryIf: { result: ({ attempt }) => attempt === 1 } },
    );
    expect(log).toEqual(['start 1', 'dispose 1', 'start 2']);
  });

  it('that is a Response has its body cancelled', async () => {
    const cancelled: unknown[] = [];
    const result = await outcome(
      ({ attempt }) => {
        const body = new ReadableStream({ cancel: () => void cancelled.push(attempt) });
        return new Response(body, { status: attempt < 3 ? 500 : 200 });
      },
      { retryIf: { result: ({ ok }) => !ok } },
    );
    expect(result).toMatchObject({ status: 200 });
    expect(cancelled).toEqual([1, 2]);
  });

  it('is not disposed of when it goes to the caller in the error', async () => {
    const dispose = vi.fn();
    const fn = () => ({ [Symbol.dispose]: dispose });
    const error = await outcome(fn, { retryIf: refuseAll }, { ...steady, maxAttempts: 3 });
    expect(error.result).toEqual({ [Symbol.dispose]: dispose });
    expect(dispose).toHaveBeenCalledTimes(2);
  });
});

describe('a Response that was thrown', () => {
  /** Throws a Response with an open body, and notes whose body was cancelled. */
  function thrower(status: number) {
    const cancelled: number[] = [];
    const fn = ({ attempt }: Attempt): never => {
      const body = new ReadableStream({ cancel: () => void cancelled.push(attempt) });
      throw new Response(body, { status });
    };
    return { cancelled, fn };
  }

  it('has its body cancelled when it is retried, before the wait', async () => {
    const { cancelled, fn } = thrower(503);
    const clock = virtualClock();
    const call = retry(fn, steady, { clock }).catch(() => {});
    await clock.advance(99);
    expect(cancelled).toEqual([1]);
    await clock.run();
    await call;
  });

  it('keeps its body when it goes to the caller as the cause', async () => {
    const { cancelled, fn } = thrower(503);
    const error = await outcome(fn, {}, { ...steady, maxAttempts: 3 });
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 3, cause: { status: 503 } });
    expect(cancelled).toEqual([1, 2]);
  });

  it('keeps its body when it goes to the caller as it is', async () => {
    const { cancelled, fn } = thrower(404);
    expect(await outcome(fn, { retryIf: () => false })).toMatchObject({ status: 404 });
    expect(cancelled).toEqual([]);
  });
});
