import { expect, it } from 'vitest';
import { remember } from './remember.ts';

it('makes a thing once for a text, also where that is nothing', () => {
  const asked: string[] = [];
  const lengthOf = remember((text) => {
    asked.push(text);
    return text === '' ? undefined : text.length;
  });
  expect(['a', 'bb', 'a', '', ''].map(lengthOf)).toEqual([1, 2, 1, undefined, undefined]);
  expect(asked).toEqual(['a', 'bb', '']);
});

it('forgets rather than grow without end, and makes again what it forgot', () => {
  let made = 0;
  const count = remember(() => ++made);
  const all = Array.from({ length: 1001 }, (_, i) => count(`${i}`));
  expect(all.at(-1)).toBe(1001);
  expect(count('0')).toBe(1002);
});

it('does not remember what failed', () => {
  let calls = 0;
  const fail = remember(() => {
    throw new Error(`${++calls}`);
  });
  expect(() => fail('a')).toThrow('1');
  expect(() => fail('a')).toThrow('2');
});
