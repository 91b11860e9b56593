import { describe, expect, it } from 'vitest';
import { givenBack, leastBurst, rateSettings, readRateState, reserve, usualBurst } from './rate.ts';

const NOW = 1_000_000;
const ten = rateSettings(10, 3);
/** A slot every 20 ms. */
const fifty = rateSettings(50, 3);

describe('a reservation', () => {
  it('has the whole burst where nothing was taken for long, then one after the other', () => {
    const first = reserve(undefined, NOW, 3, fifty, 0);
    // The last of it 10 ms later: the first of it would be too late otherwise before it has started.
    expect(first).toEqual({
      may: 'start',
      slots: [NOW - 30, NOW - 10, NOW + 10],
      state: { freeMs: NOW + 30 },
    });
    expect(reserve({ freeMs: NOW - 1e9 }, NOW, 3, fifty, 0)).toEqual(first);
    expect(reserve({ freeMs: NOW + 100 }, NOW, 1, ten, 0)).toEqual({
      may: 'wait',
      untilMs: NOW + 100,
    });
  });

  it('reaches 200 ms ahead where they are close, no further, and says when there will be so many', () => {
    const state = { freeMs: NOW + 200 };
    expect(reserve(state, NOW, 1, fifty, 0)).toMatchObject({ slots: [NOW + 200] });
    expect(reserve(state, NOW, 2, fifty, 0)).toEqual({ may: 'wait', untilMs: NOW + 20 });
  });

  it('takes no slot that would be too late before it can be used', () => {
    expect(reserve(undefined, NOW, 1, ten, 50)).toMatchObject({ slots: [NOW - 150] });
  });

  it('mends what a clock that was set back has left, at once', () => {
    const found = reserve({ freeMs: NOW + 3_600_000 }, NOW, 2, ten, 0);
    expect(found).toEqual({ may: 'start', slots: [], state: { freeMs: NOW + 100 } });
  });
});

describe('what is given back', () => {
  it('can be taken again, as far as nobody has a slot between or after it', () => {
    const back = (freeMs: number, slots: number[]) => givenBack({ freeMs }, slots, ten).freeMs;
    expect(back(500, [300, 400])).toBe(300);
    expect(back(500, [100, 300, 400])).toBe(300);
    expect(back(500, [300])).toBe(500);
    expect(back(500, [])).toBe(500);
    // Somebody has set the clock back meanwhile.
    expect(back(500, [3_600_000])).toBe(500);
  });
});

describe('a burst', () => {
  it('is 100 ms worth unless given, and single where the rate is slow', () => {
    expect([0.2, 1, 5, 10, 100, 1000].map(usualBurst)).toEqual([1, 1, 2, 2, 10, 100]);
  });

  it('is at least what starts in 20 ms: less would lose what comes a little late', () => {
    expect([0.2, 2, 3, 50, 100, 1000].map(leastBurst)).toEqual([1, 1, 2, 2, 3, 21]);
  });

  it('of one is paid for with slots that lie 2 per cent further apart', () => {
    expect(rateSettings(0.2, 1)).toEqual({ everyMs: 5100, lateMs: 100, chunk: 1, aheadMs: 0 });
    expect(rateSettings(100, 11)).toEqual({ everyMs: 10, lateMs: 100, chunk: 10, aheadMs: 200 });
  });
});

describe('readRateState', () => {
  it('reads what was written, and takes anything else for none', () => {
    expect(readRateState({ freeMs: 5.5 })).toEqual({ freeMs: 5.5 });
    for (const value of [undefined, null, 7, 'x', [], {}, { freeMs: '5' }, { freeMs: NaN }]) {
      expect(readRateState(value)).toBeUndefined();
    }
  });
});
