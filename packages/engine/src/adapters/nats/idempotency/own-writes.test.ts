import type { KeyEntry } from 'redrive/internal';
import { expect, it } from 'vitest';
import { OwnWrites } from './own-writes.ts';

const entry = (owner: string): KeyEntry => ({
  owner,
  fingerprint: '',
  claims: 1,
  fencingToken: 1,
  leaseEndMs: 0,
  recordedAtMs: 0,
  expiresAtMs: Infinity,
});

it('answers only its owner, with what was written last', () => {
  const own = new OwnWrites(10);
  own.set('k', { entry: entry('a'), leaseMs: 5, revision: 7 });
  expect(own.get('k', 'a')).toMatchObject({ revision: 7, leaseMs: 5 });
  expect(own.get('k', 'b')).toBeUndefined();
  own.set('k', { entry: entry('b'), leaseMs: 5, revision: 8 });
  expect(own.get('k', 'a')).toBeUndefined();
  own.forget('k');
  expect(own.get('k', 'b')).toBeUndefined();
});

it('forgets what was written longest ago when there is too much', () => {
  const own = new OwnWrites(2);
  for (const key of ['a', 'b', 'a', 'c']) {
    own.set(key, { entry: entry('o'), leaseMs: 1, revision: 1 });
  }
  expect(['a', 'b', 'c'].map((key) => own.get(key, 'o') !== undefined)).toEqual([
    true,
    false,
    true,
  ]);
});
