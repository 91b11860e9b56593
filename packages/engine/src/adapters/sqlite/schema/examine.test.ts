import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newTask } from '../../../testing/fixtures.ts';
import { examine, sqlite } from '../index.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks of %20 all?.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function opened() {
  const store = sqlite(file);
  await store.open();
  return store;
}

test('tells what it found, while the store is open', async () => {
  const store = await opened();
  await store.insert([newTask()]);
  const findings = await examine(file);
  expect(findings).toMatchObject({
    path: file,
    pageBytes: 4096,
    freePages: expect.any(Number),
    journalMode: 'wal',
    schema: { version: 6, oldest: 5, known: 6 },
    damage: [],
    library: expect.stringMatching(/^3\./),
  });
  expect(findings.logBytes).toBeGreaterThan(0);
  expect(findings.freeBytes).toBeGreaterThan(0);
  await store.close();
});

test('leaves nothing beside a file that nobody has open', async () => {
  await (await opened()).close();
  const before = readdirSync(folder);
  const { fileBytes, logBytes, journalMode, pages, schema } = await examine(pathToFileURL(file));
  expect(readdirSync(folder)).toEqual(before);
  expect(pages * 4096).toBe(fileBytes);
  expect([logBytes, journalMode, schema.version]).toEqual([0, 'wal', 6]);
});

test('reads what is in the log only', async () => {
  const store = await opened();
  const copy = join(folder, 'copy.db');
  copyFileSync(file, copy);
  copyFileSync(`${file}-wal`, `${copy}-wal`);
  await store.close();
  expect((await examine(copy)).schema.version).toBe(6);
});

test('counts pages that hold nothing', async () => {
  const store = await opened();
  const db = new DatabaseSync(file);
  db.exec('CREATE TABLE filler AS SELECT zeroblob(400000) AS a; DROP TABLE filler');
  db.close();
  await store.close();
  expect((await examine(file)).freePages).toBeGreaterThan(90);
});

test('finds damage, and leaves it unfound where it should not look', async () => {
  const store = await opened();
  await store.insert(Array.from({ length: 500 }, () => newTask()));
  await store.close();
  const { pages } = await examine(file);
  const handle = openSync(file, 'r+');
  for (let page = pages - 5; page < pages; page++) {
    writeSync(handle, Buffer.alloc(200, 0xa5), 0, 200, page * 4096);
  }
  closeSync(handle);
  const { damage } = await examine(file);
  expect(damage!.length).toBeGreaterThan(0);
  expect(damage!.length).toBeLessThanOrEqual(10);
  expect(await examine(file, { integrity: false })).not.toHaveProperty('damage');
});

test('knows a mode that is not ours, and a file without tables', async () => {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = DELETE; CREATE TABLE other (a)');
  db.close();
  expect(await examine(file)).toMatchObject({ journalMode: 'delete', schema: { known: 6 } });
  truncateSync(file, 0);
  expect(await examine(file)).toMatchObject({ pages: 0, schema: { known: 6 } });
});

test('is told of what is wrong as the store tells it', async () => {
  await expect(examine(file)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  writeFileSync(
    file,
    'this is no database, and longer than a header of one would have to be: '.repeat(20),
  );
  await expect(examine(file)).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
  await expect(examine(':memory:')).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
});
