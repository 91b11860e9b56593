import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { auditText } from './audit-text.ts';
import { Params } from './batch.ts';
import { migratePostgres, postgres } from './index.ts';
import { namesIn } from './names.ts';

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
    await admin.query('DELETE FROM redrive_audit; DELETE FROM redrive_erased');
    const store = postgres({ url: database.url, maxConnections: 2 });
    await store.open();
    return { sink: store.audit!, written, close: () => store.close() };
  };
  const written = async () => {
    const { rows } = await admin.query('SELECT event FROM redrive_audit ORDER BY id');
    return rows.map(({ event }: { event: AuditEvent }) => event);
  };
  const setup = { open, pruning: true, reading: true, erasing: true };
  for (const { name, run: assertCase } of auditSuite(setup)) {
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

  /** One of a kind at the very beginning, every event a second after the one before. */
  async function fill(count: number): Promise<void> {
    await admin.query('TRUNCATE redrive_audit RESTART IDENTITY');
    await admin.query(`INSERT INTO redrive_audit (instance, sequence, event_type, at, event)
      SELECT '', 0, CASE i WHEN 3 THEN 'rare' ELSE 'common' END, to_timestamp(i),
        ('{"message_id":"' || CASE i WHEN 3 THEN 'x' ELSE 'y' END || '"}')::json
      FROM generate_series(1, ${count}) AS i`);
  }

  test.each([{ type: 'rare' }, { toMs: 4000, fromMs: 3000 }])(
    'looks at a bounded number of events for a page, and says where to go on: %j',
    async (filter) => {
      const { sink, close } = await open();
      await fill(120_000);
      const first = await sink.read!({ ...filter, limit: 10 });
      expect(first).toEqual({ events: [], next: 70_001 });
      const second = await sink.read!({ ...filter, limit: 10, before: 70_001 });
      expect(second).toEqual({ events: [], next: 20_001 });
      const third = await sink.read!({ ...filter, limit: 10, before: 20_001 });
      expect(third.events.map(({ id }) => id)).toEqual([3]);
      expect(third.next).toBeUndefined();
      await close();
    },
  );

  test('ends a search where it met nothing but what is older', async () => {
    const { sink, close } = await open();
    await fill(120_000);
    expect(await sink.read!({ type: 'rare', fromMs: 120_001_000, limit: 10 })).toEqual({
      events: [],
    });
    const { next } = await sink.read!({ type: 'rare', fromMs: 120_000_000, limit: 10 });
    expect(next).toBe(70_001);
    await close();
  });

  test('walks down the ids, never by the times, analysed or not', async () => {
    await fill(60_000);
    const filters = [{}, { type: 'rare' }, { fromMs: 59_000_000 }, { fromMs: 3000, toMs: 4000 }];
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('ANALYZE redrive_audit');
      for (const filter of filters) {
        const params = new Params();
        const page = { before: undefined, most: 51 };
        const text = `EXPLAIN ${auditText(namesIn('public'), filter, page, params)}`;
        const { rows } = await admin.query<{ 'QUERY PLAN': string }>(text, params.values);
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
        expect(plan, `${JSON.stringify(filter)}, ${state}`).toContain('redrive_audit_pkey');
        expect(plan, `${JSON.stringify(filter)}, ${state}`).not.toMatch(
          /Seq Scan|redrive_audit_at/,
        );
      }
    }
  });

  test('finds the events of a message by their index, old or new, analysed or not', async () => {
    const { sink, close } = await open();
    // Else it may look at the table while it is empty, and the planner goes by that.
    await admin.query('ALTER TABLE redrive_audit SET (autovacuum_enabled = false)');
    await fill(60_000);
    const page = await sink.read!({ messageId: 'x', limit: 10 });
    expect(page.events.map(({ id }) => id)).toEqual([3]);
    expect(page.next).toBeUndefined();
    await close();
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('ANALYZE redrive_audit');
      const params = new Params();
      const text = auditText(
        namesIn('public'),
        { messageId: 'x' },
        { before: undefined, most: 51 },
        params,
      );
      const { rows } = await admin.query<{ 'QUERY PLAN': string }>(
        `EXPLAIN ${text}`,
        params.values,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan, state).toContain('redrive_audit_message');
      expect(plan, state).not.toMatch(/Seq Scan/);
    }
  });
});
