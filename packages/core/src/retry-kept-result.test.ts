import { describe, expect, it, vi } from 'vitest';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, RetryEvent, Runtime } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

type Work = (controller: AbortController) => (attempt: Attempt) => unknown;

const ways: [string, Work][] = [
  ['a function', (controller) => () => (controller.abort(), 4)],
  ['an async function', (controller) => async () => (controller.abort(), 4)],
  [
    'an async function that awaits first',
    (controller) => async () => {
      await Promise.resolve();
      controller.abort();
      return 4;
    },
  ],
  [
    'async functions inside of each other',
    (controller) => async () => {
      const inner = async () => {
        await Promise.resolve();
        controller.abort();
        return 4;
      };
      const middle = async () => inner();
      const outer = async () => middle();
      return outer();
    },
  ],
  [
    'a call inside of the call',
    (controller) => (parent) =>
      retry(
        async () => {
          await Promise.resolve();
          controller.abort();
          return 4;
        },
        {},
        { parent, signal: controller.signal },
      ),
  ],
  [
    'a function that ends its work when it is told to',
    (controller) =>
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve(4));
          queueMicrotask(() => controller.abort());
        }),
  ],
];

const verdicts: [string, Runtime['retryIf']][] = [
  ['nobody judges', undefined],
  ['retryIf accepts', { result: () => false }],
  ['an async retryIf accepts', { result: async () => false }],
  [
    'a slow retryIf accepts',
    {
      result: async () => {
        await Promise.resolve();
        return false;
      },
    },
  ],
];

const policies: Policy[] = [{}, { deadline: '1h', attemptTimeout: '1h' }];

describe.each(ways)('the result of %s that aborts the call while it works', (_, work) => {
  it.each(verdicts)('is returned, where %s', async (_name, retryIf) => {
    for (const policy of policies) {
      const clock = virtualClock();
      const controller = new AbortController();
      const events: string[] = [];
      const on = ({ type }: RetryEvent) => events.push(type);
      const runtime = { clock, signal: controller.signal, on, ...(retryIf && { retryIf }) };
      await expect(retry(work(controller), policy, runtime)).resolves.toBe(4);
      expect(controller.signal.aborted).toBe(true);
      expect(events).toEqual(['attempt', 'success']);
      expect(clock.pending).toBe(0);
    }
  });
});

describe('a result', () => {
  it.each([
    ['sync', (answer: boolean) => answer],
    ['async', (answer: boolean) => Promise.resolve(answer)],
  ])('that a %s retryIf accepts while it aborts is returned', async (_, as) => {
    const controller = new AbortController();
    const dispose = vi.fn();
    const result = { [Symbol.dispose]: dispose };
    const retryIf = {
      result() {
        controller.abort();
        return as(false);
      },
    };
    const call = retry(() => result, {}, { signal: controller.signal, retryIf });
    await expect(call).resolves.toBe(result);
    expect(dispose).not.toHaveBeenCalled();
  });

  it('of an attempt that was aborted and worked on is late, and disposed of', async () => {
    const clock = virtualClock();
    const controller = new AbortController();
    const dispose = vi.fn();
    const work = () =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve({ [Symbol.dispose]: dispose }), 10);
      });
    const call = retry(work, {}, { clock, signal: controller.signal });
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', attempts: 1 });
    await clock.run();
    expect(dispose).toHaveBeenCalledTimes(1);
  });

  it.each<[string, Policy]>([
    ['deadline', { deadline: 50 }],
    ['timeout', { attemptTimeout: 50, maxAttempts: 1 }],
  ])('that is there when the %s passes is returned', async (_, policy) => {
    for (const retryIf of [undefined, { result: () => false }]) {
      const virtual = virtualClock();
      let blockedMs = 0;
      const clock = { ...virtual, monotonic: () => virtual.monotonic() + blockedMs };
      // The first two keep the process busy for longer than they may; the third is done at the very moment.
      const blocking = () => ((blockedMs += 60), 4);
      const asyncBlocking = async () => blocking();
      const punctual = () =>
        new Promise<number>((resolve) => {
          clock.setTimer(() => resolve(4), 50);
        });
      const all: (() => number | Promise<number>)[] = [blocking, asyncBlocking, punctual];
      for (const fn of all) {
        const call = retry(fn, policy, { clock, ...(retryIf && { retryIf }) });
        await virtual.advance(60);
        await expect(call).resolves.toBe(4);
      }
    }
  });
});
