import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { retry } from './retry.ts';
import { hostTurn, reportFault, systemClock, systemRandom, freshId } from './system.ts';

const DAY_MS = 86_400_000;

describe('the clock of the host', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('tells wall time and monotonic time', () => {
    vi.setSystemTime(1_700_000_000_000);
    expect(systemClock.now()).toBe(1_700_000_000_000);
    const before = systemClock.monotonic();
    vi.advanceTimersByTime(250);
    expect(systemClock.monotonic() - before).toBe(250);
  });

  it.each([1, 5000, DAY_MS, DAY_MS + 1, 24.8 * DAY_MS, 25 * DAY_MS, 400 * DAY_MS])(
    'calls back once, after %d ms and no sooner',
    (ms) => {
      const callback = vi.fn();
      systemClock.setTimer(callback, ms);
      vi.advanceTimersByTime(ms - 1);
      expect(callback).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(callback).toHaveBeenCalledTimes(1);
      vi.advanceTimersByTime(2 * DAY_MS);
      expect(callback).toHaveBeenCalledTimes(1);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it.each([
    ['a short wait', 1000, 0],
    ['the first piece of a long wait', 60 * DAY_MS, 0],
    ['a later piece of a long wait', 60 * DAY_MS, 30.5 * DAY_MS],
  ])('can be told to forget %s', (_, ms, passedMs) => {
    const callback = vi.fn();
    const timer = systemClock.setTimer(callback, ms);
    vi.advanceTimersByTime(passedMs);
    systemClock.clearTimer(timer);
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(100 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
  });

  it('does not mind what is no timer', () => {
    expect(() => {
      systemClock.clearTimer(undefined);
      systemClock.clearTimer(null);
      systemClock.clearTimer(7);
    }).not.toThrow();
  });

  it('retries after a wait that is longer than a host timer can be', async () => {
    const fn = vi
      .fn()
      .mockRejectedValueOnce(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
      .mockResolvedValueOnce('after a month');
    const call = retry(fn, { schedule: ['30d'], jitter: 'none' });
    await vi.advanceTimersByTimeAsync(30 * DAY_MS - 1);
    expect(fn).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    await expect(call).resolves.toBe('after a month');
  });
});

describe('a timer of the host', () => {
  it.each([
    [true, 1000, 1],
    [true, 60 * DAY_MS, 1],
    [false, 1000, 0],
    [undefined, 60 * DAY_MS, 0],
  ])('is let go of when unref is %s, for %d ms', (unref, ms, times) => {
    const real = setTimeout(() => {}, 0);
    const unrefSpy = vi.spyOn(Object.getPrototypeOf(real) as NodeJS.Timeout, 'unref');
    const timer = systemClock.setTimer(() => {}, ms, unref);
    expect(unrefSpy).toHaveBeenCalledTimes(times);
    systemClock.clearTimer(timer);
    clearTimeout(real);
    unrefSpy.mockRestore();
  });

  it('may be a number, as in a browser', () => {
    const set = vi.spyOn(globalThis, 'setTimeout').mockReturnValue(7 as unknown as NodeJS.Timeout);
    const clear = vi.spyOn(globalThis, 'clearTimeout').mockImplementation(() => {});
    const short = systemClock.setTimer(() => {}, 5, true);
    const long = systemClock.setTimer(() => {}, 5 * DAY_MS, true);
    systemClock.clearTimer(short);
    systemClock.clearTimer(long);
    expect(clear.mock.calls).toEqual([[7], [7]]);
    set.mockRestore();
    clear.mockRestore();
  });
});

describe('the rest of the host', () => {
  it('draws numbers in [0, 1)', () => {
    const numbers = Array.from({ length: 100 }, systemRandom);
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new Set(numbers).size).toBeGreaterThan(90);
  });

  it('shows a fault on the console', () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => {});
    const error = new Error('x');
    reportFault('something failed', error);
    expect(report).toHaveBeenCalledExactlyOnceWith('redrive: something failed', error);
    report.mockRestore();
  });

  it('turns its event loop after all that can settle has settled', async () => {
    const log: number[] = [];
    void (async () => {
      for (let i = 0; i < 100; i++) await Promise.resolve();
      log.push(100);
    })();
    await hostTurn();
    expect(log).toEqual([100]);
  });

  it('turns its event loop also where there is no setImmediate', async () => {
    vi.resetModules();
    vi.stubGlobal('setImmediate', undefined);
    const fresh = await import('./system.ts');
    vi.unstubAllGlobals();
    const log: string[] = [];
    void Promise.resolve().then(() => log.push('settled'));
    await fresh.hostTurn();
    expect(log).toEqual(['settled']);
    expect(fresh.hostTurn).not.toBe(hostTurn);
  });
});

describe('a fresh id', () => {
  it('is like no other, also where the host makes no UUIDs', () => {
    const ids = [freshId(), freshId()];
    vi.stubGlobal('crypto', {});
    ids.push(freshId(), freshId());
    vi.stubGlobal('crypto', undefined);
    ids.push(freshId());
    vi.unstubAllGlobals();
    expect(new Set(ids).size).toBe(5);
    for (const id of ids) expect(id.length).toBeGreaterThan(20);
  });
});
