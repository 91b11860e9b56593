import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit-suite.ts';
import { migratePostgres, postgres } from './index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    admin = new pg.Pool({ connectionString: database.url });
    await migratePostgres(database.url);
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  const open = async () => {
    await admin.query('DELETE FROM redrive_audit');
    const store = postgres({ url: database.url, maxConnections: 2 });
    await store.open();
    return { sink: store.audit!, written, close: () => store.close() };
  };
  const written = async () => {
    const { rows } = await admin.query('SELECT event FROM redrive_audit ORDER BY id');
    return rows.map(({ event }: { event: AuditEvent }) => event);
  };
  for (const { name, run: assertCase } of auditSuite({ open, pruning: true })) {
    test(`${name}`, () => assertCase());
  }

  test('instance and number are columns, empty for a strict event', async () => {
    const { sink, close } = await open();
    const event = { event_type: 'a', timestamp: '2025-01-01T00:00:00.000Z' };
    await sink.write([{ ...event, redrive: { instance: 'one', run: 1, sequence: 7 } }, event]);
    const { rows } = await admin.query(
      'SELECT event_type, at, instance, sequence FROM redrive_audit ORDER BY id',
    );
    const at = new Date(event.timestamp);
    expect(rows).toEqual([
      { event_type: 'a', at, instance: 'one', sequence: '7' },
      { event_type: 'a', at, instance: '', sequence: '0' },
    ]);
    await close();
  });
});
