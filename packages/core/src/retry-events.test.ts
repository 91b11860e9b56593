/* oxlint-disable unicorn/no-thenable -- what a thenable may do is a subject here */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RetryError } from './errors.ts';
import type { Policy } from './policy/policy-fields.ts';
import { retry } from './retry.ts';
import type { Attempt, Listener, Listeners, RetryEvent } from './run/runtime.ts';
import { virtualClock } from './testing.ts';

const steady = { base: 100, jitter: 'none' } as const satisfies Policy;

function reset(): Error {
  return Object.assign(new Error('reset'), { code: 'ECONNRESET' });
}

function worksAt(n: number) {
  return ({ attempt }: Attempt) =>
    attempt < n ? Promise.reject(reset()) : Promise.resolve(attempt);
}

async function eventsOf(fn: (attempt: Attempt) => unknown, policy: Policy = steady) {
  const clock = virtualClock();
  const events: RetryEvent[] = [];
  const call = retry(fn, policy, { clock, key: 'k', on: (event) => events.push(event) });
  const [settled] = await Promise.all([call.catch((error: unknown) => error), clock.run()]);
  return { events, settled };
}

describe('events', () => {
  it('tell of a call that works at once', async () => {
    const { events } = await eventsOf(worksAt(1));
    const about = { key: 'k', seed: expect.any(Number), attempt: 1 };
    expect(events).toEqual([
      { type: 'attempt', ...about },
      { type: 'success', ...about, attempts: 1 },
    ]);
  });

  it('tell of attempts, of waits with their delays, and of the success after n', async () => {
    const { events } = await eventsOf(worksAt(3));
    expect(events).toMatchObject([
      { type: 'attempt', attempt: 1 },
      {
        type: 'wait',
        attempt: 1,
        delayMs: 100,
        error: { message: 'reset' },
        facts: { attempt: 1, failure: { code: 'ECONNRESET' }, key: 'k' },
        decision: { action: 'retry', reason: 'BACKOFF', nextAttempt: 2 },
      },
      { type: 'attempt', attempt: 2 },
      { type: 'wait', attempt: 2, delayMs: 200 },
      { type: 'attempt', attempt: 3 },
      { type: 'success', attempt: 3, attempts: 3 },
    ]);
    expect(new Set(events.map(({ seed }) => seed)).size).toBe(1);
  });

  it('hold all the facts of a decision, and only those', async () => {
    const clock = virtualClock();
    await clock.advance('1h');
    const waits: RetryEvent[] = [];
    const on: Listeners = { wait: (event) => waits.push(event) };
    const calls = [
      retry(worksAt(3), steady, { clock, on, key: 'k' }),
      retry(worksAt(3), { ...steady, deadline: '1s' }, { clock, on, random: () => 0.25, key: 'k' }),
    ];
    await Promise.all([...calls, clock.run()]);
    const failure = { class: 'transient', code: 'ECONNRESET', message: 'reset', names: ['Error'] };
    const { seed } = waits[0] as RetryEvent;
    const about = { failure, seed, key: 'k' };
    const limited = { ...about, random: 0.25 };
    expect(waits.map((event) => (event as { facts: unknown }).facts)).toEqual([
      { ...about, attempt: 1 },
      { ...limited, attempt: 1, elapsedMs: 0, remainingMs: 1000 },
      { ...about, attempt: 2, previousMs: 100 },
      { ...limited, attempt: 2, previousMs: 100, elapsedMs: 100, remainingMs: 900 },
    ]);
    expect(Number.isSafeInteger(seed)).toBe(true);
    expect(seed).toBeGreaterThan(1000);
  });

  it('tell why the work was given up, with the error that is thrown', async () => {
    const { events, settled } = await eventsOf(worksAt(9), { ...steady, maxAttempts: 2 });
    expect(events.map(({ type }) => type)).toEqual(['attempt', 'wait', 'attempt', 'giveUp']);
    expect(events.at(-1)).toMatchObject({ attempt: 2, decision: { reason: 'EXHAUSTED' } });
    expect((events.at(-1) as { error: unknown }).error).toBe(settled);
  });

  it('tell of an error that is thrown as it is', async () => {
    const bug = new TypeError('bug');
    const { events, settled } = await eventsOf(() => Promise.reject(bug));
    expect(events.map(({ type }) => type)).toEqual(['attempt', 'giveUp']);
    expect(events[1]).toMatchObject({ error: bug, decision: { reason: 'PERMANENT' } });
    expect(settled).toBe(bug);
  });

  it('go to a listener of their own type', async () => {
    const clock = virtualClock();
    const log: string[] = [];
    const on: Listeners = {
      wait: ({ attempt, delayMs }) => log.push(`${attempt}: ${delayMs}`),
      success: ({ attempts }) => log.push(`after ${attempts}`),
    };
    const calls = [
      retry(worksAt(3), steady, { clock, on }),
      retry(worksAt(9), steady, { clock, on }),
    ];
    await Promise.all([Promise.allSettled(calls), clock.run()]);
    expect(log.filter((line) => line.startsWith('after'))).toEqual(['after 3']);
    expect(log).toHaveLength(2 + 1 + 3);
  });

  it('name each call by a key of its own where none is given', async () => {
    const keys: string[] = [];
    const on = { attempt: ({ key }: RetryEvent) => keys.push(key) };
    const own = await retry(({ idempotencyKey }) => idempotencyKey, steady, { on });
    await retry(() => 1, steady, { on });
    expect(keys[0]).toBe(own);
    expect(keys[1]).not.toBe(own);
  });

  it('come before the promise settles', async () => {
    const log: string[] = [];
    const call = retry(() => 1, steady, { on: { success: () => log.push('event') } });
    await call.then(() => log.push('settled'));
    expect(log).toEqual(['event', 'settled']);
  });
});

describe('a listener', () => {
  const report = vi.spyOn(console, 'error');

  beforeEach(() => {
    report.mockReset().mockImplementation(() => {});
  });

  afterEach(() => {
    report.mockReset();
  });

  const fault = new Error('listener fault');

  it.each([
    [
      'that throws',
      () => {
        throw fault;
      },
    ],
    ['that rejects', () => Promise.reject(fault)],
    [
      'that returns a thenable that throws',
      () => ({
        then() {
          throw fault;
        },
      }),
    ],
  ] as [string, Listener][])('%s never breaks the work, and is reported', async (_, on) => {
    const clock = virtualClock();
    const works = retry(worksAt(2), steady, { clock, on });
    const fails = retry(worksAt(9), { ...steady, maxAttempts: 2 }, { clock, on });
    const error = fails.catch((caught: unknown) => caught);
    await clock.run();
    await expect(works).resolves.toBe(2);
    expect((await error) as RetryError).toMatchObject({ code: 'EXHAUSTED', attempts: 2 });
    expect(report).toHaveBeenCalledTimes(8);
    expect(report).toHaveBeenCalledWith('redrive: a retry listener failed', fault);
  });

  it('that is no function is refused before the work', async () => {
    const on = { attempt: 'log' } as unknown as Listeners;
    const work = vi.fn();
    await expect(retry(work, steady, { on })).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
    expect(work).not.toHaveBeenCalled();
  });

  it('that is fine is not reported', async () => {
    const on = vi.fn(() => Promise.resolve());
    await retry(() => 1, steady, { on });
    expect(on).toHaveBeenCalledTimes(2);
    await retry(() => 1, steady, { on: {} });
    await expect(retry(worksAt(9), { maxAttempts: 2, base: 0 }, { on: {} })).rejects.toThrow(
      'reset',
    );
    expect(report).not.toHaveBeenCalled();
  });
});
