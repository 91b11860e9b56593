import { describe, expect, it } from 'vitest';
import { giveUp, isWish, retryIn, snooze } from './outcomes.ts';

describe('a wish', () => {
  it('is recognised, also when another copy of the library made it', () => {
    for (const wish of [retryIn('5m'), snooze(100), giveUp('no use')]) {
      expect(isWish(wish)).toBe(true);
    }
    expect(isWish({ [Symbol.for('redrive.wish')]: true, type: 'giveUp', reason: 'x' })).toBe(true);
  });

  it.each([undefined, null, 7, 'giveUp', {}, { type: 'giveUp', reason: 'x' }, []])(
    'is not what a handler returns by chance: %j',
    (value) => {
      expect(isWish(value)).toBe(false);
    },
  );

  it('with a delay that is none is refused where it is made', () => {
    for (const make of [retryIn, snooze]) {
      expect(() => make('soon' as never)).toThrow('soon is not a duration. Write ms as a number');
      expect(() => make(-1)).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }));
    }
  });
});
