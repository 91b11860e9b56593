import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../../ports/store.ts';
import { rawItem } from '../../../testing/fixtures.ts';
import { sqlite } from '../index.ts';

let folder: string;
let store: Store;
/** Somebody who writes past this program. */
let hand: DatabaseSync;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  const file = join(folder, 'tasks.db');
  store = sqlite(file, { clock: virtualClock() });
  await store.open();
  hand = new DatabaseSync(file);
});

afterEach(async () => {
  hand.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<number[]> {
  return (await store.groups({ all: true, limit: 10 })).map((group) => group.open);
}

test('a group counts its open items, also where somebody deletes one by hand', async () => {
  const one = rawItem('a');
  const { fingerprint } = one;
  await store.append([one, rawItem('b', { fingerprint }), rawItem('c', { fingerprint })]);
  expect(await open()).toEqual([3]);
  expect(await store.act([1], { type: 'resolve' })).toEqual(['done']);
  expect(await open()).toEqual([2]);
  expect(await store.act([1], { type: 'resolve' })).toEqual(['closed']);
  expect(await open()).toEqual([2]);
  expect(await store.act([1], { type: 'restore' })).toEqual(['done']);
  expect(await open()).toEqual([3]);
  hand.exec('DELETE FROM redrive_inbox WHERE id = 2');
  expect(await open()).toEqual([2]);
  hand.exec('UPDATE redrive_inbox SET last_seen = 9e12 WHERE id = 3');
  expect(await store.groups({ limit: 10 })).toMatchObject([{ open: 2, lastSeenMs: 9e12 }]);
});

test('a group goes with its last item, unless somebody has written on it', async () => {
  const one = rawItem('a');
  const { fingerprint } = one;
  await store.append([one]);
  await store.annotate(fingerprint, { note: 'known', owner: 'ann' });
  hand.exec('DELETE FROM redrive_inbox');
  expect(await open()).toEqual([0]);
  expect(await store.groups({ limit: 10 })).toEqual([]);
  expect(await store.annotate(fingerprint, { note: '' })).toBe(true);
  expect(await open()).toEqual([0]);
  expect(await store.annotate(fingerprint, { owner: '' })).toBe(true);
  expect(await open()).toEqual([]);
  await store.append([rawItem('a')]);
  hand.exec('DELETE FROM redrive_inbox');
  expect(await open()).toEqual([]);
});

test('an item does not change its group', async () => {
  await store.append([rawItem('a')]);
  expect(() => hand.exec("UPDATE redrive_inbox SET fingerprint = 'other'")).toThrow(
    'cannot change',
  );
  expect(await open()).toEqual([1]);
});
