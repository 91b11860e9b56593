import { describe, expect, it, vi } from 'vitest';
import { createBreaker } from '../circuit/breaker.ts';
import { type BulkheadOptions, createBulkhead } from './bulkhead.ts';
import type { Clock } from '../clock.ts';
import { decide } from '../decide.ts';
import { isConfigError, type RetryError } from '../errors.ts';
import { explain } from '../explain.ts';
import { retry } from '../retry.ts';
import type { RetryEvent } from '../run/runtime.ts';
import { virtualClock } from '../virtual-clock.ts';

/** Work that ends when it is told to. */
function gate(): { promise: Promise<void>; open: () => void } {
  let open!: () => void;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

async function thrownBy(call: Promise<unknown>): Promise<RetryError> {
  return call.then(
    () => expect.unreachable('it worked'),
    (error: unknown) => error as RetryError,
  );
}

function faultsOf(options: unknown): string[] {
  try {
    createBulkhead(options as BulkheadOptions);
    return [];
  } catch (error) {
    if (!isConfigError(error) || error.code !== 'INVALID_CONFIG') throw error;
    return error.faults.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('createBulkhead', () => {
  it.each([
    [undefined, ': undefined is not an object of options.'],
    [{}, 'maxConcurrent: is missing: how many attempts may run at once?'],
    [{ maxConcurrent: 0 }, 'maxConcurrent: 0 is not a whole number from 1 to 1000000.'],
    [{ maxConcurrent: 1, maxQueue: -1 }, 'maxQueue: -1 is not a whole number from 0 to 1000000.'],
    [{ maxConcurrent: Infinity }, 'maxConcurrent: Infinity is not a whole number'],
    [
      { maxConcurrent: 1, maxqueue: 1 },
      "maxqueue: there is no such field. Did you mean 'maxQueue'?",
    ],
  ])('refuses %j', (options, message) => {
    expect(faultsOf(options)).toEqual([expect.stringContaining(message)]);
  });

  it('gives places, then places in the queue, then none', () => {
    const bulkhead = createBulkhead({ maxConcurrent: 2, maxQueue: 1 });
    const places = [bulkhead.enter(), bulkhead.enter(), bulkhead.enter()];
    expect(places.map((place) => place?.turn === undefined)).toEqual([true, true, false]);
    expect(bulkhead.enter()).toBeUndefined();
    expect(bulkhead).toMatchObject({ maxConcurrent: 2, maxQueue: 1, running: 2, queued: 1 });
    places.forEach((place) => place?.leave());
    expect(bulkhead).toMatchObject({ running: 0, queued: 0 });
  });

  it('hands a place on in the order of the queue', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 3 });
    const first = bulkhead.enter();
    const order: number[] = [];
    const waiting = [1, 2, 3].map((number) => {
      const place = bulkhead.enter();
      void place?.turn?.then(() => order.push(number));
      return place;
    });
    waiting[1]?.leave();
    expect(bulkhead.queued).toBe(2);
    first?.leave();
    await settled();
    expect(order).toEqual([1]);
    waiting[0]?.leave();
    await settled();
    expect(order).toEqual([1, 3]);
    expect(bulkhead).toMatchObject({ running: 1, queued: 0 });
  });

  it('takes a place back once, however often it is left', () => {
    const bulkhead = createBulkhead({ maxConcurrent: 2 });
    const [one] = [bulkhead.enter(), bulkhead.enter()];
    one?.leave();
    one?.leave();
    expect(bulkhead.running).toBe(1);
  });

  it('has no queue by default', () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    bulkhead.enter();
    expect(bulkhead.enter()).toBeUndefined();
  });
});

describe('calls that share a bulkhead', () => {
  it('run no more attempts at once than it has places, and all of them in the end', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 3, maxQueue: 100 });
    let [running, most] = [0, 0];
    const work = async () => {
      most = Math.max(most, ++running);
      await settled();
      running -= 1;
      return 1;
    };
    const calls = Array.from({ length: 20 }, () => retry(work, {}, { bulkhead }));
    expect(await Promise.all(calls)).toHaveLength(20);
    expect(most).toBe(3);
    expect(bulkhead).toMatchObject({ running: 0, queued: 0 });
  });

  it('fail at once with BULKHEAD_FULL where the queue is full too', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 1 });
    const hold = gate();
    const calls = [1, 2].map(() => retry(() => hold.promise, {}, { bulkhead }));
    const work = vi.fn();
    const events: RetryEvent[] = [];
    const error = await thrownBy(retry(work, {}, { bulkhead, on: (event) => events.push(event) }));
    expect(error).toMatchObject({ code: 'BULKHEAD_FULL', attempts: 0 });
    expect(error.message).toBe(
      'Gave up after 0 attempts (BULKHEAD_FULL): the bulkhead is full (1 running, 1 queued). Raise its maxConcurrent or maxQueue, or call later.',
    );
    expect(explain(error.decision)).toBe(
      'Attempt 1 of 4 was not started; gave up because the bulkhead and its queue are full.',
    );
    expect(work).not.toHaveBeenCalled();
    expect(events.map((event) => event.type)).toEqual(['giveUp']);
    const facts = events.flatMap((event) => ('facts' in event ? [event.facts] : []));
    expect(facts.map((each) => decide({}, each))).toEqual([error.decision]);
    hold.open();
    await Promise.all(calls);
  });

  it('hold no place while they wait for their next attempt', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    let calls = 0;
    const flaky = () => (++calls === 1 ? Promise.reject(new Error('down')) : 'late');
    const slow = retry(flaky, { base: '1m', jitter: 'none' }, { bulkhead, clock });
    await settled();
    expect(bulkhead.running).toBe(0);
    expect(await retry(() => 'quick', {}, { bulkhead, clock })).toBe('quick');
    const [result] = await Promise.all([slow, clock.run()]);
    expect(result).toBe('late');
  });

  it('leave the queue when they are aborted, and the next one gets the place', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 2 });
    const hold = gate();
    const first = retry(() => hold.promise, {}, { bulkhead });
    const controller = new AbortController();
    const work = vi.fn();
    const second = thrownBy(retry(work, {}, { bulkhead, signal: controller.signal }));
    const third = retry(() => 'third', {}, { bulkhead });
    expect(bulkhead.queued).toBe(2);
    controller.abort(new Error('enough'));
    expect(await second).toMatchObject({ code: 'ABORTED', attempts: 0 });
    expect(bulkhead.queued).toBe(1);
    hold.open();
    expect(await third).toBe('third');
    await first;
    expect(work).not.toHaveBeenCalled();
    expect(bulkhead).toMatchObject({ running: 0, queued: 0 });
  });

  it('leave the queue when their deadline passes', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 1 });
    const place = bulkhead.enter();
    const work = vi.fn();
    const call = thrownBy(retry(work, { deadline: '5s' }, { bulkhead, clock }));
    const [error] = await Promise.all([call, clock.run()]);
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 0 });
    expect(clock.monotonic()).toBe(5000);
    expect(bulkhead.queued).toBe(0);
    place?.leave();
    expect(bulkhead.running).toBe(0);
    expect(work).not.toHaveBeenCalled();
  });

  it('start nothing without a place, also where the timer of the deadline is early', async () => {
    const clock = virtualClock();
    const early: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      setTimer: (callback, ms, unref) => clock.setTimer(callback, ms - 1, unref),
      clearTimer: (timer) => clock.clearTimer(timer),
    };
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 1 });
    bulkhead.enter();
    const work = vi.fn();
    const call = thrownBy(retry(work, { deadline: '5s' }, { bulkhead, clock: early }));
    const [error] = await Promise.all([call, clock.run()]);
    expect(error).toMatchObject({ code: 'DEADLINE', attempts: 0 });
    expect(work).not.toHaveBeenCalled();
  });

  it('begin the timeout of an attempt after the queue', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 1 });
    const place = bulkhead.enter();
    const left: number[] = [];
    const call = retry(
      ({ remainingMs }) => left.push(remainingMs),
      { attemptTimeout: '1s' },
      {
        bulkhead,
        clock,
      },
    );
    await clock.advance('1h');
    place?.leave();
    await call;
    expect(left).toEqual([1000]);
  });

  it('free their place after a timeout, a failure and an abort', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    const never = () => new Promise<never>(() => {});
    const policy = { maxAttempts: 1, attemptTimeout: '1s' } as const;
    await Promise.all([thrownBy(retry(never, policy, { bulkhead, clock })), clock.run()]);
    expect(bulkhead.running).toBe(0);
    await thrownBy(retry(() => Promise.reject(new TypeError('bug')), {}, { bulkhead }));
    expect(bulkhead.running).toBe(0);
    const controller = new AbortController();
    const aborted = thrownBy(retry(never, {}, { bulkhead, signal: controller.signal }));
    expect(bulkhead.running).toBe(1);
    controller.abort();
    await aborted;
    expect(bulkhead.running).toBe(0);
  });

  it('free their place where the breaker refuses, and ask it only once they have one', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1, maxQueue: 1 });
    const breaker = createBreaker({ clock, failures: 1 });
    const place = bulkhead.enter();
    const work = vi.fn();
    const call = thrownBy(retry(work, { maxUncounted: 0 }, { bulkhead, breaker, clock }));
    await settled();
    breaker.open();
    place?.leave();
    expect(await call).toMatchObject({ code: 'CIRCUIT_OPEN', attempts: 0 });
    expect(bulkhead.running).toBe(0);
    expect(work).not.toHaveBeenCalled();
  });

  it('hold the place while beforeRetry prepares the attempt', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    const seen: number[] = [];
    let calls = 0;
    await retry(
      () => (++calls === 1 ? Promise.reject(new Error('down')) : 1),
      { base: 0 },
      { bulkhead, beforeRetry: () => seen.push(bulkhead.running) },
    );
    expect(seen).toEqual([1]);
  });

  it('give up a retry that finds no place, with what the attempts failed with', async () => {
    const clock = virtualClock();
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    const call = thrownBy(
      retry(() => Promise.reject(new Error('down')), { base: '1s' }, { bulkhead, clock }),
    );
    await settled();
    const place = bulkhead.enter();
    const [error] = await Promise.all([call, clock.run()]);
    expect(error).toMatchObject({ code: 'BULKHEAD_FULL', attempts: 1 });
    expect(error.cause).toMatchObject({ message: 'down' });
    expect(error.message).toContain('(1 running, 0 queued)');
    place?.leave();
  });

  it('are retried by an outer call at no cost of an attempt', async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 1 });
    const place = bulkhead.enter();
    const attempts: number[] = [];
    let calls = 0;
    const outer = await retry(
      ({ attempt }) => {
        attempts.push(attempt);
        if (++calls === 2) place?.leave();
        return retry(() => 'in', { maxAttempts: 1 }, { bulkhead });
      },
      { base: 0, maxAttempts: 1 },
    );
    expect(outer).toBe('in');
    expect(attempts).toEqual([1, 1]);
  });
});
