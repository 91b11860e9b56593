import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { virtualClock } from '../virtual-clock.ts';
import { CallWindow, TimeWindow } from './rate-window.ts';

describe('a window by count', () => {
  it('has the last calls and no others, whatever their outcomes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.boolean()), (size, outcomes) => {
        const window = new CallWindow(size);
        outcomes.forEach((failed) => window.add(failed));
        const last = outcomes.slice(-size);
        expect(window.calls).toBe(last.length);
        expect(window.failed).toBe(last.filter(Boolean).length);
      }),
    );
  });

  it('is empty once it was cleared', () => {
    const window = new CallWindow(2);
    [true, true, true].forEach((failed) => window.add(failed));
    window.clear();
    expect(window).toMatchObject({ calls: 0, failed: 0 });
    [false, false, true].forEach((failed) => window.add(failed));
    expect(window).toMatchObject({ calls: 2, failed: 1 });
  });

  it('keeps its calls however much time passes', async () => {
    const clock = virtualClock();
    const [byCount, byTime] = [new CallWindow(5), new TimeWindow(1000, clock)];
    byCount.add(true);
    byTime.add(true);
    await clock.advance('1d');
    byCount.add(false);
    byTime.add(false);
    expect(byCount).toMatchObject({ calls: 2, failed: 1 });
    expect(byTime).toMatchObject({ calls: 1, failed: 0 });
  });
});
