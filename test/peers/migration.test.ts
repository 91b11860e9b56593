/** The tables of the guide, held against the libraries that they translate: the same calls at the same times, with the same end. */
import asyncRetry from 'async-retry';
import { backOff } from 'exponential-backoff';
import pRetry, { AbortError } from 'p-retry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Policy, retry } from 'redrive';
import { advance, settle, stopTime, watch } from './lab.ts';
import { down, failTwice, play, throwing } from './play.ts';
import {
  asyncRetryShim,
  type AsyncRetryOptions,
  type BackOffOptions,
  backOffShim,
  pRetryShim,
  type PRetryOptions,
  StopError,
} from './shims.ts';

beforeEach(() => {
  stopTime();
  vi.spyOn(Math, 'random').mockReturnValue(0.25);
  vi.spyOn(console, 'error').mockImplementation(() => {});
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('what changes for everybody', () => {
  it.each([
    ['a ReferenceError', new ReferenceError('bug')],
    ['an AbortError', new DOMException('enough', 'AbortError')],
    ['a 422', Object.assign(new Error('no'), { status: 422 })],
  ])('is not retried: %s; unchanged at first, PERMANENT later', async (_, error) => {
    const first = watch(retry(throwing(error)));
    const later = watch(retry(({ attempt }) => (attempt < 2 ? down() : throwing(error)())));
    await advance(60_000);
    expect(first.error).toBe(error);
    expect(later.error).toMatchObject({ code: 'PERMANENT', attempts: 2 });
    expect((later.error as Error).cause).toBe(error);
  });

  it.each(['headers', 'response.headers'])('Retry-After in %s is waited for', async (where) => {
    const busy = (seconds: string) => {
      const headers = { 'retry-after': seconds };
      const carries = where === 'headers' ? { headers } : { response: { headers } };
      return throwing(Object.assign(new Error('busy'), carries));
    };
    const { calls } = await play((fn) => retry(() => fn(0), { maxAttempts: 2 }), busy('50'));
    expect(calls[1]).toBeGreaterThanOrEqual(50_000);
    const long = watch(retry(busy('120')));
    await settle();
    expect(long.error).toMatchObject({ code: 'RETRY_AFTER_TOO_LONG', retryAfterMs: 120_000 });
    const ignored = await play(
      (fn) => retry(() => fn(0), {}, { classify: () => ({ retryAfterMs: 0 }) }),
      busy('120'),
    );
    expect(ignored.calls).toHaveLength(4);
    expect(ignored.calls[1]).toBeLessThanOrEqual(200);
  });

  it('giveUp gets the RetryError, wait the error of the attempt', async () => {
    const seen: unknown[] = [];
    const on = {
      wait: ({ error }: { error: unknown }) => seen.push(error),
      giveUp: ({ error }: { error: unknown }) => seen.push(error),
    };
    await play((fn) => retry(() => fn(0), { maxAttempts: 2 }, { on }), down);
    expect(seen).toMatchObject([
      { name: 'Error', message: 'down' },
      { name: 'RetryError', code: 'EXHAUSTED', cause: { message: 'down' } },
    ]);
  });
});

describe('the table for p-retry', () => {
  const cases: [string, PRetryOptions, (attempt: number) => unknown][] = [
    ['a first attempt that works', {}, () => 'done'],
    ['two failures', {}, failTwice],
    ['the defaults', {}, down],
    ['retries', { retries: 3 }, down],
    ['no retries', { retries: 0 }, down],
    ['retries: Infinity', { retries: Infinity, maxTimeout: 60_000 }, (n) => (n < 50 ? down() : n)],
    ['minTimeout and factor', { retries: 4, minTimeout: 50, factor: 3 }, down],
    ['factor: 1', { retries: 4, minTimeout: 50, factor: 1 }, down],
    ['factor: 0', { retries: 4, minTimeout: 50, factor: 0 }, down],
    ['factor below 1', { retries: 3, minTimeout: 100, factor: 0.5 }, down],
    ['minTimeout: 0', { retries: 4, minTimeout: 0 }, down],
    ['maxTimeout', { retries: 5, minTimeout: 100, maxTimeout: 300 }, down],
    ['maxTimeout: Infinity', { retries: 5, maxTimeout: Infinity }, down],
    ['maxTimeout below minTimeout', { retries: 3, minTimeout: 500, maxTimeout: 100 }, down],
    ['randomize', { retries: 5, randomize: true }, down],
    ['randomize at the cap', { retries: 6, randomize: true, maxTimeout: 4000 }, down],
    ['a TypeError', {}, throwing(new TypeError('bug'))],
    ['a network error', { retries: 2 }, throwing(new TypeError('Failed to fetch'))],
    ['a SyntaxError', { retries: 2 }, throwing(new SyntaxError('bad JSON'))],
    ['a RangeError', { retries: 2 }, throwing(new RangeError('range'))],
    ['a 404', { retries: 2 }, throwing(Object.assign(new Error('none'), { status: 404 }))],
    ['a 401', { retries: 2 }, throwing(Object.assign(new Error('who?'), { statusCode: 401 }))],
    ['shouldRetry that says no', { shouldRetry: () => false }, down],
    ['shouldRetry by the error', { shouldRetry: ({ attemptNumber }) => attemptNumber < 3 }, down],
    ['an async shouldRetry', { shouldRetry: async () => false }, down],
    ['shouldRetry of a TypeError', { shouldRetry: () => true }, throwing(new TypeError('bug'))],
    ['shouldRetry that throws', { shouldRetry: throwing(new Error('broken')) }, down],
    ['onFailedAttempt that throws', { onFailedAttempt: throwing(new Error('stop')) }, down],
    [
      'onFailedAttempt that takes a while',
      {
        retries: 2,
        onFailedAttempt: () =>
          new Promise<void>((resolve) => {
            setTimeout(resolve, 5000);
          }),
      },
      down,
    ],
  ];

  it.each(cases)('%s', async (_, options, script) => {
    const theirs = await play((fn) => pRetry(fn, options), script);
    const ours = await play((fn) => pRetryShim(fn, options), script);
    expect(ours).toEqual(theirs);
  });

  it('AbortError', async () => {
    const theirs = await play(
      (fn) => pRetry(fn),
      (n) => (n < 2 ? down() : throwing(new AbortError(new Error('final')))()),
    );
    const ours = await play(
      (fn) => pRetryShim(fn),
      (n) => (n < 2 ? down() : throwing(new StopError(new Error('final')))()),
    );
    expect(ours).toEqual(theirs);
    expect(ours.end).toBe('Error: final');
  });

  it('onFailedAttempt is told of every failure, the last included', async () => {
    const seen = [pRetry, pRetryShim].map(async (library) => {
      const list: number[] = [];
      const onFailedAttempt = (context: { attemptNumber: number }) => {
        list.push(context.attemptNumber);
      };
      await play((fn) => library(fn, { retries: 2, onFailedAttempt }), down);
      return list;
    });
    expect(await Promise.all(seen)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  it.each(['before', 'in a wait'])('signal: an abort %s', async (when) => {
    const results = [];
    for (const library of [pRetry, pRetryShim]) {
      const controller = new AbortController();
      if (when === 'before') controller.abort(new Error('enough'));
      else setTimeout(() => controller.abort(new Error('enough')), 1500);
      results.push(await play((fn) => library(fn, { signal: controller.signal }), down));
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[1]?.end).toBe('Error: enough');
  });

  it('a value that is no Error ends the call; Redrive throws it as it is', async () => {
    const theirs = await play((fn) => pRetry(fn), throwing('text'));
    const ours = await play((fn) => pRetryShim(fn), throwing('text'));
    expect(theirs.end).toContain('Non-error was thrown');
    expect(ours).toEqual({ ...theirs, end: 'text' });
  });

  it('a result that is there when the abort comes is returned by Redrive only', async () => {
    const ends = [];
    for (const library of [pRetry, pRetryShim]) {
      const controller = new AbortController();
      const script = () => {
        controller.abort(new Error('enough'));
        return 'done';
      };
      ends.push((await play((fn) => library(fn, { signal: controller.signal }), script)).end);
    }
    expect(ends).toEqual(['Error: enough', 'done']);
  });

  it('maxRetryTime ends both; Redrive does not wait for what cannot help, and cuts attempts off', async () => {
    const options = { maxRetryTime: 5000, minTimeout: 2000, factor: 1 };
    const theirs = await play((fn) => pRetry(fn, options), down);
    const ours = await play((fn) => pRetryShim(fn, options), down);
    expect(theirs.calls.slice(0, 3)).toEqual([0, 2000, 4000]);
    expect(ours.calls).toEqual([0, 2000, 4000]);
    expect(ours.end).toBe(theirs.end);
    expect(ours.atMs).toBe(4000);
    const hanging = await play(
      (fn) => pRetryShim(fn, options),
      () => new Promise(() => {}),
    );
    expect(hanging).toMatchObject({ state: 'rejected', atMs: 5000 });
  });
});

describe('the table for async-retry', () => {
  const cases: [string, AsyncRetryOptions, (attempt: number) => unknown][] = [
    ['two failures', {}, failTwice],
    ['the defaults', {}, down],
    ['retries', { retries: 2 }, down],
    ['no retries', { retries: 0 }, down],
    ['no randomize', { retries: 4, randomize: false }, down],
    ['minTimeout and factor', { retries: 4, minTimeout: 40, factor: 3 }, down],
    ['maxTimeout', { retries: 5, minTimeout: 100, maxTimeout: 300 }, down],
    ['a TypeError', { retries: 2 }, throwing(new TypeError('bug'))],
    ['a 404', { retries: 2 }, throwing(Object.assign(new Error('none'), { status: 404 }))],
    ['an error with bail', {}, throwing(Object.assign(new Error('final'), { bail: true }))],
  ];

  it.each(cases)('%s', async (_, options, script) => {
    const theirs = await play((fn) => asyncRetry(() => fn(0), options), script);
    const ours = await play((fn) => asyncRetryShim(() => fn(0), options), script);
    expect(ours).toEqual(theirs);
  });

  it('a function that returns after bail', async () => {
    const results = [];
    for (const library of [asyncRetry as unknown as typeof asyncRetryShim, asyncRetryShim]) {
      const call = (fn: (attempt: number) => Promise<unknown>) =>
        library(async (bail: (error: Error) => void, attempt: number) => {
          if (attempt < 3) return fn(attempt);
          bail(new Error('final'));
          return 'ignored';
        });
      results.push(await play(call, down));
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[1]).toMatchObject({ state: 'rejected', end: 'Error: final' });
  });

  it('bail as a StopError that is thrown', async () => {
    class Stop extends Error {}
    const policy: Policy = { maxAttempts: 11, retryOn: ['any'], neverOn: ['Stop'] };
    const cause = new Error('final');
    const stopping = (attempt: number) => {
      if (attempt < 3) throw new Error('down');
      throw new Stop('final', { cause });
    };
    const ours = watch(retry(({ attempt }) => stopping(attempt), policy));
    await advance(3_600_000);
    expect(ours.error).toMatchObject({ code: 'PERMANENT', attempts: 3, cause: { cause } });
    const first = watch(retry(() => stopping(3), policy));
    await advance(1);
    expect(first.error).toBeInstanceOf(Stop);
  });

  it('bail and onRetry', async () => {
    const results = [];
    for (const library of [asyncRetry as unknown as typeof asyncRetryShim, asyncRetryShim]) {
      const seen: number[] = [];
      const onRetry = (_: unknown, attempt: number) => void seen.push(attempt);
      const call = (fn: (attempt: number) => Promise<unknown>) =>
        library(
          async (bail: (error: Error) => void, attempt: number) => {
            if (attempt === 3) bail(new Error('final'));
            return fn(attempt);
          },
          { onRetry },
        );
      const { calls, end } = await play(call, down);
      results.push({ calls: calls.slice(0, 3), end, seen: seen.slice(0, 2) });
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[1]?.end).toBe('Error: final');
  });
});

describe('the table for exponential-backoff', () => {
  const cases: [string, BackOffOptions, (attempt: number) => unknown][] = [
    ['two failures', {}, failTwice],
    ['the defaults', {}, down],
    ['numOfAttempts', { numOfAttempts: 3 }, down],
    ['numOfAttempts: 0', { numOfAttempts: 0 }, down],
    ['startingDelay and timeMultiple', { startingDelay: 30, timeMultiple: 3 }, down],
    ['maxDelay', { maxDelay: 300 }, down],
    ['jitter', { jitter: 'full' }, down],
    ['jitter at the cap', { jitter: 'full', maxDelay: 300 }, down],
    ['a TypeError', {}, throwing(new TypeError('bug'))],
    ['a text', {}, throwing('text')],
    ['retry that says no', { retry: () => false }, down],
    ['retry by the attempt', { retry: (_, attempt) => attempt < 3 }, down],
    ['an async retry', { retry: async (_, attempt) => attempt < 3 }, down],
    ['retry that returns nothing', { retry: (() => {}) as unknown as () => boolean }, down],
    ['retry that throws', { retry: throwing(new Error('broken')) }, down],
  ];

  it.each(cases)('%s', async (_, options, script) => {
    const theirs = await play((fn) => backOff(() => fn(0), options), script);
    const ours = await play((fn) => backOffShim(() => fn(0), options), script);
    expect(ours).toEqual(theirs);
  });
});
