import { expect, it } from 'vitest';
import { Room } from './room.ts';

it('gives places that are left at once to as many as wait for them', async () => {
  const room = new Room(2);
  expect(await room.take(5)).toBe(2);
  const got: string[] = [];
  const waiting = ['a', 'b', 'c'].map(async (name) => {
    await room.take(1);
    got.push(name);
  });
  room.leave(2);
  await Promise.all(waiting.slice(0, 2));
  expect(got).toEqual(['a', 'b']);
  // The third was woken too, and found no place: it still waits for one.
  room.leave(1);
  await waiting[2];
  expect(got).toEqual(['a', 'b', 'c']);
});
