import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ItemFilter } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { sqlite } from './index.ts';

let folder: string;
let file: string;
let store: Store;
let prepared: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  file = join(folder, 'tasks.db');
  store = sqlite(file);
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  await store.open();
  for (const filter of filters) {
    await store.items({ ...filter, limit: 10 });
    await store.count(filter);
  }
  prepared = [...new Set(prepare.mock.calls.map(([sql]) => sql))];
  prepare.mockRestore();
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const filters: ItemFilter[] = [
  {},
  { ids: [1, 2] },
  { state: 'open' },
  { state: 'replayed' },
  { fingerprint: 'f' },
  { fingerprint: 'f', state: 'open' },
  { lane: 'a' },
  { lane: 'a', state: 'open' },
  { messageId: '00000000-0000-4000-8000-000000000000' },
  { text: 'late' },
];

/** The steps of the plans of all statements, each with its statement. */
function plans(): { step: string; sql: string }[] {
  const db = new DatabaseSync(file);
  const steps = prepared
    .filter((sql) => !sql.startsWith('PRAGMA'))
    .flatMap((sql) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => ({ step: detail as string, sql })),
    );
  db.close();
  return steps;
}

test('no statement walks through all tasks, items, groups or members', () => {
  const tables =
    'retry_queue|task|head|redrive_inbox|item|way|redrive_open|redrive_closed|closed|redrive_groups|redrive_members|redrive_attempts|redrive_lines|line';
  const scan = new RegExp(`^SCAN (${tables})\\b(?! USING (COVERING )?INDEX)`);
  expect(plans().filter(({ step }) => scan.test(step))).toEqual([]);
  expect(plans().length).toBeGreaterThan(50);
});

test('whole indexes are walked only where they hold little, or where a page ends the walk', () => {
  const walks = plans().filter(({ step }) => /^SCAN .* USING/.test(step));
  expect([...new Set(walks.map(({ step }) => step.replace(/COVERING /, '')))].sort()).toEqual([
    // An abandoned claim: what is claimed now.
    'SCAN retry_queue USING INDEX retry_queue_lost',
  ]);
});

test('nothing is sorted that an index has in order', () => {
  const sorts = plans().filter(({ step }) => step.includes('TEMP B-TREE'));
  // Those of a batch that are closed, by group: that is in no index.
  expect(sorts.filter(({ sql }) => !sql.includes('closing.count'))).toEqual([]);
});

test('the first of a long line is found by its line, not by walking the ids', () => {
  const steps = plans().filter(({ sql }) => sql.includes('INDEXED BY retry_queue_line'));
  const ways = new Set(
    steps.map(({ step }) => step).filter((step) => /retry_queue|head/.test(step)),
  );
  expect(ways).toEqual(
    new Set([
      'SEARCH retry_queue USING INTEGER PRIMARY KEY (rowid=?)',
      'SEARCH head USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
      'SEARCH retry_queue USING INDEX retry_queue_line (line=? AND blocked=?)',
    ]),
  );
});
