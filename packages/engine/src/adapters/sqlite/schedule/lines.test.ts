import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock, type VirtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { leaseOf } from '../../../model/line.ts';
import type { ClaimFrom, Hint } from '../../../ports/schedule.ts';
import type { Store } from '../../../ports/store.ts';
import type { NewTask } from '../../../model/task.ts';
import { newTask } from '../../../testing/fixtures.ts';
import { sqlite } from '../index.ts';

const lane = 'queue:orders';
const olderThanMs = { done: 0, retried: 0, cancelled: 0 };

let folder: string;
let file: string;
let clock: VirtualClock;
let store: Store;
let leases = 0;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  clock = virtualClock();
  store = sqlite(file, { clock });
  await store.open();
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function ordered(key: string, changes: Partial<NewTask> = {}): NewTask {
  return newTask({ orderingKey: key, blocked: true, ...changes });
}

async function claim(from: ClaimFrom = { kind: 'due', lanes: [{ lane, limit: 100 }] }) {
  leases += 1;
  return (await store.claim({ from, lease: leases, leaseMs: 1000, maxBytes: 1e9 })).tasks;
}

async function blocked(): Promise<number[]> {
  const tasks = await store.list({ limit: 1000 });
  return tasks.filter((task) => task.blocked).map(({ id }) => id);
}

test('a watcher hears of whoever gets the turn, and when, but not of those who wait behind', async () => {
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  await store.insert([ordered('a'), ordered('a', { due: { inMs: 700 } })]);
  expect(hints).toEqual([{ lanes: [lane], inMs: 0 }]);
  await store.insert([ordered('a')]);
  expect(hints).toHaveLength(1);
  const [first] = await claim();
  await store.settle([{ ...leaseOf(first!), to: 'done' }]);
  expect(hints.slice(1)).toEqual([{ lanes: [lane], inMs: 700 }]);
});

test('an abandoned claim gives back also what had expired behind another', async () => {
  const expiresAtMs = clock.now() + 50;
  await store.insert([ordered('a'), ordered('a', { expiresAtMs })]);
  clock.jump(100);
  const [expired, ...more] = await claim({ kind: 'expired', limit: 10 });
  expect([expired!.id, more.length]).toEqual([2, 0]);
  await store.abandon(leases);
  expect(await store.get({ id: 2 })).toMatchObject({ claims: 0, blocked: true });
  expect(await store.get({ id: 2 })).not.toHaveProperty('lease');
});

test('a line in which everybody waits in vain goes on with the housekeeping', async () => {
  const keys = Array.from({ length: 450 }, (_, i) => `key ${i}`);
  await store.insert(keys.flatMap((key) => [ordered(key), ordered(key)]));
  const db = new DatabaseSync(file);
  db.exec("UPDATE retry_queue SET blocked = 1 WHERE ordering_key IN ('key 0', 'key 449', 'key 7')");
  db.close();
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  // Some lines at a time.
  for (let i = 0; i < 3; i++) await store.prune({ olderThanMs, limit: 10 });
  expect(await blocked()).toEqual(Array.from({ length: 450 }, (_, i) => 900 - 2 * i));
  expect(hints).toContainEqual({ lanes: [lane], inMs: 0 });
  // And from the beginning again.
  const again = new DatabaseSync(file);
  again.exec("UPDATE retry_queue SET blocked = 1 WHERE ordering_key = 'key 0'");
  again.close();
  await store.prune({ olderThanMs, limit: 10 });
  expect(await blocked()).not.toContain(1);
});

test('those who were let go by somebody else are called back, unless they are in delivery', async () => {
  await store.insert([ordered('a'), ordered('a'), ordered('a')]);
  const db = new DatabaseSync(file);
  db.exec('UPDATE retry_queue SET blocked = 0');
  db.close();
  await store.prune({ olderThanMs, limit: 10 });
  expect(await blocked()).toEqual([3, 2]);
});

test('a line is of one lane: the same key in another one does not wait', async () => {
  await store.insert([ordered('a'), ordered('a', { lane: 'queue:others' })]);
  expect(await blocked()).toEqual([]);
});

function knownLines(): unknown[] {
  const db = new DatabaseSync(file);
  const rows = db.prepare('SELECT ordering_key FROM redrive_lines ORDER BY id').all();
  db.close();
  return rows.map(({ ordering_key: key }) => key);
}

test('a line is forgotten with the last who stands in it, and begins anew', async () => {
  await store.insert([ordered('a'), ordered('b'), ordered('a')]);
  expect(knownLines()).toEqual(['a', 'b']);
  await store.settle((await claim()).map((task) => ({ ...leaseOf(task), to: 'done' as const })));
  expect(knownLines()).toEqual(['a']);
  await store.settle((await claim()).map((task) => ({ ...leaseOf(task), to: 'done' as const })));
  expect(knownLines()).toEqual([]);
  await store.insert([ordered('a'), ordered('a')]);
  expect((await claim()).map(({ id }) => id)).toEqual([4]);
});

test('a task that is known already leaves no line behind', async () => {
  const task = newTask();
  await store.insert([task]);
  expect(await store.insert([{ ...task, orderingKey: 'secret', blocked: true }])).toEqual([
    undefined,
  ]);
  expect(knownLines()).toEqual([]);
});

test('what had let the others pass stands in its line again when it is replayed', async () => {
  const item = { reason: 'PERMANENT', failure: { class: 'technical' }, fingerprint: 'f' } as const;
  await store.insert([ordered('a', { onDead: 'release' })]);
  const [first] = await claim();
  await store.settle([{ ...leaseOf(first!), to: 'failed', attempt: 1, item }]);
  expect(knownLines()).toEqual([]);
  await store.insert([ordered('a')]);
  expect(await blocked()).toEqual([]);
  expect(await store.act([1], { type: 'replay' })).toEqual(['done']);
  // The earlier one has the turn: the other one is not in delivery.
  expect(await blocked()).toEqual([2]);
  expect((await claim()).map(({ id }) => id)).toEqual([1]);
});

test('a line without anybody is forgotten by the housekeeping', async () => {
  const db = new DatabaseSync(file);
  db.exec(`INSERT INTO redrive_lines (lane, ordering_key) VALUES ('${lane}', 'left')`);
  db.close();
  await store.prune({ olderThanMs, limit: 10 });
  expect(knownLines()).toEqual([]);
});
