import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from 'redrive/internal';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { auditSink, AuditTable } from './audit.ts';
import { connect, connectReader } from './connection.ts';
import { Database } from './database.ts';

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-audit-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function open() {
  const path = join(folder, `${files++}.db`);
  const database = new Database({
    path,
    clock: systemClock,
    random: Math.random,
    busyLimitMs: 1000,
    connect: () => connect({ path, name: path }, undefined),
    connectReader: () => connectReader({ path, name: path }),
    prepare: (db) => ({ audit: new AuditTable(db) }),
    report: () => expect.fail('the file was lost'),
  });
  await database.open();
  const rows = (columns: string) => {
    const db = new DatabaseSync(path);
    try {
      return db.prepare(`SELECT ${columns} FROM redrive_audit ORDER BY id`).all();
    } finally {
      db.close();
    }
  };
  const written = async () =>
    rows('event').map(({ event }) => JSON.parse(event as string) as AuditEvent);
  return {
    path,
    sink: auditSink(database, systemClock),
    rows,
    written,
    close: () => database.close(),
  };
}

describe('the audit table in SQLite', () => {
  const setup = { open, pruning: true, reading: true, erasing: true };
  for (const { name, run: assertCase } of auditSuite(setup)) {
    test(`${name}`, () => assertCase());
  }

  test('has instance and number as columns, empty for a strict event', async () => {
    const { sink, rows, close } = await open();
    const event = { event_type: 'a', timestamp: '2025-01-01T00:00:00.000Z' };
    await sink.write([{ ...event, redrive: { instance: 'one', run: 1, sequence: 7 } }, event]);
    expect(rows('event_type, timestamp, instance, sequence')).toEqual([
      { ...event, instance: 'one', sequence: 7 },
      { ...event, instance: '', sequence: 0 },
    ]);
    await close();
  });

  /** One of a kind at the very beginning, every event a second after the one before. */
  function fill(path: string, count: number): void {
    const db = new DatabaseSync(path);
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO redrive_audit (event_type, timestamp, instance, sequence, event)
      SELECT iif(i = 3, 'rare', 'common'), strftime('%Y-%m-%dT%H:%M:%fZ', i, 'unixepoch'), '', 0,
        json_object('message_id', iif(i = 3, 'x', 'y')) FROM n`);
    db.close();
  }

  test.each([{ type: 'rare' }, { toMs: 4000, fromMs: 3000 }])(
    'looks at a bounded number of events for a page, and says where to go on: %j',
    async (filter) => {
      const { path, sink, close } = await open();
      fill(path, 120_000);
      const first = await sink.read({ ...filter, limit: 10 });
      expect(first).toEqual({ events: [], next: 120_001 - 13 * 4000 });
      const second = await sink.read({ ...filter, limit: 10, before: first.next! });
      expect(second).toEqual({ events: [], next: 120_001 - 26 * 4000 });
      const third = await sink.read({ ...filter, limit: 10, before: second.next! });
      expect(third.events.map(({ id }) => id)).toEqual([3]);
      expect(third.next).toBeUndefined();
      await close();
    },
  );

  test('ends a search where it met nothing but what is older', async () => {
    const { path, sink, close } = await open();
    fill(path, 120_000);
    expect(await sink.read({ type: 'rare', fromMs: 120_001_000, limit: 10 })).toEqual({
      events: [],
    });
    const { next } = await sink.read({ type: 'rare', fromMs: 120_000_000, limit: 10 });
    expect(next).toBe(120_001 - 13 * 4000);
    await close();
  });

  test('lets the event loop run while it looks far', async () => {
    const { path, sink, close } = await open();
    fill(path, 60_000);
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await sink.read({ type: 'rare', limit: 10 });
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(13);
    await close();
  });

  test('finds the events of a message by their index, however far they are', async () => {
    const { path, sink, close } = await open();
    fill(path, 120_000);
    const page = await sink.read({ messageId: 'x', limit: 10 });
    expect(page.events.map(({ id }) => id)).toEqual([3]);
    expect(page.next).toBeUndefined();
    await close();
  });
});
