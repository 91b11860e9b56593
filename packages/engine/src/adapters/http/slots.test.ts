import { describe, expect, it } from 'vitest';
import { Slots } from './slots.ts';

describe('slots', () => {
  it('are limited per origin and in all', () => {
    const slots = new Slots(3, 2);
    expect([slots.take('a'), slots.take('a'), slots.take('a')]).toEqual([true, true, false]);
    expect([slots.take('b'), slots.take('b'), slots.take('c')]).toEqual([true, false, false]);
    slots.release('a');
    expect(slots.take('c')).toBe(true);
  });

  it('go to who waits, in turn over the origins', () => {
    const slots = new Slots(1, 1);
    const served: string[] = [];
    slots.take('x');
    for (const name of ['a1', 'a2', 'b1', 'a3', 'b2']) {
      slots.wait(name[0]!, () => served.push(name));
    }
    for (const origin of ['x', 'a', 'b', 'a', 'b']) slots.release(origin);
    expect(served).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  });

  it('do not go to an origin that has all it may have', () => {
    const slots = new Slots(3, 1);
    const served: string[] = [];
    slots.take('a');
    slots.take('b');
    slots.wait('a', () => served.push('a'));
    slots.wait('b', () => served.push('b'));
    slots.release('b');
    expect(served).toEqual(['b']);
    expect(slots.take('a')).toBe(false);
  });

  it('are not kept for one who left', () => {
    const slots = new Slots(1, 1);
    const served: string[] = [];
    const first = () => served.push('first');
    slots.take('a');
    slots.wait('a', first);
    slots.wait('a', () => served.push('second'));
    slots.leave('a', first);
    slots.leave('nobody', first);
    slots.release('a');
    expect(served).toEqual(['second']);
    slots.release('a');
    expect(slots.take('a')).toBe(true);
  });
});
