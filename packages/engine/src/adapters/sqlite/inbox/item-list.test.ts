import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { virtualClock } from 'redrive/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ItemFilter } from '../../../ports/inbox.ts';
import type { Store } from '../../../ports/store.ts';
import { sqlite } from '../index.ts';

const ITEMS = 25_000;

let folder: string;
let file: string;
let store: Store;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  store = sqlite(file, { clock: virtualClock() });
  await store.open();
  const db = new DatabaseSync(file);
  db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ITEMS})
    INSERT INTO redrive_inbox (message_id, kind, address, lane, reason, fingerprint, attempt, max_attempts,
      generation, first_seen, last_seen, failure, payload)
    SELECT randomblob(16), 'source', 'in', 'source:in', 'UNREADABLE', 'f', 0, 0, 0, i, i,
      json_object('class', 'technical', 'message', iif(i = 3, 'the RARE one', 'one of many')), x'00' FROM n;
    DELETE FROM redrive_open WHERE id <> 2;
    INSERT INTO redrive_closed (id, state, closed_at) SELECT id, 'resolved', 1 FROM redrive_inbox WHERE id <> 2`);
  db.close();
});

afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The ids that are found on each page. */
async function pages(filter: ItemFilter): Promise<number[][]> {
  const found: number[][] = [];
  for (let before: number | undefined; found.length === 0 || before !== undefined;) {
    const page: Awaited<ReturnType<Store['items']>> = await store.items({
      ...filter,
      ...(before === undefined ? {} : { before }),
      limit: 10,
    });
    found.push(page.items.map(({ id }) => id));
    before = page.next;
  }
  return found;
}

test('a page looks at ten thousand items, and says where to go on', async () => {
  expect(await pages({ text: 'rare' })).toEqual([[], [], [3]]);
  expect(await pages({ fingerprint: 'f', state: 'resolved', fromMs: 1, toMs: 2 })).toEqual([
    [],
    [],
    [1],
  ]);
});

test('a page goes straight to open items among many that are closed', async () => {
  for (const filter of [{}, { fingerprint: 'f' }, { lane: 'source:in' }]) {
    expect(await pages({ ...filter, state: 'open' })).toEqual([[2]]);
  }
});

test('a count counts all, however many', async () => {
  expect(await store.count({})).toBe(ITEMS);
  expect(await store.count({ state: 'resolved' })).toBe(ITEMS - 1);
  expect(await store.count({ text: 'MANY', state: 'resolved' })).toBe(ITEMS - 2);
  expect(await store.count({ ids: [1, 1, 2, ITEMS + 1] })).toBe(2);
  expect(await store.count({ messageId: 'no uuid' })).toBe(0);
});

test('many ids are looked at in parts too', async () => {
  const ids = Array.from({ length: 12_000 }, (_, i) => i + 1);
  expect(await pages({ ids, text: 'rare' })).toEqual([[], [3]]);
});

test('open items of a cause are found in all stripes of ids, newest first', async () => {
  const ids = [100, 4095, 4096, 8191, 8192, 20_000];
  const db = new DatabaseSync(file);
  db.exec(`DELETE FROM redrive_closed WHERE id IN (${ids.join()});
    INSERT INTO redrive_open (id, raw_id, edited, reason, lane, fingerprint)
      SELECT id, message_id, 0, reason, lane, fingerprint FROM redrive_inbox WHERE id IN (${ids.join()})`);
  db.close();
  const filter = { fingerprint: 'f', state: 'open' as const };
  const newest = [...ids.toReversed(), 2];
  expect(await pages(filter)).toEqual([newest]);
  expect(await store.count(filter)).toBe(7);
  const first = await store.items({ ...filter, limit: 3 });
  expect(first.items.map(({ id }) => id)).toEqual([20_000, 8192, 8191]);
  for (const before of [8192, 4096, 100, 2]) {
    const { items } = await store.items({ ...filter, before, limit: 10 });
    expect(items.map(({ id }) => id)).toEqual(newest.filter((id) => id < before));
  }
  expect(await pages({ ...filter, text: 'rare' })).toEqual([[]]);
  expect(await store.act(ids, { type: 'resolve' })).toEqual(ids.map(() => 'done'));
  expect(await pages(filter)).toEqual([[2]]);
});
