import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { itemOf } from '../../item.ts';
import { bytes, newTask, outboxMessage, rawItem } from '../../testing/fixtures.ts';
import { sqlite } from './index.ts';

/** Every value of every row, as text. */
function contentOf(file: string): string {
  const db = new DatabaseSync(file);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const rows = tables.flatMap(({ name }) => db.prepare(`SELECT * FROM ${String(name)}`).all());
  db.close();
  const texts = rows.flatMap((row) => Object.values(row));
  return texts
    .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)))
    .join('\n');
}

test('what is erased is in no row of any table any more', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
  const file = join(folder, 'tasks.db');
  const store = sqlite(file);
  await store.open();
  const secret = 'rosebud';
  const task = newTask({
    payload: bytes(`${secret} `.repeat(2000)),
    context: { headers: { who: secret } },
    orderingKey: secret,
  });
  await store.insert([task, newTask()]);
  const from = { kind: 'due' as const, lanes: [{ lane: task.lane, limit: 1 }] };
  await store.claim({ from, lease: 1, leaseMs: 1000, maxBytes: 1 });
  const failure = { class: 'technical' as const, message: `${secret} is not known` };
  const record = { attempt: 1, failure, durationMs: 1, answer: secret };
  const item = itemOf('PERMANENT', failure, task.lane);
  const outbox = outboxMessage(secret);
  await store.settle([{ id: 1, lease: 1, to: 'failed', attempt: 1, item, record, outbox }]);
  await store.act([1], { type: 'edit', edit: { payload: bytes(secret), headers: { a: secret } } });
  await store.append([rawItem('other')]);
  expect(contentOf(file).split(secret).length).toBeGreaterThan(2000);
  expect(await store.erase(task.messageId, 'ann')).toBe('erased');
  await store.close();
  expect(contentOf(file)).not.toContain(secret);
  expect(contentOf(file)).toContain('other');
  rmSync(folder, { recursive: true, force: true });
});
