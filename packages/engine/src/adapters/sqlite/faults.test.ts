import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { virtualClock } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../ports/store.ts';
import type { NewTask } from '../../model/task.ts';
import { newTask } from '../../testing/fixtures.ts';
import { sqlite } from './index.ts';
import { assertLocal } from './locality.ts';

let folder: string;
let file: string;
const opened: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  rmSync(folder, { recursive: true, force: true });
});

async function open(...args: Parameters<typeof sqlite>): Promise<Store> {
  const store = sqlite(...args);
  opened.push(store);
  await store.open();
  return store;
}

function newTasks(count: number, bytes: number): NewTask[] {
  return Array.from({ length: count }, () => newTask({ payload: new Uint8Array(bytes) }));
}

/** Runs SQL on the file from outside. */
function meddle(sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

test('a file that is no database is refused, and left as it is', async () => {
  const text = 'name,amount\n'.repeat(500);
  writeFileSync(file, text);
  await expect(open(file)).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
  expect(readFileSync(file, 'utf8')).toBe(text);
});

test('a damaged page is told when it is met, and the rest can still be read', async () => {
  const store = await open(file);
  await store.insert(newTasks(200, 2000));
  await store.close();
  // The last pages hold the newest rows: the tables before them stay whole.
  const handle = openSync(file, 'r+');
  const at = statSync(file).size - 40 * 4096;
  writeSync(handle, Buffer.alloc(40 * 4096, 0xa5), 0, 40 * 4096, at);
  closeSync(handle);
  await store.open();
  await expect(store.list({ limit: 200 })).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
  expect(await store.get({ id: 1 })).toMatchObject({ id: 1 });
});

test('a file that may only be read is refused', async () => {
  await (await open(file)).close();
  const url = new URL(`${pathToFileURL(file).href}?mode=ro`);
  await expect(open(url)).rejects.toMatchObject({ code: 'STORE_READ_ONLY' });
});

test('a file that is full takes nothing more, loses nothing, and goes on when there is room', async () => {
  const store = await open(file, { maxFileBytes: 1024 * 1024 });
  const stored: NewTask[] = [];
  const fill = async () => {
    for (;;) {
      const batch = newTasks(10, 1000);
      await store.insert(batch);
      stored.push(...batch);
    }
  };
  await expect(fill()).rejects.toMatchObject({ code: 'STORE_FULL' });
  expect(stored.length).toBeGreaterThan(100);
  // The batch that did not fit left nothing behind, and what is there can still be worked off.
  expect(await store.list({ limit: 10_000 })).toHaveLength(stored.length);
  const from = { kind: 'due' as const, lanes: [{ lane: 'queue:orders', limit: 100 }] };
  const { tasks } = await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1e9 });
  const settled = await store.settle(tasks.map(({ id }) => ({ id, lease: 1, to: 'done' })));
  expect(new Set(settled)).toEqual(new Set(['settled']));
  await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 100 });
  expect(await store.insert(newTasks(10, 1000))).toHaveLength(10);
});

test.for([0x6969, 0xff534d42, 0xff534d42 | 0, 0xfe534d42, 0x01021997])(
  'a network file system (%i) is refused',
  (type) => {
    expect(() => assertLocal('/mnt/x', () => type)).toThrow(
      expect.objectContaining({ code: 'STORE_NOT_LOCAL' }),
    );
  },
);

test('a local file system is not refused, nor one that says nothing', () => {
  expect(() => assertLocal('/', () => 0xef53)).not.toThrow();
  expect(() => assertLocal('/', () => undefined)).not.toThrow();
  expect(() => assertLocal(folder)).not.toThrow();
});

test('a path that cannot be is told as such', async () => {
  mkdirSync(file);
  await expect(open(file)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  const below = join(folder, 'plain.txt');
  writeFileSync(below, '');
  await expect(open(join(below, 'x', 'a.db'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('a missing folder is made', async () => {
  const store = await open(join(folder, 'a', 'b', 'tasks.db'));
  expect(await store.insert([newTask()])).toEqual([1]);
});

test('options are checked at once, every fault of them', () => {
  const options = { busyLimitMs: -1, maxFileByte: 2 ** 30, clock: 5, random: 5 } as object;
  const make = () => sqlite(':memory:', options);
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
  for (const name of ['busyLimitMs', 'maxFileBytes', 'random', 'clock', 'file']) {
    expect(make).toThrow(name);
  }
});

test.for(['', ':memory:', new URL('https://example.com/tasks.db')])(
  'what is no file (%s) is refused',
  (name) => {
    expect(() => sqlite(name)).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
  },
);

test('a newer schema that this program may use is used as it is', async () => {
  const store = await open(file);
  await store.insert([newTask()]);
  meddle(
    'UPDATE redrive_schema SET version = 7, oldest = 1; ALTER TABLE retry_queue ADD COLUMN later TEXT',
  );
  const again = await open(file);
  expect(await again.insert([newTask()])).toEqual([2]);
});

test('a newer schema that this program may not use is refused, naming both', async () => {
  await (await open(file)).close();
  meddle('UPDATE redrive_schema SET version = 9, oldest = 8');
  await expect(open(file)).rejects.toMatchObject({
    code: 'SCHEMA_TOO_NEW',
    message: expect.stringMatching(/schema 9.*schema 8 or later.*knows 6\b/),
  });
});

test('a table of the same name that Redrive did not make is refused and left alone', async () => {
  meddle("CREATE TABLE retry_queue (a TEXT); INSERT INTO retry_queue VALUES ('x')");
  await expect(open(file)).rejects.toMatchObject({ code: 'TABLE_NOT_OURS' });
  const db = new DatabaseSync(file);
  expect(db.prepare('SELECT * FROM retry_queue').all()).toEqual([{ a: 'x' }]);
  expect(db.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'retry_queue' }]);
  db.close();
});

test('a file with tables of others is shared with them', async () => {
  meddle('CREATE TABLE customers (name TEXT)');
  expect(await (await open(file)).insert([newTask()])).toEqual([1]);
});

test('a locked file is waited for off the event loop', async () => {
  const clock = virtualClock();
  const store = await open(file, { clock });
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  const inserted = store.insert([newTask()]);
  while (clock.pending === 0) await new Promise(setImmediate);
  other.exec('COMMIT');
  other.close();
  await clock.advance(100);
  expect(await inserted).toEqual([1]);
});

test('a file that stays locked is told as unavailable, and nothing of the call is kept', async () => {
  const clock = virtualClock();
  const store = await open(file, { clock, busyLimitMs: 300 });
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  const inserted = store.insert([newTask()]).catch((error: unknown) => error);
  while (clock.pending === 0) await new Promise(setImmediate);
  await clock.advance(1000);
  expect(await inserted).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  other.exec('COMMIT');
  other.close();
  expect(await store.list({ limit: 10 })).toEqual([]);
  expect(await store.insert([newTask()])).toEqual([1]);
});

test('a transaction of the caller cannot be joined, and nothing is written beside it', async () => {
  const store = await open(file);
  const tx = {};
  await expect(store.insert([newTask()], tx)).rejects.toMatchObject({ code: 'NO_TRANSACTIONS' });
  const change = store.change([{ id: 1 }], () => ({ result: 1, task: newTask() }), tx);
  await expect(change).rejects.toMatchObject({ code: 'NO_TRANSACTIONS' });
  expect(await store.list({ limit: 10 })).toEqual([]);
});

test('a store that was not opened says so', async () => {
  await expect(sqlite(file).get({ id: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('a message id that is no UUID is refused when it is written and not found when it is read', async () => {
  const store = await open(file);
  const messageId = '12345678-1234-1234-1234-12345678901g';
  await expect(store.insert([{ ...newTask(), messageId }])).rejects.toMatchObject({
    code: 'INVALID_ID',
  });
  expect(await store.get({ messageId, destination: { kind: 'a', address: 'b' } })).toBeUndefined();
  expect((await store.items({ messageId, limit: 1 })).items).toEqual([]);
});

test('a message id means the same in capitals', async () => {
  const store = await open(file);
  const { messageId, ...rest } = newTask();
  await store.insert([{ ...rest, messageId: messageId.toUpperCase() }]);
  expect(await store.insert([{ ...rest, messageId }])).toEqual([undefined]);
  expect((await store.get({ id: 1 }))?.messageId).toBe(messageId);
});
