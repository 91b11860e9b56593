/* oxlint-disable unicorn/no-thenable -- what a thenable may do is a subject here */
import { describe, expect, it, vi } from 'vitest';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent, RetryIfError } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

/** A signal that counts who is listening to it. */
function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const listening = new Set<unknown>();
  vi.spyOn(signal, 'addEventListener').mockImplementation((type, listener) => {
    listening.add(listener);
    EventTarget.prototype.addEventListener.call(signal, type, listener as EventListener);
  });
  vi.spyOn(signal, 'removeEventListener').mockImplementation((type, listener) => {
    listening.delete(listener);
    EventTarget.prototype.removeEventListener.call(signal, type, listener as EventListener);
  });
  return { controller, signal, listening };
}

/** What the promise has come to by now, without waiting for it. */
async function now(promise: Promise<unknown>): Promise<unknown> {
  let outcome: unknown = 'pending';
  const keep = (value: unknown) => (outcome = value);
  void promise.then(keep, keep);
  await virtualClock().advance(0);
  return outcome;
}

describe('an abort before the start', () => {
  it('rejects without calling the function', async () => {
    const fn = vi.fn();
    const { controller, signal, listening } = countedSignal();
    const reason = new Error('changed my mind');
    controller.abort(reason);
    await expect(retry(fn, steady, { signal })).rejects.toMatchObject({
      name: 'RetryError',
      code: 'ABORTED',
      message: 'Gave up after 0 attempts (ABORTED): changed my mind',
      cause: reason,
      attempts: 0,
      history: [],
      decision: { failure: { class: 'technical', code: 'ABORT_ERR' } },
    });
    expect(fn).not.toHaveBeenCalled();
    expect(listening.size).toBe(0);
  });
});

describe('an abort during an attempt', () => {
  it('rejects at once, though the attempt ignores its signal', async () => {
    const clock = virtualClock();
    const { controller, signal, listening } = countedSignal();
    const call = retry(
      () => new Promise(() => {}),
      { ...steady, deadline: '1h' },
      { clock, signal },
    );
    await clock.advance(10);
    expect(await now(call)).toBe('pending');
    controller.abort();
    expect(await now(call)).toMatchObject({
      code: 'ABORTED',
      attempts: 1,
      history: [],
      cause: { name: 'AbortError' },
      decision: { failure: { class: 'technical', code: 'ABORT_ERR' } },
    });
    expect(listening.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('aborts the signal of the attempt with the same reason, touched before or after', async () => {
    const controller = new AbortController();
    const attempts: Attempt[] = [];
    const touched: AbortSignal[] = [];
    const reason = new Error('enough');
    const pending = (attempt: Attempt) => {
      attempts.push(attempt);
      if (attempts.length === 1) touched.push(attempt.signal);
      return new Promise(() => {});
    };
    const calls = [1, 2].map(() => retry(pending, steady, { signal: controller.signal }));
    controller.abort(reason);
    await Promise.allSettled(calls);
    expect(touched[0]).toBe(attempts[0]?.signal);
    for (const { signal } of attempts) expect(signal).toMatchObject({ aborted: true, reason });
  });

  it('reaches the signal of the attempt on the spot', async () => {
    const controller = new AbortController();
    const attempts: Attempt[] = [];
    const pending = (attempt: Attempt) => {
      attempts.push(attempt);
      return new Promise(() => {});
    };
    const call = retry(pending, steady, { signal: controller.signal });
    const given = attempts[0]?.signal;
    const heard = vi.fn();
    given?.addEventListener('abort', heard);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(given).toMatchObject({ aborted: true, reason });
    expect(heard).toHaveBeenCalledTimes(1);
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('is seen by the function that makes it before it returns', async () => {
    const controller = new AbortController();
    const seen: boolean[] = [];
    const call = retry(
      ({ signal }) => {
        seen.push(signal.aborted);
        controller.abort();
        seen.push(signal.aborted);
        throw reset();
      },
      { base: 0 },
      { signal: controller.signal },
    );
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
    expect(seen).toEqual([false, true]);
  });

  it('goes all the way down on the spot, from the caller to an attempt inside an attempt', async () => {
    const controller = new AbortController();
    const signals: AbortSignal[] = [];
    const reason = new Error('enough');
    const call = retry(
      (parent) => {
        signals.push(parent.signal);
        return retry(
          ({ signal }) => {
            signals.push(signal);
            return new Promise(() => {});
          },
          steady,
          { parent },
        );
      },
      steady,
      { signal: controller.signal },
    );
    controller.abort(reason);
    expect(signals).toMatchObject([
      { aborted: true, reason },
      { aborted: true, reason },
    ]);
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', cause: reason });
  });

  it('leaves the signal of an attempt alone that has worked just before', async () => {
    const controller = new AbortController();
    let given: AbortSignal | undefined;
    let finish: (result: string) => void = () => {};
    const work = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const call = retry(
      ({ signal }) => {
        given = signal;
        return work;
      },
      steady,
      { signal: controller.signal },
    );
    finish('fine');
    await work;
    // The call has the result already and has not come to return it.
    controller.abort();
    await expect(call).resolves.toBe('fine');
    expect(given?.aborted).toBe(false);
  });

  it('disposes of the result that comes too late', async () => {
    const controller = new AbortController();
    let finish: (result: unknown) => void = () => {};
    const work = new Promise((resolve) => {
      finish = resolve;
    });
    const result = vi.fn(() => false);
    const call = retry(() => work, steady, { signal: controller.signal, retryIf: { result } });
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    const dispose = vi.fn();
    finish({ [Symbol.dispose]: dispose });
    await now(call);
    expect(dispose).toHaveBeenCalledTimes(1);
    expect(result).not.toHaveBeenCalled();
  });

  it('takes no notice of an error that comes too late', async () => {
    const events: string[] = [];
    const controller = new AbortController();
    const fn = ({ signal }: Attempt) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    const on = ({ type }: RetryEvent) => events.push(type);
    const [classify, retryIf] = [vi.fn(), vi.fn()];
    const call = retry(fn, steady, { signal: controller.signal, on, classify, retryIf });
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
    await now(call);
    expect(events).toEqual(['attempt', 'giveUp']);
    expect(classify).not.toHaveBeenCalled();
    expect(retryIf).not.toHaveBeenCalled();
  });

  it('counts although a thenable answers to it on the spot', async () => {
    const events: string[] = [];
    const controller = new AbortController();
    const fn = ({ signal }: Attempt) => ({
      then(_done: unknown, fail: (error: unknown) => void) {
        signal.addEventListener('abort', () => fail(signal.reason));
      },
    });
    const on = ({ type }: RetryEvent) => events.push(type);
    const call = retry(fn, steady, { signal: controller.signal, on });
    await now(call);
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events).toEqual(['attempt', 'giveUp']);
  });

  it('may come from the function itself', async () => {
    const controller = new AbortController();
    const fn = vi.fn(() => {
      controller.abort();
      throw reset();
    });
    const call = retry(fn, { base: 0 }, { signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it.each<[string, RetryIfError | undefined]>([
    ['nothing', undefined],
    ['errors alone', () => undefined],
  ])('by a function that has its result keeps it where %s is judged', async (_, retryIf) => {
    const controller = new AbortController();
    const work = () => {
      controller.abort();
      return 'fine';
    };
    const call = retry(work, steady, { signal: controller.signal, retryIf });
    await expect(call).resolves.toBe('fine');
  });

  it('still ends the call when the given randomness throws', async () => {
    const controller = new AbortController();
    const call = retry(() => new Promise(() => {}), steady, {
      signal: controller.signal,
      random: () => {
        throw new Error('no dice');
      },
    });
    controller.abort();
    expect(await now(call)).toMatchObject({ message: 'no dice' });
  });
});

describe('an abort during a wait', () => {
  it('rejects at once and never starts another attempt', async () => {
    const clock = virtualClock();
    const { controller, signal, listening } = countedSignal();
    const fn = vi.fn(() => Promise.reject(reset()));
    const call = retry(fn, { ...steady, base: '1s' }, { clock, signal });
    const settled = call.catch((error: unknown) => error);
    await clock.advance(50);
    expect(clock.pending).toBe(1);
    controller.abort();
    expect(await now(settled)).toMatchObject({
      code: 'ABORTED',
      attempts: 1,
      history: [{ attempt: 1, delayMs: 1000 }],
      decision: { failure: { code: 'ECONNRESET' } },
    });
    expect(clock.pending).toBe(0);
    expect(listening.size).toBe(0);
    await clock.advance('1h');
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('leaves the signals of attempts that are over alone', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const signals: AbortSignal[] = [];
    const call = retry(
      ({ signal }) => {
        signals.push(signal);
        return Promise.reject(reset());
      },
      steady,
      { clock, signal: controller.signal },
    ).catch(() => {});
    await clock.advance(150);
    controller.abort();
    await call;
    expect(signals).toHaveLength(2);
    expect(signals[0]).not.toBe(signals[1]);
    expect(signals.some((signal) => signal.aborted)).toBe(false);
  });

  it('works for a wait of nothing, which only its listener can see', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const fn = vi.fn(() => {
      throw reset();
    });
    const wait = vi.fn(() => controller.abort());
    const call = retry(fn, { base: 0 }, { clock, signal: controller.signal, on: { wait } });
    await expect(call).rejects.toMatchObject({
      code: 'ABORTED',
      attempts: 1,
      history: [{ delayMs: 0 }],
    });
    expect(fn).toHaveBeenCalledTimes(1);
    expect(wait).toHaveBeenCalledTimes(1);
  });

  it('comes through at the sixteenth wait of nothing, however busy the function keeps the loop', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const fn = vi.fn(() => {
      if (fn.mock.calls.length === 1) queueMicrotask(() => controller.abort());
      throw reset();
    });
    const policy = { base: 0, maxAttempts: 100 };
    const call = retry(fn, policy, { clock, signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 16 });
    expect(fn).toHaveBeenCalledTimes(16);
    expect(clock.pending).toBe(0);
  });
});

describe('an abort after the end', () => {
  it('changes nothing, and the signal of the attempt that worked is not aborted', async () => {
    const { controller, signal, listening } = countedSignal();
    let given: AbortSignal | undefined;
    const result = await retry(
      (attempt) => {
        given = attempt.signal;
        return Promise.resolve('fine');
      },
      { ...steady, attemptTimeout: '1s' },
      { signal, clock: virtualClock() },
    );
    expect(listening.size).toBe(0);
    controller.abort();
    expect(result).toBe('fine');
    expect(given?.aborted).toBe(false);
  });

  it('changes nothing either where the signal never lets go of its listeners', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const letGo = vi.spyOn(signal, 'removeEventListener').mockImplementation(() => {});
    const events: string[] = [];
    let given: AbortSignal | undefined;
    const work = (attempt: Attempt) => {
      given = attempt.signal;
      return 1;
    };
    await retry(work, steady, { signal, on: ({ type }) => events.push(type) });
    expect(letGo).toHaveBeenCalledTimes(1);
    controller.abort();
    expect(events).toEqual(['attempt', 'success']);
    expect(given?.aborted).toBe(false);
  });

  it('changes nothing after all attempts failed either', async () => {
    const { controller, signal, listening } = countedSignal();
    const on = vi.fn();
    const call = retry(() => Promise.reject(reset()), { maxAttempts: 1 }, { signal, on });
    await expect(call).rejects.toMatchObject({ code: 'EXHAUSTED' });
    expect(listening.size).toBe(0);
    controller.abort();
    expect(on).toHaveBeenCalledTimes(2);
  });
});
