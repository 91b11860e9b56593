import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sqlite } from './index.ts';
import { bytesOfUuid } from './uuid.ts';
import { version1 } from './version-1.ts';

let folder: string;
let file: string;
let db: DatabaseSync;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  db = new DatabaseSync(file);
  db.exec(`CREATE TABLE redrive_schema (version INTEGER NOT NULL, oldest INTEGER NOT NULL);
    INSERT INTO redrive_schema VALUES (1, 1);`);
  db.exec(version1);
});

afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A row of version 1: as much of it as matters here. */
function putTask(lane: string, key: string | null, status = 'pending'): void {
  const insert = db.prepare(
    `INSERT INTO retry_queue (message_id, original_queue, lane, ordering_key, status, next_retry_at, created_at,
       visible_at, original_payload) VALUES (?, 'orders', ?, ?, ?, 0, 0, 0, x'01')`,
  );
  insert.run(bytesOfUuid(randomUUID()), lane, key, status);
}

function putItem(taskId: number | null, fingerprint: string, atMs: number): void {
  const insert = db.prepare(
    `INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, reason, fingerprint, attempt, max_attempts,
       generation, first_seen, last_seen, failure)
     VALUES (?, ?, 'queue', 'orders', 'a', 'PERMANENT', ?, 1, 4, 0, ?, ?, ?)`,
  );
  const failure = JSON.stringify({ class: 'technical', code: `E${atMs}` });
  insert.run(taskId, bytesOfUuid(randomUUID()), fingerprint, atMs, atMs + 5, failure);
}

async function migrated() {
  const store = sqlite(file, { clock: virtualClock() });
  await store.open();
  return store;
}

test('of each line of version 1 the first goes on, and the others wait behind it', async () => {
  for (const [lane, key, status] of [
    ['a', 'k'],
    ['a', null],
    ['a', 'k'],
    ['b', 'k'],
    ['a', 'k2', 'failed'],
    ['a', 'k2'],
    ['a', 'k3', 'done'],
    ['a', 'k3'],
    ['a', 'k'],
  ] as const) {
    putTask(lane, key, status);
  }
  const store = await migrated();
  const blocked = (await store.list({ limit: 20 })).filter((task) => task.blocked);
  expect(blocked.map(({ id }) => id)).toEqual([9, 6, 3]);
  const from = { kind: 'due' as const, lanes: [{ lane: 'a', limit: 10 }] };
  const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e6 });
  expect(tasks.map(({ id }) => id)).toEqual([1, 2, 8]);
  await store.settle([{ id: 1, lease: 1, to: 'done', line: { lane: 'a', key: 'k' } }]);
  expect(await store.get({ id: 3 })).toMatchObject({ blocked: false });
  await store.close();
});

test('the items of version 1 get their groups and their ordering keys', async () => {
  putTask('a', 'k', 'failed');
  putItem(1, 'f1', 100);
  putItem(null, 'f1', 300);
  putItem(null, 'f2', 200);
  const store = await migrated();
  expect(await store.groups({ limit: 10 })).toEqual([
    {
      fingerprint: 'f1',
      lane: 'a',
      reason: 'PERMANENT',
      failure: { class: 'technical', code: 'E300' },
      open: 2,
      firstSeenMs: 100,
      lastSeenMs: 305,
    },
    expect.objectContaining({ fingerprint: 'f2', open: 1 }),
  ]);
  expect(await store.item(1)).toMatchObject({ orderingKey: 'k', payload: new Uint8Array([1]) });
  expect(await store.item(2)).not.toHaveProperty('orderingKey');
  expect(await store.act([1], { type: 'replay' })).toEqual(['done']);
  expect(await store.get({ id: 1 })).toMatchObject({ status: 'pending', blocked: false });
  await store.close();
});

test('a program that knows version 1 only is kept out afterwards', async () => {
  await (await migrated()).close();
  expect(db.prepare('SELECT * FROM redrive_schema').get()).toEqual({ version: 2, oldest: 2 });
});
