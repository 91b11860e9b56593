import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ClaimFrom, Settlement } from '../../ports/schedule.ts';
import { unreachable } from '../../testing/fixtures.ts';
import { Params } from './batch.ts';
import { abandonText, claimText, peekText } from './claim-text.ts';
import { migratePostgres } from './index.ts';
import { namesIn } from './names.ts';
import { renewText, settleText } from './settle-text.ts';

/**
 * A wrong plan is right in every answer and a hundred times slower, and shows only in a table that is large or was not
 * analysed yet. So the plans themselves are looked at.
 */
describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  const names = namesIn('public');

  beforeAll(async () => {
    database = await freshDatabase();
    await migratePostgres(database.url);
    admin = new pg.Client(database.url);
    await admin.connect();
    await admin.query(`ALTER TABLE retry_queue SET (autovacuum_enabled = off)`);
  });

  /** A third of them waits, a third is in delivery, a third is over. */
  async function fill(rows: number): Promise<void> {
    await admin.query('TRUNCATE retry_queue RESTART IDENTITY');
    await admin.query(`DELETE FROM pg_statistic WHERE starelid = 'retry_queue'::regclass`);
    await admin.query(`INSERT INTO retry_queue (message_id, original_payload, original_queue, lane, next_retry_at,
        visible_at, status, claims, lease, finished_at, expires_at)
      SELECT gen_random_uuid(), repeat('x', 200)::bytea, 'orders', 'lane ' || i % 5, now(), now() - interval '1 min',
        CASE i % 3 WHEN 0 THEN 'done' ELSE 'pending' END, CASE i % 3 WHEN 1 THEN 1 ELSE 0 END,
        CASE i % 3 WHEN 1 THEN 7 END, CASE i % 3 WHEN 0 THEN now() END, now() + interval '1 h'
      FROM generate_series(1, ${rows}) AS i`);
  }

  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  async function planOf(build: (params: Params) => string): Promise<string> {
    const params = new Params();
    const text = build(params);
    await admin.query('BEGIN');
    try {
      const { rows } = await admin.query<{ 'QUERY PLAN': string }>({
        text: `EXPLAIN ${text}`,
        values: params.values,
      });
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    } finally {
      await admin.query('ROLLBACK');
    }
  }

  const request = (from: ClaimFrom) => ({ from, lease: 8, leaseMs: 1000, maxBytes: 1e9 });
  const due: ClaimFrom = { kind: 'due', lanes: [{ lane: 'lane 1', limit: 1000 }] };
  const lost: ClaimFrom = { kind: 'lost', lanes: ['lane 1', 'lane 2'], limit: 10 };
  const leases = Array.from({ length: 1000 }, (_, i) => ({ id: 1 + 3 * i, lease: 7 }));
  const places = leases.map((_, i) => i);
  const done = leases.map((lease): Settlement => ({ ...lease, to: 'done' }));
  const failing = leases.map((lease): Settlement => ({
    ...lease,
    to: 'failed',
    attempt: 1,
    item: { reason: 'EXHAUSTED', failure: unreachable, fingerprint: 'f' },
    record: { attempt: 1, failure: unreachable, durationMs: 1 },
  }));
  const statements: Record<string, (params: Params) => string> = {
    'claim of what is due': (params) => claimText(names, request(due), 'all', params),
    'claim by bytes': (params) => claimText(names, request(due), 'fitting', params),
    'claim of what was lost': (params) => claimText(names, request(lost), 'fitting', params),
    'claim of what has expired': (params) =>
      claimText(names, request({ kind: 'expired', limit: 10 }), 'fitting', params),
    'look at what is next': (params) => peekText(names, request(due), params),
    'look at what was lost': (params) => peekText(names, request(lost), params),
    'settlement as done': (params) => settleText(names, done, places, 'wait', params),
    'settlement as failed': (params) => settleText(names, failing, places, 'wait', params),
    'settlement around locks': (params) => settleText(names, done, places, 'pass over', params),
    renewal: (params) => renewText(names, leases, 1000, params),
  };

  test.each([600, 6000, 40_000])(
    'never reads the whole table of %i rows, analysed or not',
    async (rows) => {
      await fill(rows);
      for (const state of ['new', 'analysed']) {
        if (state === 'analysed') await admin.query('ANALYZE retry_queue');
        for (const [name, build] of Object.entries(statements)) {
          const plan = await planOf(build);
          expect(plan, `${name}, ${state}`).toContain('Index');
          expect(plan, `${name}, ${state}`).not.toMatch(/Seq Scan on retry_queue/);
        }
      }
    },
  );

  test('finds by its token what a claim has leased among what is in delivery', async () => {
    await fill(40_000);
    const plan = await planOf((params) =>
      abandonText(names, 'alone').replaceAll('$1', `${params.add(7)}::bigint`),
    );
    expect(plan).toContain('retry_queue_claimed');
    expect(plan).not.toMatch(/Seq Scan on retry_queue/);
  });
});
