import type { Census } from '@redrive/engine';
import { pino } from 'pino';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { CensusTaker } from './census.ts';

function takerOf(answer: () => Promise<Census> = async () => ({ pending: 1, open: {} })) {
  const clock = virtualClock();
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
  const counted: number[] = [];
  const taker = new CensusTaker({
    clock,
    log,
    counted: ({ pending }, tookMs) => counted.push(pending, tookMs),
  });
  let asked = 0;
  taker.watch(() => {
    asked += 1;
    return answer();
  });
  return { clock, taker, counted, lines, asked: () => asked };
}

describe('a census', () => {
  it('is taken at the start and then every 10 s', async () => {
    const { clock, taker, counted, asked } = takerOf();
    expect(taker.ageMs).toBeUndefined();
    taker.start();
    taker.start();
    await clock.advance(0);
    expect(counted).toEqual([1, 0]);
    await clock.advance('30s');
    expect(asked()).toBe(4);
    await clock.advance('4s');
    expect(taker.ageMs).toBe(4000);
  });

  it('that takes long is taken seldom: a twentieth of the time at most', async () => {
    const { clock, taker, counted, asked } = takerOf(
      () =>
        new Promise((resolve) => {
          clock.setTimer(() => resolve({ pending: 9, open: {} }), 2000);
        }),
    );
    taker.start();
    await clock.advance('2s');
    expect(counted).toEqual([9, 2000]);
    await clock.advance(39_999);
    expect(asked()).toBe(1);
    await clock.advance(1);
    expect(asked()).toBe(2);
  });

  it('is not taken while nobody has looked for five minutes, and at once when somebody does', async () => {
    const { clock, taker, asked } = takerOf();
    taker.start();
    await clock.advance('5m');
    const before = asked();
    expect(before).toBe(30);
    expect(clock.pending).toBe(0);
    await clock.advance('1h');
    expect(asked()).toBe(before);
    await taker.wanted();
    expect([asked(), taker.ageMs]).toEqual([before + 1, 0]);
    await clock.advance('10s');
    expect(asked()).toBe(before + 2);
  });

  it('goes on while somebody looks', async () => {
    const { clock, taker, asked } = takerOf();
    taker.start();
    for (let i = 0; i < 60; i++) {
      await clock.advance('15s');
      await taker.wanted();
    }
    expect(asked()).toBe(91);
  });

  it('that is fresh keeps nobody waiting, and is not taken again', async () => {
    const { clock, taker, asked } = takerOf();
    taker.start();
    await clock.advance('5s');
    await taker.wanted();
    expect(asked()).toBe(1);
  });

  it('keeps whoever looks waiting for a second at most', async () => {
    const { clock, taker } = takerOf(() => new Promise<never>(() => {}));
    taker.start();
    let isThere = false;
    const wanted = taker.wanted().then(() => (isThere = true));
    await clock.advance(999);
    expect(isThere).toBe(false);
    await clock.advance(1);
    await wanted;
    expect(taker.ageMs).toBeUndefined();
  });

  it('that fails is taken again, and what was counted before stays', async () => {
    let isAway = false;
    const { clock, taker, counted, lines, asked } = takerOf(async () => {
      if (isAway) throw new Error('away');
      return { pending: 3, open: {} };
    });
    taker.start();
    await clock.advance(0);
    isAway = true;
    await clock.advance('30s');
    expect([asked(), counted, taker.ageMs]).toEqual([4, [3, 0], 30_000]);
    // Said once, not every time.
    expect(lines).toHaveLength(1);
    await taker.wanted();
    expect(asked()).toBe(4);
    isAway = false;
    await clock.advance('10s');
    expect(taker.ageMs).toBe(0);
  });

  it('ends with the service', async () => {
    const { clock, taker, asked } = takerOf();
    await taker.wanted();
    expect(asked()).toBe(0);
    taker.start();
    await clock.advance(0);
    taker.stop();
    taker.stop();
    await clock.advance('1m');
    await taker.wanted();
    expect([asked(), clock.pending]).toEqual([1, 0]);
  });
});
