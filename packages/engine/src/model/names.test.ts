import { expect, it } from 'vitest';
import { byName, justBefore } from './names.ts';

it('orders names by their bytes, as stores do', () => {
  const names = ['', 'a', 'a b', 'ab', 'b', 'ä', '中', '\uFFFD', '🚀', '🚀a'];
  expect(names.toReversed().sort(byName)).toEqual(names);
  expect(byName('a', 'a')).toBe(0);
});

it.each(['a', 'queue:', 'é', '🚀', '\uE000', '\u0001'])('finds the place before %j', (prefix) => {
  const place = justBefore(prefix);
  expect(byName(place, prefix)).toBeLessThan(0);
  expect(place.isWellFormed()).toBe(true);
});

it('begins at the beginning without a prefix', () => {
  expect(justBefore('')).toBe('');
  expect(justBefore('\0')).toBe('');
});
