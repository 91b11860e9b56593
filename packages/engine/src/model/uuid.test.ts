import { describe, expect, it } from 'vitest';
import { uuidAt, uuidOf } from './uuid.ts';

const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('an id of texts', () => {
  it('is a UUIDv5 that never changes', () => {
    // Written down: a store remembers tasks by it.
    expect(uuidOf('handler:orders', 'order-7')).toBe('962329a3-117a-5ee9-8846-590835a82d56');
    expect(shape.exec(uuidOf('a'))?.[1]).toBe('5');
  });

  it('tells where one text ends and the next begins', () => {
    const all = [uuidOf('a', 'bc'), uuidOf('ab', 'c'), uuidOf('abc'), uuidOf('abc', ''), uuidOf()];
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('an id of a moment', () => {
  it('is a UUIDv7 that grows with time', () => {
    const at = (nowMs: number) => uuidAt(nowMs, () => 0.5);
    expect(at(0x0123_4567_89ab)).toBe('01234567-89ab-7800-a000-800000000000');
    expect(at(1_700_000_000_001) > at(1_700_000_000_000)).toBe(true);
    expect(shape.exec(uuidAt(1, Math.random))?.[1]).toBe('7');
  });

  it('has its chance from the source it is given', () => {
    expect(uuidAt(1, () => 0)).not.toBe(uuidAt(1, () => 0.999));
  });

  it('is one also where the clock is out of its mind', () => {
    for (const nowMs of [-5, 2 ** 60, 0.7]) expect(uuidAt(nowMs, () => 0.1)).toMatch(shape);
  });
});
