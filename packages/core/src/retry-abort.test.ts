/* oxlint-disable unicorn/no-thenable -- what a thenable may do is a subject here */
import { describe, expect, it, vi } from 'vitest';
import type { Policy } from './policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent } from './runtime.ts';
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
      message: 'Gave up after 0 attempts (ABORTED).',
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

  it('disposes of the result that comes too late', async () => {
    const controller = new AbortController();
    let finish: (result: unknown) => void = () => {};
    const work = new Promise((resolve) => {
      finish = resolve;
    });
    const retryIf = vi.fn(() => undefined);
    const call = retry(() => work, steady, { signal: controller.signal, retryIf });
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    const dispose = vi.fn();
    finish({ [Symbol.dispose]: dispose });
    await now(call);
    expect(dispose).toHaveBeenCalledTimes(1);
    expect(retryIf).not.toHaveBeenCalled();
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

  it('works for a wait of nothing', async () => {
    const controller = new AbortController();
    const fn = vi.fn(() => {
      queueMicrotask(() => controller.abort());
      throw reset();
    });
    const call = retry(fn, { base: 0 }, { signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(fn).toHaveBeenCalledTimes(1);
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

  it('changes nothing either where a made-up signal goes on calling', async () => {
    const heard: EventListener[] = [];
    const signal = {
      aborted: false,
      addEventListener: (_type: string, listener: EventListener) => heard.push(listener),
      removeEventListener() {},
    } as unknown as AbortSignal;
    const events: string[] = [];
    await retry(() => 1, steady, { signal, on: ({ type }) => events.push(type) });
    heard[0]?.(new Event('abort'));
    expect(events).toEqual(['attempt', 'success']);
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

describe('an abort from a callback', () => {
  it('of the attempt event keeps the function from being called', async () => {
    const controller = new AbortController();
    const fn = vi.fn(() => 1);
    const on = { attempt: () => controller.abort() };
    const call = retry(fn, steady, { signal: controller.signal, on });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 0 });
    expect(fn).not.toHaveBeenCalled();
  });

  it('of the wait event sets no timer', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const on = { wait: () => controller.abort() };
    const call = retry(() => Promise.reject(reset()), steady, {
      clock,
      signal: controller.signal,
      on,
    });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['accepts', false],
    ['refuses', true],
  ])('of a retryIf that %s the result ends the call, once', async (_, verdict) => {
    const clock = virtualClock();
    const controller = new AbortController();
    const events: string[] = [];
    const dispose = vi.fn();
    const call = retry(() => ({ [Symbol.dispose]: dispose }), steady, {
      clock,
      signal: controller.signal,
      on: ({ type }) => events.push(type),
      retryIf() {
        controller.abort();
        return verdict;
      },
    });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events).toEqual(['attempt', 'giveUp']);
    expect(dispose).toHaveBeenCalledTimes(1);
    expect(clock.pending).toBe(0);
  });

  it('of the signal of the attempt ends the call, once', async () => {
    const [outer, inner] = [new AbortController(), new AbortController()];
    const events: string[] = [];
    const work = ({ signal }: Attempt) => {
      signal.addEventListener('abort', () => outer.abort());
      return new Promise(() => {});
    };
    const on = ({ type }: RetryEvent) => events.push(type);
    const call = retry(
      (parent) => retry(work, steady, { parent, signal: inner.signal, on }),
      steady,
      { signal: outer.signal },
    );
    inner.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events).toEqual(['attempt', 'giveUp']);
  });

  it('of classify ends the call, once', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const events: string[] = [];
    const call = retry(() => Promise.reject(reset()), steady, {
      clock,
      signal: controller.signal,
      on: ({ type }) => events.push(type),
      classify() {
        controller.abort();
        return undefined;
      },
    });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events).toEqual(['attempt', 'giveUp']);
    expect(clock.pending).toBe(0);
  });
});
