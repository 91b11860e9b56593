import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ItemFilter } from '../../ports/inbox.ts';
import type { ClaimFrom, Settlement } from '../../ports/schedule.ts';
import { unreachable } from '../../testing/fixtures.ts';
import { Params } from './batch.ts';
import { censusText } from './inbox/census-text.ts';
import { abandonText, claimText, peekText } from './schedule/claim-text.ts';
import { migratePostgres } from './index.ts';
import { namesIn } from './names.ts';
import { linesText, lockText, plainText } from './inbox/act-text.ts';
import { MAX_SCANNED, pageText } from './inbox/item-query.ts';
import { freezeText, membersText, tallyText } from './inbox/members-text.ts';
import {
  advanceText,
  dropLinesText,
  lockLinesText,
  sweepText,
  takeLinesText,
} from './schedule/lines-text.ts';
import { renewText, settleText } from './schedule/settle-text.ts';

const itemTables = ['redrive_inbox', 'redrive_open', 'redrive_closed'];

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
    for (const table of ['retry_queue', ...itemTables, 'redrive_lines', 'redrive_members']) {
      await admin.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    }
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

  test('counts what is due by its index alone, analysed or not', async () => {
    await fill(40_000);
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('VACUUM (ANALYZE) retry_queue');
      const plan = await planOf(() => censusText(names));
      expect(plan, state).toMatch(/Index Only Scan using retry_queue_due/);
      expect(plan, state).toMatch(/Index Scan (using|on) retry_queue_claimed/);
      expect(plan, state).not.toMatch(/Seq Scan on retry_queue/);
    }
  });

  /** Half of a table is one line, of which the first half is over; nearly all items are closed, the open ones are the oldest. */
  async function fillLines(rows: number): Promise<void> {
    await admin.query(
      `TRUNCATE retry_queue, ${itemTables.join(', ')}, redrive_lines RESTART IDENTITY`,
    );
    await admin.query(`INSERT INTO retry_queue (message_id, original_payload, original_queue, lane, next_retry_at,
        visible_at, status, finished_at, ordering_key, blocked)
      SELECT gen_random_uuid(), repeat('x', 200)::bytea, 'orders', 'lane', now(), now(),
        CASE WHEN i < ${rows / 2} THEN 'done' ELSE 'pending' END, CASE WHEN i < ${rows / 2} THEN now() END,
        CASE WHEN i % 2 = 0 THEN 'large' ELSE 'k' || i % 1000 END, i >= ${rows / 2}
      FROM generate_series(1, ${rows}) AS i`);
    await admin.query(
      `INSERT INTO redrive_lines SELECT DISTINCT lane, ordering_key, 1, now() FROM retry_queue`,
    );
    await admin.query(`INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, reason, fingerprint,
        attempt, max_attempts, generation, first_seen, last_seen, failure)
      SELECT i, gen_random_uuid(), 'queue', 'orders', 'lane ' || i % 2,
        'EXHAUSTED', 'f' || i % 3, 1, 4, 0, now(), now(), '{"class":"technical"}'
      FROM generate_series(1, ${rows}) AS i`);
    await admin.query(`INSERT INTO redrive_open (id, task_id, generation, edited, reason, lane, fingerprint)
      SELECT id, task_id, generation, false, reason, lane, fingerprint FROM redrive_inbox WHERE id < 4000`);
    await admin.query(`INSERT INTO redrive_closed (id, state, closed_at)
      SELECT id, 'replayed', now() FROM redrive_inbox WHERE id >= 4000`);
  }

  const ids = Array.from({ length: 1000 }, (_, i) => i + 1);
  const lines = ['large', ...ids.slice(0, 999).map((i) => `k${i}`)].map((key) => ({
    lane: 'lane',
    key,
  }));
  const page =
    (filter: ItemFilter, limit = 50) =>
    (params: Params) =>
      `WITH ${pageText(names, filter, { limit }, params, MAX_SCANNED)} SELECT count(*) FROM found`;
  const ofLines: Record<string, (params: Params) => string> = {
    'the lock of lines': (params) => lockLinesText(names, lines, params),
    'the lock of free lines': (params) => takeLinesText(names, lines, params),
    'the turn in lines': (params) => advanceText(names, lines, params),
    'the turn in a large line': (params) => advanceText(names, lines.slice(0, 1), params),
    'the deletion of lines': (params) => dropLinesText(names, lines, params),
    'the look at lines': (params) =>
      sweepText(names)
        .replace('$1::text', `${params.add('')}::text`)
        .replace('$2::text', `${params.add('')}::text`)
        .replace('$3', params.add(100)),
    'the lines of items': (params) => linesText(names, ids, 'all', params),
    'the lines of open items': (params) => linesText(names, ids, 'open', params),
    'a replay': (params) => plainText(names, ids, { type: 'replay', job: 1 }, params),
    'a lock of items': (params) => lockText(names, ids, params),
    'a discard': (params) => plainText(names, ids, { type: 'discard' }, params),
    'all items': page({}),
    'open items': page({ state: 'open' }),
    'items of a lane': page({ lane: 'lane 1' }),
    'open items of a lane': page({ lane: 'lane 1', state: 'open' }),
    'open items of a cause': page({ fingerprint: 'f1', state: 'open' }),
    'items of a message': page({ messageId: '00000000-0000-4000-8000-00000000c0de' }),
    'items by their ids': page({ ids: [1, 2, 3] }),
    'a thousand of many': page({ lane: 'lane 1', state: 'replayed' }, 1000),
    'a thousand of a cause': page({ fingerprint: 'f1' }, 1000),
    'items of a state that none has': page({ state: 'discarded' }),
    'the members of a page': (params) =>
      freezeText(names, { state: 'open' }, { before: 4000, limit: 50 }, 9, params),
    'what became of a job': (params) =>
      tallyText(names).replaceAll('$1', params.add(1)).replaceAll('$2', params.add(5000)),
    'a search in many': page({ state: 'replayed', text: 'nothing' }),
  };

  test('reads the members of a job by their index, in its order, analysed or not', async () => {
    await admin.query(`INSERT INTO redrive_members (job, item_id)
      SELECT 1 + i % 2, i FROM generate_series(1, 40000) AS i`);
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('ANALYZE redrive_members');
      for (const result of [undefined, 'done'] as const) {
        const query = { job: 1, after: 10, limit: 5000, ...(result ? { result } : {}) };
        const plan = await planOf((params) => membersText(names, query, params));
        expect(plan, state).toContain('Index Scan using redrive_members_pkey');
        expect(plan, state).not.toContain('Sort');
      }
    }
  });

  test('finds a page among the members of its job by its bounds, and a state by its own index', async () => {
    await fillLines(40_000);
    await admin.query(`INSERT INTO redrive_members (job, item_id)
      SELECT 9, i FROM generate_series(5000, 40000) AS i`);
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('ANALYZE');
      expect(await planOf(ofLines['the members of a page']!), state).toMatch(
        /Index Cond: \(\(job = .* AND \(item_id >= .*\) AND \(item_id <= /,
      );
      const rare = await planOf(ofLines['items of a state that none has']!);
      expect(rare, state).toContain('redrive_closed_discarded');
    }
  });

  test('goes through lines and items by their indexes, analysed or not', async () => {
    await fillLines(40_000);
    for (const state of ['new', 'analysed']) {
      if (state === 'analysed') await admin.query('ANALYZE');
      for (const [name, build] of Object.entries(ofLines)) {
        const plan = await planOf(build);
        expect(plan, `${name}, ${state}`).not.toMatch(
          /Seq Scan on (retry_queue|redrive_(inbox|open|closed))/,
        );
        expect(plan, `${name}, ${state}`).not.toMatch(
          /Join Filter|Bitmap Index Scan on redrive_\w+_(state|lane|fingerprint)/,
        );
      }
      // The first of those who wait, and all who have the turn or had it; to look, also the first of those. No line is sorted.
      const scans = {
        'the turn in lines': 2,
        'the turn in a large line': 2,
        'the look at lines': 3,
      };
      for (const [name, count] of Object.entries(scans)) {
        const plan = await planOf(ofLines[name]!);
        expect(plan.match(/Scan using retry_queue_place/g), `${name}, ${state}`).toHaveLength(
          count,
        );
        expect(plan, `${name}, ${state}`).not.toMatch(/Sort Key: q\w*\.(lane|id)/);
      }
      const look = await planOf(ofLines['the lines of open items']!);
      expect(look, state).toContain('redrive_open_ordered');
      for (const name of ['open items', 'open items of a lane', 'open items of a cause']) {
        const plan = await planOf(ofLines[name]!);
        expect(plan, `${name}, ${state}`).toMatch(/redrive_open_(pkey|lane|fingerprint)/);
        expect(plan, `${name}, ${state}`).not.toContain('redrive_inbox');
      }
    }
  });
});
