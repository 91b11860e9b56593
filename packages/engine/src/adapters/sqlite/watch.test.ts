import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Hint } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import { newTask } from '../../testing/fixtures.ts';
import { sqlite } from './index.ts';

const lane = 'queue:orders';

let folder: string;
let file: string;
let clock: VirtualClock;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  clock = virtualClock();
  store = sqlite(file, { clock });
  await store.open();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('a watcher hears of this store at once: which lanes, how soon, and of shared state', async () => {
  const hints: Hint[] = [];
  const unwatch = store.watch((hint) => hints.push(hint));
  await store.insert([
    newTask({ due: { inMs: 300 } }),
    newTask({ lane: 'handler:b', due: { inMs: 700 } }),
  ]);
  await store.insert([newTask({ blocked: false, due: { inMs: 0 } })]);
  const from = { kind: 'due' as const, lanes: [{ lane, limit: 1 }] };
  await store.claim({ from, lease: 1, leaseMs: 30_000, maxBytes: 1000 });
  await store.settle([{ id: 3, lease: 1, to: 'done' }]);
  await store.writeState('seed', 5, 0);
  await store.writeState('seed', 6, 0);
  expect(hints).toEqual([
    { lanes: [lane, 'handler:b'], inMs: 300 },
    { lanes: [lane], inMs: 0 },
    { state: true },
  ]);
  unwatch();
  await store.insert([newTask()]);
  expect(hints).toHaveLength(3);
  expect(clock.pending).toBe(0);
});

test('a watcher hears of another connection within 100 ms, and only of that', async () => {
  const other = sqlite(file, { clock });
  await other.open();
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  await store.writeState('seed', 1, 0);
  await clock.advance(1000);
  expect(hints).toEqual([{ state: true }]);
  await other.insert([newTask()]);
  await clock.advance(99);
  expect(hints).toHaveLength(1);
  await clock.advance(1);
  expect(hints).toEqual([{ state: true }, {}]);
  await other.close();
});

test('a watcher that throws is reported, and the others still hear', async () => {
  const report = vi.spyOn(console, 'error').mockReturnValue();
  const hints: Hint[] = [];
  store.watch(() => {
    throw new Error('a fault of the listener');
  });
  store.watch((hint) => hints.push(hint));
  expect(await store.insert([newTask()])).toEqual([1]);
  expect(hints).toHaveLength(1);
  expect(report).toHaveBeenCalledOnce();
});

test('what came while the file was closed is told after it is opened again', async () => {
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  await store.close();
  expect(clock.pending).toBe(0);
  const other = sqlite(file, { clock });
  await other.open();
  await store.open();
  await other.insert([newTask()]);
  await clock.advance(100);
  expect(hints).toEqual([{}]);
  await other.close();
});
