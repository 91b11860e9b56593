import { expect, it } from 'vitest';
import { readParameters } from './parameters.ts';

it('reads a text once, and keeps no more than two hundred of them', () => {
  const first = readParameters('{"defaultRetryDelaySeconds":5}');
  expect(readParameters('{"defaultRetryDelaySeconds":5}')).toBe(first);
  for (let n = 0; n < 200; n++) readParameters(`context ${n}`);
  const again = readParameters('{"defaultRetryDelaySeconds":5}');
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
});
