import { expect, test } from 'vitest';
import { Sightings } from './sightings.ts';

test('an age runs from the answer that showed a revision first to the next question', () => {
  const sightings = new Sightings(10);
  expect(sightings.ageMs('k', 1, 0, 40)).toBe(0);
  expect(sightings.ageMs('k', 1, 100, 140)).toBe(60);
  expect(sightings.ageMs('k', 2, 200, 240)).toBe(0);
  sightings.forget('k');
  expect(sightings.ageMs('k', 2, 500, 540)).toBe(0);
});

test('of too many keys the one that was looked at longest ago is forgotten', () => {
  const sightings = new Sightings(2);
  for (const key of ['a', 'b', 'a', 'c']) sightings.ageMs(key, 1, 0, 0);
  expect(sightings.ageMs('a', 1, 10, 10)).toBe(10);
  expect(sightings.ageMs('b', 1, 10, 10)).toBe(0);
});
