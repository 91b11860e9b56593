import { definePolicy } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { Backoff } from './backoff.ts';

const policy = definePolicy({ base: '100ms', cap: '10s', jitter: 'full' });

describe('a backoff', () => {
  it('waits longer each time, up to the cap, and never ends', () => {
    const backoff = new Backoff(policy, virtualClock(), () => 1);
    const delays = Array.from({ length: 1000 }, () => backoff.nextDelayMs());
    expect(delays.slice(0, 8)).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000]);
    expect(delays.at(-1)).toBe(10_000);
  });

  it('is spread by chance', () => {
    expect(new Backoff(policy, virtualClock(), () => 0.25).nextDelayMs()).toBe(25);
  });

  it('begins anew after what has lasted, and not after what broke at once', async () => {
    const clock = virtualClock();
    const backoff = new Backoff(policy, clock, () => 1);
    backoff.nextDelayMs();
    backoff.works();
    await clock.advance('9s');
    expect(backoff.nextDelayMs()).toBe(200);
    backoff.works();
    await clock.advance('10s');
    expect(backoff.nextDelayMs()).toBe(100);
    expect(backoff.nextDelayMs()).toBe(200);
  });
});
