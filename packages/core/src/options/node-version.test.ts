import { expect, it } from 'vitest';
import { olderNode } from './node-version.ts';

it.each([
  ['22.16.0', false],
  ['22.17.1', false],
  ['24.0.0', false],
  ['100.1.0', false],
  ['22.15.9', true],
  ['20.20.2', true],
  ['9.99.0', true],
])('Node %s is too old for 22.16: %s', (version, isOlder) => {
  const said = olderNode('The store', '22.16', version) ?? '';
  const sentence = `The store needs Node 22.16 or later; this is Node ${version}.`;
  expect(said.startsWith(sentence)).toBe(isOlder);
  expect(said === '').toBe(!isOlder);
});
