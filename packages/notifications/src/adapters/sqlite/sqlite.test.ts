import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '@redrive/engine/sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newRecord } from '../../testing/repository/fixtures.ts';
import { sqliteNotifications } from './index.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-notifications-'));
  file = join(folder, 'redrive.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function execute(text: string): unknown[] {
  const db = new DatabaseSync(file);
  try {
    return db.prepare(text).all();
  } finally {
    db.close();
  }
}

test('lives beside an engine in one file', async () => {
  const engine = sqlite(file);
  await engine.open();
  const repository = sqliteNotifications(file);
  await repository.open();
  const record = newRecord();
  await repository.create([record]);
  expect(await repository.find([record.id])).toEqual([{ ...record, version: 1 }]);
  await engine.close();
  await repository.close();
});

test('refuses tables that a newer program made, and a table of somebody else', async () => {
  const repository = sqliteNotifications(file);
  await repository.open();
  await repository.close();
  execute('UPDATE redrive_notifications_schema SET version = 9, oldest = 9');
  await expect(repository.open()).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
  file = join(folder, 'other.db');
  execute('CREATE TABLE notifications (a)');
  await expect(sqliteNotifications(file).open()).rejects.toMatchObject({ code: 'TABLE_NOT_OURS' });
});

test.each([
  ['notifications_wake', 'SELECT id FROM notifications WHERE wake_at_ms <= 1 ORDER BY wake_at_ms'],
  [
    'notifications_over',
    'SELECT id FROM notifications WHERE wake_at_ms IS NULL AND updated_at_ms < 1 ORDER BY updated_at_ms LIMIT 1',
  ],
  [
    'notifications_created',
    'SELECT id FROM notifications WHERE (created_at_ms, id) < (1, 2) ORDER BY created_at_ms DESC, id DESC',
  ],
  [
    'notifications_status',
    `SELECT id FROM notifications WHERE status = 'failed' AND (created_at_ms, id) < (1, 2) ORDER BY created_at_ms DESC, id DESC`,
  ],
  [
    'notifications_user',
    `SELECT id FROM notifications WHERE user_id = 'u' ORDER BY created_at_ms DESC, id DESC`,
  ],
])('uses the index %s, and sorts nothing', async (index, text) => {
  const repository = sqliteNotifications(file);
  await repository.open();
  await repository.close();
  const plan = JSON.stringify(execute(`EXPLAIN QUERY PLAN ${text}`));
  expect(plan).toContain(index);
  expect(plan).not.toContain('TEMP B-TREE');
});
