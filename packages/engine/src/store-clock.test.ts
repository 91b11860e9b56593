import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { StoreClock } from './store-clock.ts';

it('is the local clock until the store has told its own', () => {
  const clock = virtualClock(1000);
  const store = new StoreClock(clock);
  expect(store.nowMs).toBe(1000);
  store.saw(9000, clock.monotonic());
  expect(store.nowMs).toBe(9000);
  clock.jump(-100_000);
  expect(store.nowMs).toBe(9000);
});

it('is not set back by an answer that took long, and doubts no more than before', async () => {
  const clock = virtualClock();
  const store = new StoreClock(clock);
  store.saw(5000, clock.monotonic());
  const sentAt = clock.monotonic();
  await clock.advance(300);
  // Told at 5100, and read 200 ms later.
  store.saw(5100, sentAt);
  expect(store.nowMs).toBeCloseTo(5300, 0);
  expect(store.doubtMs).toBeLessThan(2);
});

it('takes the better of two answers that both took long', async () => {
  const clock = virtualClock();
  const store = new StoreClock(clock);
  await clock.advance(100);
  store.saw(5000, 0);
  expect([store.nowMs, store.doubtMs]).toEqual([5000, 101]);
  await clock.advance(100);
  store.saw(5190, 190);
  expect(store.nowMs).toBe(5190);
  expect(store.doubtMs).toBe(11);
});

it('follows a clock that was set, in either direction', async () => {
  const clock = virtualClock();
  const store = new StoreClock(clock);
  for (const told of [5000, 3_600_000, 7000]) {
    store.saw(told, clock.monotonic());
    expect(store.nowMs).toBe(told);
    await clock.advance(10);
    expect(store.nowMs).toBe(told + 10);
  }
});

it.each([3_600_000, -3_600_000])(
  'is not changed by a late answer from before the clock was set by %i ms',
  async (jumpMs) => {
    const clock = virtualClock();
    const store = new StoreClock(clock);
    const oldMs = 10_000_000;
    store.saw(oldMs, clock.monotonic());
    const sentAt = clock.monotonic();
    await clock.advance(3600);
    // The store's clock was set, and a newer question is answered first.
    store.saw(oldMs + jumpMs, clock.monotonic() - 1);
    store.saw(oldMs + 1, sentAt);
    expect(store.nowMs).toBe(oldMs + jumpMs);
    // Whatever is asked after that is believed again.
    store.saw(oldMs, clock.monotonic());
    expect(store.nowMs).toBe(oldMs);
  },
);

it('is not changed by an answer from before the clock was set, also where an older one came in between', async () => {
  const clock = virtualClock();
  const store = new StoreClock(clock);
  await clock.advance(1000);
  // Asked at 900, and told by a clock that was set an hour ahead since 500.
  store.saw(3_600_900, 900);
  // Asked at 100, and told after 500 too: it agrees, and is older all the same.
  store.saw(3_600_600, 100);
  // Asked at 400, and told before the clock was set.
  store.saw(450, 400);
  expect(store.nowMs).toBe(3_600_900);
});

it('follows a clock that goes a little slower than the local one, and is never ahead of it by much', async () => {
  const clock = virtualClock();
  const store = new StoreClock(clock);
  for (let n = 0; n < 1000; n++) {
    await clock.advance(1000);
    const told = clock.monotonic() * 0.9998;
    store.saw(told, clock.monotonic() - 5);
    expect(store.nowMs - told).toBeLessThan(6);
    expect(told - store.nowMs).toBeLessThan(6);
  }
});

it('tells how far the local clock is ahead of the store or behind, and 0 within its doubt', async () => {
  const clock = virtualClock(10_000);
  const store = new StoreClock(clock);
  expect(store.skewMs).toBeUndefined();
  await clock.advance(100);
  // Asked 100 ms ago: the store's time is between 10 000 and 10 101 by now.
  store.saw(10_000, clock.monotonic() - 100);
  expect(store.skewMs).toBe(0);
  clock.jump(5000);
  expect(store.skewMs).toBe(4999);
  clock.jump(-8000);
  expect(store.skewMs).toBe(-2899);
  await clock.advance(1000);
  expect(store.skewMs).toBeCloseTo(-2898.5);
});
