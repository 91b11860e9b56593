import { getEventListeners } from 'node:events';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Host } from './host.ts';
import { pause, persist } from './patience.ts';

function stage() {
  const clock = virtualClock();
  const warnings: { fields: object; message: string }[] = [];
  const nothing = () => undefined;
  const warn = (fields: object, message: string) => void warnings.push({ fields, message });
  const log = { debug: nothing, info: nothing, warn, error: nothing };
  const host: Host = { clock, random: seededRandom(1), defer: queueMicrotask, log };
  const ending = new AbortController();
  return { clock, host, warnings, ending, trying: { host, what: 'work', until: ending.signal } };
}

describe('persist', () => {
  it('tries until it works, pausing longer and longer, at most 5 s', async () => {
    const { clock, trying, warnings } = stage();
    const at: number[] = [];
    const work = async () => {
      at.push(clock.monotonic());
      if (at.length < 15) throw new Error('away');
      return 'there';
    };
    const result = persist(work, trying);
    await clock.run();
    expect(await result).toBe('there');
    const pauses = at.slice(1).map((ms, i) => ms - at[i]!);
    expect(pauses[0]).toBeGreaterThanOrEqual(25);
    expect(pauses[0]).toBeLessThanOrEqual(50);
    expect(Math.min(...pauses.slice(-3))).toBeGreaterThanOrEqual(2500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5000);
    expect(warnings).toHaveLength(14);
    expect(warnings[0]).toMatchObject({
      fields: { attempt: 1 },
      message: 'work failed, trying again',
    });
  });

  it('throws at once what no other try would help', async () => {
    const { trying, clock } = stage();
    const isWorthIt = (error: unknown) => (error as Error).message !== 'wrong';
    const work = () => Promise.reject(new Error('wrong'));
    await expect(persist(work, { ...trying, isWorthIt })).rejects.toThrow('wrong');
    expect(clock.pending).toBe(0);
  });

  it('ends with the last error when nobody wants it any more', async () => {
    const { clock, trying, ending } = stage();
    let calls = 0;
    const result = persist(() => Promise.reject(new Error(`away ${++calls}`)), trying);
    const told = result.catch((error: unknown) => error);
    await clock.advance(0);
    ending.abort();
    expect(await told).toEqual(new Error('away 1'));
    expect(calls).toBe(1);
    await expect(persist(() => Promise.reject(new Error('once')), trying)).rejects.toThrow('once');
  });
});

describe('pause', () => {
  it('ends with its time, or when nobody wants it any more, and leaves no timer', async () => {
    const { clock, host, ending } = stage();
    const ends: string[] = [];
    void pause(host, 100, ending.signal).then(() => ends.push('short'));
    void pause(host, 1000, ending.signal).then(() => ends.push('long'));
    await clock.advance(100);
    expect(ends).toEqual(['short']);
    ending.abort();
    await clock.advance(0);
    expect(ends).toEqual(['short', 'long']);
    expect(clock.pending).toBe(0);
    await pause(host, 1000, ending.signal);
    expect(clock.pending).toBe(0);
  });

  it('leaves no listener on any of its signals', async () => {
    const { clock, host, ending } = stage();
    const other = new AbortController();
    void pause(host, 100, ending.signal, other.signal);
    await clock.advance(100);
    void pause(host, 100, ending.signal, other.signal);
    other.abort();
    for (const { signal } of [ending, other]) {
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    }
  });
});

describe('pause with several signals', () => {
  it.each([0, 1])('ends when signal %i aborts, and at once where it has aborted', async (which) => {
    const { host, clock } = stage();
    const signals = [new AbortController(), new AbortController()];
    const until = signals.map(({ signal }) => signal);
    const ended = pause(host, 1000, ...until);
    signals[which]!.abort();
    await ended;
    await pause(host, 1000, ...until);
    expect(clock.pending).toBe(0);
  });

  it('leaves no listener behind, however it ends', async () => {
    const { host, clock } = stage();
    const signals = [new AbortController(), new AbortController()];
    const until = signals.map(({ signal }) => signal);
    const waits = [pause(host, 10, ...until), pause(host, 10, ...until)];
    expect(until.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([2, 2]);
    await clock.run();
    await Promise.all(waits);
    const cut = pause(host, 10, ...until);
    signals[0]!.abort();
    await cut;
    expect(until.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0]);
  });
});
