import { describe, expect, it, vi } from 'vitest';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, Outcome, Runtime } from './runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

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
  it.each([undefined, false])('accepts it with %s', async (verdict) => {
    const retryIf = vi.fn(() => verdict);
    expect(await outcome(() => Promise.resolve('fine'), { retryIf })).toBe('fine');
    expect(retryIf).toHaveBeenCalledExactlyOnceWith({ result: 'fine', attempt: 1 });
  });

  it('refuses it with true, and tries again', async () => {
    const retryIf = vi.fn(({ result }: Outcome<number>) => result !== 3);
    expect(await outcome(({ attempt }) => attempt, { retryIf })).toBe(3);
    expect(retryIf.mock.calls).toEqual([1, 2, 3].map((n) => [{ result: n, attempt: n }]));
  });

  it('ends with the last result in the error when nothing was accepted', async () => {
    const error = await outcome(({ attempt }) => `try ${attempt}`, { retryIf: () => true });
    expect(error).toMatchObject({
      code: 'EXHAUSTED',
      message: 'Gave up after 4 attempts (EXHAUSTED).',
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

  it('keeps even a result that is undefined', async () => {
    const error = await outcome(() => undefined, { retryIf: () => true }, { maxAttempts: 1 });
    expect(error).toHaveProperty('result', undefined);
  });

  it('outranks the policy, which would not retry an unknown failure', async () => {
    const policy = { ...steady, retryOn: ['transient'], idempotent: false } as const;
    const error = await outcome(() => 1, { retryIf: () => true }, policy);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4 });
  });

  it('reads a refused Response: its status, and how long to wait', async () => {
    const responses: Response[] = [];
    const error = await outcome(
      () => {
        const headers = { 'retry-after': '3' };
        responses.push(new Response('busy', { status: 503, headers }));
        return Promise.resolve(responses.at(-1) as Response);
      },
      { retryIf: ({ result }) => result?.status === 503, random: () => 0 },
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
        retryIf() {
          throw new Error('bad predicate');
        },
      },
    );
    await expect(call).rejects.toThrow('bad predicate');
    expect(clock.pending).toBe(0);
    expect(dispose).toHaveBeenCalledTimes(1);
  });
});

describe('a verdict on an error', () => {
  it('of true retries what the policy would not', async () => {
    const bug = new TypeError('bug');
    const error = await outcome(() => Promise.reject(bug), { retryIf: () => true });
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 4, cause: bug });
  });

  it('of false does not retry what the policy would', async () => {
    const error = reset();
    const retryIf = vi.fn(() => false);
    expect(await outcome(() => Promise.reject(error), { retryIf })).toBe(error);
    expect(retryIf).toHaveBeenCalledExactlyOnceWith({ error, attempt: 1 });
  });

  it('of undefined leaves it to the policy', async () => {
    const retryIf = () => undefined;
    const bug = new TypeError('bug');
    expect(await outcome(() => Promise.reject(bug), { retryIf })).toBe(bug);
    expect(await outcome(() => Promise.reject(reset()), { retryIf })).toMatchObject({
      code: 'EXHAUSTED',
    });
  });

  it('that is a promise is no verdict', async () => {
    const bug = new TypeError('bug');
    const retryIf = (() => Promise.resolve(true)) as unknown as () => boolean;
    expect(await outcome(() => Promise.reject(bug), { retryIf })).toBe(bug);
  });

  it('that throws ends the call with its error', async () => {
    const error = await outcome(() => Promise.reject(reset()), {
      retryIf() {
        throw new Error('bad predicate');
      },
    });
    expect(error.message).toBe('bad predicate');
  });

  it('cannot outvote the limits', async () => {
    const policy = { ...steady, maxAttempts: 2 };
    const error = await outcome(() => Promise.reject(reset()), { retryIf: () => true }, policy);
    expect(error).toMatchObject({ code: 'EXHAUSTED', attempts: 2 });
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
      { retryIf: ({ result }) => result?.attempt === 1 },
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
      { retryIf: ({ result: response }) => response?.ok === false },
    );
    expect(result).toMatchObject({ status: 200 });
    expect(cancelled).toEqual([1, 2]);
  });

  it('is not disposed of when it goes to the caller in the error', async () => {
    const dispose = vi.fn();
    const fn = () => ({ [Symbol.dispose]: dispose });
    const error = await outcome(fn, { retryIf: () => true }, { ...steady, maxAttempts: 3 });
    expect(error.result).toEqual({ [Symbol.dispose]: dispose });
    expect(dispose).toHaveBeenCalledTimes(2);
  });
});
