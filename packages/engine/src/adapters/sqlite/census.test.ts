import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from 'redrive/internal';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Store } from '../../ports/store.ts';
import { newTask } from '../../testing/fixtures.ts';
import { census } from './census.ts';
import { connect, connectReader } from './connection.ts';
import { Database } from './database.ts';
import { sqlite } from './index.ts';

let folder: string;
let file: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  store = sqlite(file);
  await store.open();
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function fill(tasks: number): void {
  const db = new DatabaseSync(file);
  db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${tasks})
    INSERT INTO retry_queue (message_id, original_queue, lane, next_retry_at, created_at, visible_at, original_payload)
    SELECT randomblob(16), 'orders', 'queue:orders', i, i, i, x'00' FROM n`);
  db.close();
}

test('counts in steps, between which others have their turn', () => {
  fill(2000);
  const db = new DatabaseSync(file, { readOnly: true });
  // Time passes by a lot with every look at the clock.
  let ms = 0;
  const counting = census(db, { ...systemClock, monotonic: () => (ms += 100) });
  let steps = 0;
  let result = counting.next();
  for (; !result.done; result = counting.next()) steps += 1;
  db.close();
  expect(steps).toBeGreaterThan(100);
  expect(result.value).toMatchObject({ pending: 2000 });
});

test('is of one moment, whatever is written while it counts', async () => {
  const place = { path: file, name: file };
  const database = new Database({
    path: file,
    clock: systemClock,
    random: Math.random,
    busyLimitMs: 1000,
    connect: () => connect(place, undefined),
    connectReader: () => connectReader(place),
    prepare: () => undefined,
    report: () => expect.fail('the file was lost'),
  });
  await database.open();
  await store.insert([newTask()]);
  const writing = { isOver: false };
  const reading = database.readInSteps(function* (db) {
    const count = db.prepare('SELECT count(*) AS tasks FROM retry_queue');
    const tasks = [count.get()?.['tasks']];
    while (!writing.isOver) yield;
    return [...tasks, count.get()?.['tasks']];
  });
  await database.read(() => undefined);
  await store.insert([newTask()]);
  writing.isOver = true;
  expect(await reading).toEqual([1, 1]);
  await database.close();
  expect((await store.census()).pending).toBe(2);
});

test('ends when the store is closed, and says so', async () => {
  fill(100_000);
  const counting = store.census();
  const [counted] = await Promise.allSettled([counting, store.close()]);
  expect(counted).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
  await expect(store.census()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('leaves no connection behind', async () => {
  const close = vi.spyOn(DatabaseSync.prototype, 'close');
  await store.census();
  await store.census();
  expect(close).toHaveBeenCalledTimes(2);
  close.mockRestore();
});

test('counts tasks by their indexes, without a look at their rows', () => {
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const db = new DatabaseSync(file);
  for (const counting = census(db, systemClock); !counting.next().done;);
  const texts = prepare.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /FROM retry_queue/.test(sql));
  prepare.mockRestore();
  const programs = texts.map((sql) => db.prepare(`EXPLAIN ${sql}`).all());
  db.close();
  expect(programs).toHaveLength(3);
  const [, lost] = programs;
  for (const program of programs) {
    // Cursor 0 is the table. Of those in delivery there are few, and the lease stands in their rows.
    const columns = program.filter(({ opcode, p1 }) => opcode === 'Column' && p1 === 0);
    expect(columns).toHaveLength(program === lost ? 1 : 0);
  }
});
