import { describe, expect, it } from 'vitest';
import { Prefetch } from './prefetch.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

describe('the prefetch', () => {
  it('begins with as many messages as are allowed, unless they had to be very small', () => {
    expect(new Prefetch({ maxMessages: 1000, maxBytes: 64 * MiB }).next()).toBe(1000);
    expect(new Prefetch({ maxMessages: 1000, maxBytes: MiB }).next()).toBe(16);
    expect(new Prefetch({ maxMessages: 1000, maxBytes: 10 }).next()).toBe(1);
    expect(new Prefetch({ maxMessages: 1_000_000, maxBytes: 2 ** 40 }).next()).toBe(65_535);
  });

  it('stays where messages have the expected size', () => {
    const prefetch = new Prefetch({ maxMessages: 1000, maxBytes: 64 * MiB });
    for (let i = 0; i < 100; i++) prefetch.see(300);
    expect(prefetch.isFarOff).toBe(false);
  });

  it('shrinks as the mean grows, and grows again in steps', () => {
    const prefetch = new Prefetch({ maxMessages: 1000, maxBytes: 64 * MiB });
    prefetch.see(MiB);
    expect(prefetch.isFarOff).toBe(true);
    expect(prefetch.next()).toBe(63);
    expect(prefetch.isFarOff).toBe(false);
    for (let i = 0; i < 500; i++) prefetch.see(300);
    expect(prefetch.isFarOff).toBe(true);
    expect(prefetch.next()).toBe(504);
    expect(prefetch.isFarOff).toBe(false);
  });

  it('shrinks at once when more comes than there is room for', () => {
    const prefetch = new Prefetch({ maxMessages: 1000, maxBytes: 64 * MiB });
    for (let i = 0; i < 100; i++) prefetch.see(300);
    prefetch.overflow(16 * MiB);
    expect(prefetch.next()).toBe(3);
    prefetch.overflow(100 * MiB);
    expect(prefetch.next()).toBe(1);
  });
});
