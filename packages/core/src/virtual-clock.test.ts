import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Duration } from './policy/duration.ts';
import { ConfigError } from './errors.ts';
import { seededRandom, virtualClock } from './testing.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('a virtual clock', () => {
  it('stands still until it is told to move', async () => {
    const clock = virtualClock(5000);
    expect([clock.now(), clock.monotonic()]).toEqual([5000, 0]);
    await clock.advance('2s');
    await clock.advance(0.5);
    expect([clock.now(), clock.monotonic()]).toEqual([7000.5, 2000.5]);
    expect(virtualClock().now()).toBe(Date.UTC(2025, 0, 1));
  });

  it('fires what falls due, in order of time and then of asking', async () => {
    const clock = virtualClock();
    const log: string[] = [];
    const note = (name: string) => () => void log.push(`${name} at ${clock.monotonic()}`);
    clock.setTimer(note('c'), 20);
    clock.setTimer(note('a'), 10);
    clock.setTimer(note('b'), 10);
    clock.setTimer(note('late'), 31);
    await clock.advance(30);
    expect(log).toEqual(['a at 10', 'b at 10', 'c at 20']);
    expect(clock.pending).toBe(1);
    expect(clock.monotonic()).toBe(30);
  });

  it('fires what a callback sets, if it falls due meanwhile', async () => {
    const clock = virtualClock();
    const log: number[] = [];
    const again = () => {
      log.push(clock.monotonic());
      clock.setTimer(again, 10);
    };
    clock.setTimer(again, 10);
    await clock.advance(35);
    expect(log).toEqual([10, 20, 30]);
  });

  it('lets promises settle between two timers', async () => {
    const clock = virtualClock();
    const log: string[] = [];
    const chain = async (name: string) => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      log.push(name);
    };
    clock.setTimer(() => void chain('first'), 1);
    clock.setTimer(() => void chain('second'), 1);
    clock.setTimer(() => log.push('timer'), 1);
    await clock.advance(1);
    expect(log).toEqual(['first', 'second', 'timer']);
  });

  it('forgets a timer that was cleared, and does not mind one that is unknown', async () => {
    const clock = virtualClock();
    const callback = vi.fn();
    const timer = clock.setTimer(callback, 10);
    clock.clearTimer(timer);
    clock.clearTimer(timer);
    clock.clearTimer(undefined);
    expect(clock.pending).toBe(0);
    await clock.advance(20);
    expect(callback).not.toHaveBeenCalled();
  });

  it.each([-5, NaN, undefined as unknown as number, 0])(
    'takes a timer of %s for now',
    async (ms) => {
      const clock = virtualClock();
      const callback = vi.fn();
      clock.setTimer(callback, ms);
      await clock.advance(0);
      expect(callback).toHaveBeenCalledTimes(1);
      expect(clock.monotonic()).toBe(0);
    },
  );

  it('runs from timer to timer until none is left, and says how long that took', async () => {
    const clock = virtualClock();
    await clock.advance(100);
    clock.setTimer(() => clock.setTimer(() => {}, 86_400_000 * 60), 5);
    expect(await clock.run()).toBe(5 + 86_400_000 * 60);
    expect(await clock.run()).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('never goes back, even if it is told to move twice at once', async () => {
    const clock = virtualClock();
    const long = clock.advance(1000);
    await clock.advance(10);
    await long;
    expect(clock.monotonic()).toBe(1000);
    await Promise.all([clock.advance(10), clock.advance(1000)]);
    expect(clock.monotonic()).toBe(2000);
  });

  it('jumps by its wall time alone', async () => {
    const clock = virtualClock(0);
    const callback = vi.fn();
    clock.setTimer(callback, 10);
    clock.jump(3_600_000);
    await clock.advance(5);
    expect([clock.now(), clock.monotonic()]).toEqual([3_600_005, 5]);
    clock.jump(-7_200_000);
    expect(callback).not.toHaveBeenCalled();
    await clock.advance(5);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it.each([-1, NaN, Infinity, '5 minutes', '-1s', undefined])(
    'cannot advance by %s',
    async (duration) => {
      const call = virtualClock().advance(duration as Duration);
      await expect(call).rejects.toBeInstanceOf(ConfigError);
      await expect(call).rejects.toMatchObject({
        code: 'INVALID_DURATION',
        message: expect.stringContaining(String(duration)),
      });
    },
  );

  it('ends what would run for ever', async () => {
    const clock = virtualClock();
    const again = () => void clock.setTimer(again, 1);
    again();
    await expect(clock.run()).rejects.toMatchObject({ code: 'INVALID_VALUE' });
  });

  it('passes on what a callback throws', async () => {
    const clock = virtualClock();
    clock.setTimer(() => {
      throw new Error('from a timer');
    }, 1);
    await expect(clock.advance(1)).rejects.toThrow('from a timer');
    expect(clock.pending).toBe(0);
  });

  it('moves although the timers of the host are faked', async () => {
    vi.useFakeTimers();
    const clock = virtualClock();
    const callback = vi.fn();
    clock.setTimer(callback, 10);
    await clock.advance(10);
    expect(callback).toHaveBeenCalledTimes(1);
  });
});

describe('seeded randomness', () => {
  it('gives the same numbers for the same seed, and others for another', () => {
    const take = (seed: number) => {
      const random = seededRandom(seed);
      return Array.from({ length: 20 }, () => random());
    };
    expect(take(7)).toEqual(take(7));
    expect(take(7)).not.toEqual(take(8));
    expect(new Set(take(7)).size).toBe(20);
    expect(take(7).every((number) => number >= 0 && number < 1)).toBe(true);
  });
});
