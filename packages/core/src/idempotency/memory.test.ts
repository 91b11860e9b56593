import { expect, it } from 'vitest';
import { virtualClock } from '../virtual-clock.ts';
import { memoryIdempotency } from './memory.ts';

const outcome = { kind: 'value', text: '1' } as const;

function stage(maxKeys?: number) {
  const clock = virtualClock();
  const store = memoryIdempotency({ clock, maxKeys });
  const claim = (key: string, owner = 'a', takeOver = true) =>
    store.claim({ key, owner, fingerprint: '', leaseMs: 1000, takeOver });
  const record = (key: string, expiresInMs?: number) => {
    void claim(key);
    const expiry = expiresInMs === undefined ? {} : { expiresInMs };
    return store.record(key, 'a', { outcome, ...expiry });
  };
  return { clock, store, claim, record };
}

it('refuses a new key when it is full, and makes room by what has expired', async () => {
  const { clock, claim, record } = stage(2);
  record('a', 1000);
  record('b');
  expect(() => claim('c')).toThrow(expect.objectContaining({ code: 'IDEMPOTENCY_STORE_FULL' }));
  expect(claim('b')).toMatchObject({ state: 'done' });
  await clock.advance(1000);
  expect(claim('c')).toMatchObject({ state: 'claimed' });
});

it('prunes what has expired, and no more than was asked for', async () => {
  const { clock, store, claim, record } = stage();
  for (const key of ['a', 'b', 'c']) record(key, 1000);
  record('d');
  claim('e');
  await clock.advance(1000);
  expect(store.prune(2)).toBe(2);
  expect(store.prune(10)).toBe(1);
  expect(store.prune(10)).toBe(0);
  expect(store.read('d')).toMatchObject({ state: 'done' });
  expect(store.read('e')).toEqual({ state: 'abandoned', fingerprint: '' });
});

it('changes nothing for an owner whose claim is gone, over or recorded', async () => {
  const { clock, store, claim, record } = stage();
  expect(store.renew('k', 'a', 1000)).toBe(false);
  expect(store.record('k', 'a', { outcome })).toBe(false);
  expect(store.release('k', 'a')).toBe(false);
  record('k');
  expect(store.renew('k', 'a', 1000)).toBe(false);
  expect(store.release('k', 'a')).toBe(false);
  expect(claim('k', 'a')).toMatchObject({ state: 'done' });
  claim('m', 'a');
  await clock.advance(1000);
  expect(claim('m', 'b', false)).toMatchObject({ state: 'abandoned' });
  expect(claim('m', 'b')).toMatchObject({ state: 'claimed', claims: 2 });
  expect(claim('m', 'b')).toMatchObject({ state: 'claimed', claims: 2 });
  expect(store.release('m', 'a')).toBe(false);
  expect(store.release('m', 'b')).toBe(true);
});
