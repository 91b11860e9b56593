import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite, sqliteIdempotency } from '@redrive/engine/sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MoveSource } from './move-source.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-source-'));
  file = join(folder, 'redrive.db');
  const store = sqlite(file);
  await store.open();
  await store.close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a file with all that this program knows is taken, and nobody else gets it meanwhile', async () => {
  const source = new MoveSource(file);
  const store = sqlite(file, { busyLimitMs: 50 });
  await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(() => new MoveSource(file)).toThrow('is in use');
  source.close();
  await store.open();
  await store.close();
});

test('idempotency keys stay behind', async () => {
  const keys = sqliteIdempotency(file);
  await keys.prune(1);
  await keys.close?.();
  new MoveSource(file).close();
  expect(existsSync(file)).toBe(true);
});

test('what it does not know it does not leave behind in silence', () => {
  const db = new DatabaseSync(file);
  db.exec('ALTER TABLE retry_queue ADD COLUMN colour TEXT; CREATE TABLE redrive_more (id INTEGER)');
  db.close();
  expect(() => new MoveSource(file)).toThrow('retry_queue.colour, redrive_more.id');
});

test('its sign is there until the file is renamed, whoever opens it', () => {
  const marker = { id: 'a', to: 'b', begun: false };
  const first = new MoveSource(file);
  expect(first.marker).toBeUndefined();
  first.mark(marker);
  first.close();
  const second = new MoveSource(file);
  expect(second.marker).toEqual(marker);
  second.mark({ ...marker, begun: true });
  expect(second.marker).toEqual({ ...marker, begun: true });
  second.close();
});
