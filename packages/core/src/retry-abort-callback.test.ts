import { describe, expect, it, vi } from 'vitest';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

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
    ['sync', (verdict: boolean) => verdict],
    ['async', (verdict: boolean) => Promise.resolve(verdict)],
  ])('of a %s retryIf that refuses the result ends the call, once', async (_, as) => {
    const clock = virtualClock();
    const controller = new AbortController();
    const events: string[] = [];
    const dispose = vi.fn();
    const call = retry(() => ({ [Symbol.dispose]: dispose }), steady, {
      clock,
      signal: controller.signal,
      on: ({ type }) => events.push(type),
      retryIf: {
        result() {
          controller.abort();
          return as(true);
        },
      },
    });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    expect(events).toEqual(['attempt', 'giveUp']);
    expect(dispose).toHaveBeenCalledTimes(1);
    expect(clock.pending).toBe(0);
  });

  it.each([true, false, undefined])(
    'of a retryIf that says %s of an error ends the call, once',
    async (verdict) => {
      const clock = virtualClock();
      const controller = new AbortController();
      const events: string[] = [];
      const call = retry(() => Promise.reject(reset()), steady, {
        clock,
        signal: controller.signal,
        on: ({ type }) => events.push(type),
        retryIf() {
          controller.abort();
          return verdict;
        },
      });
      await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
      expect(events).toEqual(['attempt', 'giveUp']);
      expect(clock.pending).toBe(0);
    },
  );

  it('of the success event changes nothing: the attempt has worked', async () => {
    const controller = new AbortController();
    let given: AbortSignal | undefined;
    const on = { success: () => controller.abort() };
    const call = retry(
      ({ signal }) => {
        given = signal;
        return 'fine';
      },
      steady,
      { signal: controller.signal, on },
    );
    await expect(call).resolves.toBe('fine');
    expect(given?.aborted).toBe(false);
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
