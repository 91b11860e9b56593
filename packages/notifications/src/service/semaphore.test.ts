import { expect, it } from 'vitest';
import { Semaphore } from './semaphore.ts';

it('gives permits that are released at once to as many as wait for them', async () => {
  const semaphore = new Semaphore(2);
  expect(await semaphore.acquire(5)).toBe(2);
  const got: string[] = [];
  const waiting = ['a', 'b', 'c'].map(async (name) => {
    await semaphore.acquire(1);
    got.push(name);
  });
  semaphore.release(2);
  await Promise.all(waiting.slice(0, 2));
  expect(got).toEqual(['a', 'b']);
  // The third was woken too, and found no place: it still waits for one.
  semaphore.release(1);
  await waiting[2];
  expect(got).toEqual(['a', 'b', 'c']);
});
