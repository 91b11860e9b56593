import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from 'redrive/internal';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit-suite.ts';
import { auditSink, AuditTable } from './audit.ts';
import { connect } from './connection.ts';
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
    prepare: (db) => ({ audit: new AuditTable(db) }),
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
    sink: auditSink(database, systemClock),
    rows,
    written,
    close: () => database.close(),
  };
}

describe('the audit table in SQLite', () => {
  for (const { name, run: assertCase } of auditSuite({ open, pruning: true })) {
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
});
