import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { jobKey } from '../../../ports/inbox.ts';
import type { Store } from '../../../ports/store.ts';
import { newTask } from '../../../testing/fixtures.ts';
import { sqlite, type SqliteOptions } from '../index.ts';
import { bytesOfUuid } from '../uuid.ts';
import { version1 } from './version-1.ts';
import { version2 } from './version-2.ts';
import { version3 } from './version-3.ts';
import { version4 } from './version-4.ts';
import { version5 } from './version-5.ts';

const steps = [version1, version2, version3, version4, version5];

let folder: string;
let file: string;
let db: DatabaseSync;
let store: Store | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  db = new DatabaseSync(file);
});

afterEach(async () => {
  await store?.close();
  store = undefined;
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** An empty file as a program made it that knew so many steps. */
function begin(version: number): void {
  db.exec(`CREATE TABLE redrive_schema (version INTEGER NOT NULL, oldest INTEGER NOT NULL);
    INSERT INTO redrive_schema VALUES (${version}, ${version});`);
  for (const sql of steps.slice(0, version)) db.exec(sql);
}

type Values = Record<string, string | number | null | Uint8Array>;

function put(table: string, values: Values): void {
  const names = Object.keys(values);
  db.prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => '?').join()})`).run(
    ...Object.values(values),
  );
}

/** A row of any version: as much of it as matters here. */
function putTask(lane: string, key: string | null, status = 'pending', more: Values = {}): void {
  put('retry_queue', {
    message_id: bytesOfUuid(randomUUID()),
    original_queue: 'orders',
    lane,
    ordering_key: key,
    status,
    next_retry_at: 0,
    created_at: 0,
    visible_at: 0,
    original_payload: new Uint8Array([1]),
    ...more,
  });
}

function putItem(
  taskId: number | null,
  fingerprint: string,
  atMs: number,
  more: Values = {},
): void {
  put('redrive_inbox', {
    task_id: taskId,
    message_id: bytesOfUuid(randomUUID()),
    kind: 'queue',
    address: 'orders',
    lane: 'a',
    reason: 'PERMANENT',
    fingerprint,
    attempt: 1,
    max_attempts: 4,
    generation: 0,
    first_seen: atMs,
    last_seen: atMs + 5,
    failure: JSON.stringify({ class: 'technical', code: `E${atMs}` }),
    ...more,
  });
}

async function migrated(options: SqliteOptions = {}): Promise<Store> {
  store = sqlite(file, { clock: virtualClock(), ...options });
  await store.open();
  return store;
}

async function claimed(opened: Store, lease: number): Promise<number[]> {
  const from = { kind: 'due' as const, lanes: [{ lane: 'a', limit: 10 }] };
  const { tasks } = await opened.claim({ from, lease, leaseMs: 1000, maxBytes: 1e6 });
  return tasks.map(({ id }) => id);
}

test('of each line of version 1 the first goes on, and the others wait behind it', async () => {
  begin(1);
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
  const opened = await migrated();
  const blocked = (await opened.list({ limit: 20 })).filter((task) => task.blocked);
  expect(blocked.map(({ id }) => id)).toEqual([9, 6, 3]);
  expect(await claimed(opened, 1)).toEqual([1, 2, 8]);
  await opened.settle([{ id: 1, lease: 1, to: 'done', line: { lane: 'a', key: 'k' } }]);
  expect(await opened.get({ id: 3 })).toMatchObject({ blocked: false });
});

test('the items of version 1 get their groups and their ordering keys', async () => {
  begin(1);
  putTask('a', 'k', 'failed');
  putItem(1, 'f1', 100);
  putItem(null, 'f1', 300);
  putItem(null, 'f2', 200);
  const opened = await migrated();
  expect(await opened.groups({ limit: 10 })).toEqual([
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
  expect(await opened.item(1)).toMatchObject({ orderingKey: 'k', payload: new Uint8Array([1]) });
  expect(await opened.item(2)).not.toHaveProperty('orderingKey');
  expect(await opened.act([1], { type: 'replay' })).toEqual(['done']);
  expect(await opened.get({ id: 1 })).toMatchObject({ status: 'pending', blocked: false });
});

test('the lines of version 2 go on as they stood, each in its order', async () => {
  begin(2);
  putTask('a', 'k', 'done');
  putTask('a', 'k', 'pending', { lease: 7, claims: 1, visible_at: 9e15 });
  putTask('a', 'k', 'pending', { blocked: 1 });
  putTask('b', 'k', 'pending', { blocked: 0 });
  putTask('a', 'failed', 'failed');
  putTask('a', 'failed', 'pending', { blocked: 1 });
  putTask('a', 'passed', 'failed', { on_dead: 'release' });
  putTask('a', 'passed', 'pending');
  putTask('a', 'k', 'pending', { blocked: 1 });
  putItem(7, 'f', 100, { ordering_key: 'passed' });
  const opened = await migrated();
  expect(db.prepare('SELECT lane, ordering_key FROM redrive_lines ORDER BY id').all()).toEqual([
    { lane: 'a', ordering_key: 'k' },
    { lane: 'b', ordering_key: 'k' },
    { lane: 'a', ordering_key: 'failed' },
    { lane: 'a', ordering_key: 'passed' },
  ]);
  expect(await claimed(opened, 8)).toEqual([8]);
  await opened.settle([{ id: 2, lease: 7, to: 'done', line: { lane: 'a', key: 'k' } }]);
  expect(await claimed(opened, 9)).toEqual([3]);
  // One that had let the others pass comes back, and waits for whom is in delivery.
  expect(await opened.act([1], { type: 'replay' })).toEqual(['done']);
  expect(await claimed(opened, 10)).toEqual([]);
  await opened.settle([{ id: 8, lease: 8, to: 'done', line: { lane: 'a', key: 'passed' } }]);
  expect(await claimed(opened, 11)).toEqual([7]);
});

test.for([2, 4])(
  'the inbox of version %i stays, and its groups go on counting',
  async (version) => {
    begin(version);
    for (let i = 0; i < 3; i++) putTask('a', null, 'failed', { finished_at: 5 });
    putTask('a', null, 'done', { finished_at: 5 });
    putItem(1, 'f1', 100);
    putItem(2, 'f1', 200);
    putItem(3, 'f2', 300);
    putItem(4, 'f1', 400, { state: 'replayed', closed_at: 6 });
    db.exec("UPDATE redrive_groups SET note = 'known' WHERE fingerprint = 'f1'");
    const opened = await migrated();
    const open = async () => (await opened.groups({ limit: 9 })).map((group) => group.open);
    const ids = async (filter: Parameters<Store['count']>[0]) => {
      const { items } = await opened.items({ ...filter, limit: 9 });
      expect(await opened.count(filter)).toBe(items.length);
      return items.map(({ id }) => id);
    };
    expect(await opened.groups({ limit: 9 })).toMatchObject([
      { fingerprint: 'f1', open: 2, note: 'known' },
      { fingerprint: 'f2', open: 1 },
    ]);
    expect(await ids({ fingerprint: 'f1', state: 'open' })).toEqual([2, 1]);
    expect(await ids({ fingerprint: 'f1' })).toEqual([4, 2, 1]);
    expect(await ids({ state: 'replayed' })).toEqual([4]);
    expect(await opened.act([1, 3, 4], { type: 'discard' })).toEqual(['done', 'done', 'closed']);
    expect(await open()).toEqual([1]);
    expect(await opened.act([3], { type: 'restore' })).toEqual(['done']);
    expect(await open()).toEqual([1, 1]);
    const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
    // The done one, and the one that was discarded: those that failed stay.
    expect(await opened.prune({ olderThanMs, limit: 9 })).toBe(2);
    expect(await opened.pruneItems({ closedForMs: 0, limit: 9 })).toBe(2);
    expect(await ids({})).toEqual([3, 2]);
  },
);

test('an item of version 4 stays open or closed as it was, and opens once', async () => {
  begin(4);
  putTask('a', null, 'failed');
  const messageId = randomUUID();
  putItem(1, 'f', 100, { edit: '{"headers":{"a":"b"}}' });
  putItem(null, 'g', 200, {
    message_id: bytesOfUuid(messageId),
    kind: 'source',
    lane: 'source:orders',
  });
  putItem(7, 'h', 300, { state: 'discarded', closed_at: 6, closed_by: 'ann' });
  putItem(8, 'h', 400, { state: 'resolved' });
  const opened = await migrated();
  expect(await opened.item(1)).toMatchObject({ state: 'open', edit: { headers: { a: 'b' } } });
  expect(await opened.item(3)).toMatchObject({
    state: 'discarded',
    closedAtMs: 6,
    closedBy: 'ann',
  });
  // Nobody had written when it was closed.
  expect(await opened.item(4)).toMatchObject({ state: 'resolved', closedAtMs: 405 });
  const failure = { class: 'technical', code: 'E' } as const;
  const again = { messageId, source: 'orders', reason: 'UNREADABLE', failure } as const;
  await opened.append([{ ...again, fingerprint: 'g', payload: new Uint8Array() }]);
  expect(await opened.item(2)).toMatchObject({ state: 'open', occurrences: 2 });
  expect(await opened.count({})).toBe(4);
  expect(await opened.groups({ limit: 9 })).toMatchObject([
    { fingerprint: 'g', open: 1 },
    { fingerprint: 'f', open: 1 },
  ]);
  // What was changed is sent as it was changed.
  expect(await opened.act([1], { type: 'replay' })).toEqual(['done']);
  expect(await opened.get({ id: 1 })).toMatchObject({ context: { headers: { a: 'b' } } });
});

test('a file of version 4 that is full can be opened, and room be made in it', async () => {
  begin(4);
  db.exec('BEGIN');
  for (let i = 1; i <= 5000; i++) putItem(null, 'f', i, { state: 'discarded', closed_at: 1 });
  db.exec('COMMIT');
  const pages = Number(db.prepare('PRAGMA page_count').get()?.['page_count']);
  const opened = await migrated({ maxFileBytes: pages * 4096 });
  expect(await opened.count({ state: 'discarded' })).toBe(5000);
  expect(await opened.pruneItems({ closedForMs: 0, limit: 5000 })).toBe(5000);
  expect(await opened.insert([newTask()])).toEqual([1]);
});

test('a bulk job of version 2 goes on where it was', async () => {
  begin(2);
  for (let i = 0; i < 3; i++) putTask('a', null, 'failed');
  db.exec("UPDATE retry_queue SET status = 'pending', job = 1 WHERE id = 1");
  putItem(1, 'f', 100, { state: 'replayed', closed_at: 6 });
  putItem(2, 'f', 200);
  putItem(3, 'f', 300);
  put('redrive_state', { key: jobKey(1), version: 4, value: '{"cursor":1}' });
  put('redrive_members', { job: 1, item_id: 1, result: 'done' });
  put('redrive_members', { job: 1, item_id: 2 });
  put('redrive_members', { job: 1, item_id: 3 });
  const opened = await migrated();
  expect(await opened.members({ job: 1, after: 1, limit: 9 })).toEqual([
    { itemId: 2 },
    { itemId: 3 },
  ]);
  const hold = { job: 1, version: 4, next: () => ({ cursor: 3 }) };
  const replay = { type: 'replay', job: 1 } as const;
  expect(await opened.act([2, 1, 3], replay, hold)).toEqual(['done', 'closed', 'done']);
  expect(await opened.tally(1, 9)).toMatchObject({ underway: 3, back: 0 });
  expect(await opened.members({ job: 1, after: 0, result: 'closed', limit: 9 })).toEqual([
    { itemId: 1, result: 'closed' },
  ]);
  expect(await opened.readState('job:')).toMatchObject({
    documents: [{ value: { cursor: 3 }, version: 5 }],
  });
});

test('the audit events of version 5 are found by their message, and erased', async () => {
  begin(5);
  const id = randomUUID();
  const event = { exception_message: 'Eva', redrive: { message_id: id } };
  put('redrive_audit', {
    event_type: 'retry_attempt',
    timestamp: '2025-01-01T00:00:00.000Z',
    instance: 'a',
    sequence: 1,
    event: JSON.stringify(event),
  });
  const { audit } = await migrated();
  expect(await audit?.erase?.(id)).toBe(1);
  expect(db.prepare('SELECT event FROM redrive_audit').get()?.['event']).not.toContain('Eva');
  // A program of version 5 may go on.
  expect(db.prepare('SELECT oldest FROM redrive_schema').get()).toEqual({ oldest: 5 });
});

test.for([1, 2, 4])(
  'a program that knows version %i only is kept out afterwards',
  async (version) => {
    begin(version);
    await migrated();
    expect(db.prepare('SELECT * FROM redrive_schema').get()).toEqual({ version: 6, oldest: 5 });
  },
);

test('a file that cannot be brought to the last version stays as it was', async () => {
  begin(2);
  db.exec('CREATE TABLE redrive_lines (id INTEGER)');
  await expect(migrated()).rejects.toThrow('redrive_lines');
  expect(db.prepare('SELECT * FROM redrive_schema').get()).toEqual({ version: 2, oldest: 2 });
  const found = db.prepare(`SELECT sql FROM sqlite_schema WHERE name = 'retry_queue_finished'`);
  expect(found.get()?.['sql']).not.toContain('failed');
});
