import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { itemOf } from '../../../model/item.ts';
import type { Store } from '../../../ports/store.ts';
import { bytes, newTask, outboxMessage, rawItem, uuid } from '../../../testing/fixtures.ts';
import { sqlite } from '../index.ts';

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

const lane = 'https://a.example';

/** Fails a message that has the mark in every place, and writes of it in the audit trail. Its id. */
async function failed(mark: string, lease: number): Promise<string> {
  const messageId = uuid();
  const task = newTask({
    messageId,
    destination: { kind: 'http', address: `${lane}/hook?query=${mark}` },
    lane,
    payload: bytes(`payload ${mark} `.repeat(1 + (lease % 7) * 150)),
    context: { headers: { 'x-correlation-id': mark } },
    orderingKey: `key ${mark}`,
    blocked: true,
  });
  const [id] = await store.insert([task]);
  const from = { kind: 'due' as const, lanes: [{ lane, limit: 1 }] };
  await store.claim({ from, lease, leaseMs: 60_000, maxBytes: 1e6 });
  const failure = { class: 'technical' as const, message: `${mark} is not known` };
  const record = { attempt: 1, failure, durationMs: 1, answer: `answer ${mark}` };
  const item = itemOf('PERMANENT', failure, lane);
  const outbox = outboxMessage(`outbox ${mark}`);
  const line = { lane, key: `key ${mark}` };
  const end = { id: id!, lease, to: 'failed', attempt: 1, item, record, outbox, line } as const;
  await store.settle([end]);
  await store.audit?.write([
    {
      event_type: 'retry_exhausted',
      timestamp: new Date().toISOString(),
      final_exception_message: failure.message,
      correlation_id: mark,
      redrive: { instance: 'a', run: 1, sequence: lease, message_id: messageId },
    },
    {
      event_type: 'operator_action',
      timestamp: new Date().toISOString(),
      message_id: messageId,
      details: { to: `${lane}/?query=${mark}` },
    },
  ]);
  return messageId;
}

/** The bytes of the file and of its log. */
function rawBytes(): string {
  const log = `${file}-wal`;
  const parts = [file, ...(existsSync(log) ? [log] : [])].map((path) => readFileSync(path));
  return Buffer.concat(parts).toString('latin1');
}

/** How often the mark is in the file and in its log. */
function found(mark: string): number {
  return rawBytes().split(mark).length - 1;
}

/** Where the store says that something may be left. */
async function leftIn(): Promise<string[]> {
  return ((await store.scrub?.()) ?? []).map(({ what }) => what);
}

test('what is erased is in no byte of the file or of its log, while it is open and closed', async () => {
  const id = await failed('rosebud', 1);
  const { items } = await store.items({ limit: 1 });
  const edit = { payload: bytes('edited rosebud'), headers: { a: 'rosebud' } };
  await store.act([items[0]!.id], { type: 'edit', edit });
  await store.append([rawItem('other')]);
  expect(found('rosebud')).toBeGreaterThan(10);
  expect(await store.erase(id, 'ann')).toBe('erased');
  expect(await store.audit?.erase?.(id)).toBe(2);
  expect(await leftIn()).toEqual(['sqlite_pages']);
  expect(found('rosebud')).toBe(0);
  expect(found('other')).toBeGreaterThan(0);
  await store.close();
  expect(found('rosebud')).toBe(0);
});

test('also not where many others made pages move before', async () => {
  const ids: string[] = [];
  for (let i = 1; i <= 120; i++) ids.push(await failed(`rosebud-${i}-`, i));
  // Every third is erased, so that pages stay in use.
  const gone = ids.flatMap((id, i) => (i % 3 === 0 ? [{ id, mark: `rosebud-${i + 1}-` }] : []));
  for (const { id } of gone) {
    expect(await store.erase(id)).toBe('erased');
    await store.audit?.erase?.(id);
  }
  expect(await leftIn()).toEqual(['sqlite_pages']);
  const raw = rawBytes();
  expect(gone.filter(({ mark }) => raw.includes(mark))).toEqual([]);
  expect(raw).toContain('rosebud-2-');
  await store.close();
  const closed = rawBytes();
  expect(gone.filter(({ mark }) => closed.includes(mark))).toEqual([]);
});

test('says so where a reader keeps the log', async () => {
  const id = await failed('rosebud', 1);
  const reader = new DatabaseSync(file);
  reader.exec('BEGIN; SELECT count(*) FROM retry_queue');
  await store.erase(id);
  await store.audit?.erase?.(id);
  const [left] = (await store.scrub?.()) ?? [];
  expect(left).toMatchObject({ what: 'sqlite_log', todo: expect.stringContaining('once more') });
  expect(await leftIn()).toEqual(['sqlite_log', 'sqlite_pages']);
  expect(found('rosebud')).toBeGreaterThan(0);
  reader.close();
  expect(await leftIn()).toEqual(['sqlite_pages']);
  expect(found('rosebud')).toBe(0);
});
