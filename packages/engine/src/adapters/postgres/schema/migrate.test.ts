import { type Database, describePostgres, everyPostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../../ports/store.ts';
import { claimDue, newTask, put, row } from '../../../testing/fixtures.ts';
import { migratePostgres, postgres, type PostgresOptions } from '../index.ts';

/** The document's own words. */
const documentTable = `
  CREATE TABLE retry_queue (
    id BIGSERIAL PRIMARY KEY,
    message_id UUID UNIQUE NOT NULL,
    original_payload BYTEA NOT NULL,
    original_queue VARCHAR(255) NOT NULL,
    error_reason TEXT,
    retry_count INT NOT NULL DEFAULT 0,
    max_retries INT NOT NULL DEFAULT 3,
    next_retry_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP DEFAULT NOW(),
    status VARCHAR(50) DEFAULT 'pending' -- pending, retried, failed
  );
  CREATE INDEX idx_retry_next_retry ON retry_queue(next_retry_at, status);`;
const documentInsert = `
  INSERT INTO retry_queue
    (message_id, original_payload, original_queue, error_reason, retry_count, max_retries, next_retry_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    stores = [];
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  async function open(options: PostgresOptions = {}): Promise<Store> {
    const store = postgres({ url: database.url, maxConnections: 2, ...options });
    stores.push(store);
    await store.open();
    return store;
  }

  async function value(text: string): Promise<unknown> {
    const { rows } = await admin.query({ text, rowMode: 'array' });
    return (rows as unknown[][])[0]?.[0];
  }

  function asDocument(
    fields: { queue?: string; count?: number; at?: string; error?: string } = {},
  ) {
    const { queue = 'orders', count = 0, at = '2020-01-01 00:00:00', error = 'timeout' } = fields;
    return admin.query(documentInsert, [
      crypto.randomUUID(),
      Buffer.from('x'),
      queue,
      error,
      count,
      3,
      at,
    ]);
  }

  test('makes its tables in an empty database, in a schema of one’s choice too', async () => {
    await put(await open());
    await put(await open({ schema: 'my "own" schema' }));
    expect(await value('SELECT count(*) FROM public.retry_queue')).toBe('1');
    expect(await value('SELECT count(*) FROM "my ""own"" schema".retry_queue')).toBe('1');
  });

  test('opens again what it has made, and keeps what is in it', async () => {
    const { id } = await put(await open());
    expect((await row(await open(), id)).status).toBe('pending');
  });

  test('lets three processes start at once', async () => {
    const [one, two, three] = await Promise.all([open(), open(), open()]);
    const { id } = await put(one);
    await expect(two.get({ id })).resolves.toBeDefined();
    await expect(three.get({ id })).resolves.toBeDefined();
    expect(await value('SELECT count(*) FROM redrive_schema')).toBe('1');
  });

  test('takes the document’s own INSERT as a failure to be retried', async () => {
    const store = await open();
    await asDocument();
    const { tasks } = await claimDue(store, 'queue:orders');
    expect(tasks).toMatchObject([
      {
        destination: { kind: 'queue', address: 'orders' },
        attempt: 1,
        maxAttempts: 4,
        failure: { class: 'transient', message: 'timeout' },
      },
    ]);
  });

  test('never claims the document’s own rows early, to the microsecond', async () => {
    const store = await open();
    await asDocument({ at: `${new Date(Date.now() + 3_600_000).toISOString().slice(0, -1)}456Z` });
    const { tasks, nextInMs } = await claimDue(store, 'queue:orders');
    expect(tasks).toEqual([]);
    expect(nextInMs[0]).toBeGreaterThan(3_500_000);
    expect(await value('SELECT visible_at >= next_retry_at FROM retry_queue')).toBe(true);
  });

  test('adopts a table made from the document, with its rows', async () => {
    await admin.query(`SET TimeZone = 'Asia/Tokyo'; ${documentTable}`);
    await asDocument({ at: '2020-01-01 12:00:00.5' });
    await asDocument({ at: '2990-01-01 00:00:00', count: 2 });
    await asDocument({ error: 'exhausted order 17' });
    await admin.query(
      `UPDATE retry_queue SET status = 'failed' WHERE error_reason LIKE 'exhausted%'`,
    );
    await asDocument({ queue: 'invoices' });
    await admin.query(
      `UPDATE retry_queue SET status = 'retried' WHERE original_queue = 'invoices'`,
    );
    await asDocument({ queue: 'no status' });
    await admin.query(`UPDATE retry_queue SET status = NULL WHERE original_queue = 'no status'`);

    const store = await open();
    const rows = (await store.list({ limit: 10 })).toReversed();
    expect(rows.map(({ status, attempt, lane }) => ({ status, attempt, lane }))).toEqual([
      { status: 'pending', attempt: 1, lane: 'queue:orders' },
      { status: 'pending', attempt: 3, lane: 'queue:orders' },
      { status: 'failed', attempt: 1, lane: 'queue:orders' },
      { status: 'retried', attempt: 1, lane: 'queue:invoices' },
      { status: 'pending', attempt: 1, lane: 'queue:no status' },
    ]);
    // Times without a zone are UTC, whatever the session that adopts thinks.
    expect(rows[0]!.dueAtMs).toBe(Date.UTC(2020, 0, 1, 12, 0, 0, 500));
    expect(rows[2]!.finishedAtMs).toBeDefined();
    expect((await store.items({ limit: 10 })).items).toMatchObject([
      {
        taskId: rows[2]!.id,
        reason: 'EXHAUSTED',
        state: 'open',
        failure: { message: 'exhausted order 17' },
        attempt: 1,
        maxAttempts: 4,
      },
    ]);
    expect((await claimDue(store, 'queue:orders')).tasks.map(({ id }) => id)).toEqual([
      rows[0]!.id,
    ]);
  });

  test('leaves an adopted table as it would have made it', async () => {
    const columns = (schema: string) =>
      admin.query(
        `SELECT attname, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation::text
         FROM pg_attribute WHERE attrelid = '${schema}.retry_queue'::regclass AND attnum > 0 ORDER BY attname`,
      );
    const indexes = (schema: string) =>
      admin.query(
        `SELECT replace(indexdef, '${schema}.', '') AS text FROM pg_indexes
         WHERE schemaname = '${schema}' AND tablename = 'retry_queue' ORDER BY indexname`,
      );
    await admin.query(documentTable);
    await open();
    await open({ schema: 'fresh' });
    expect((await columns('public')).rows).toEqual((await columns('fresh')).rows);
    expect((await indexes('public')).rows).toEqual((await indexes('fresh')).rows);
  });

  test('takes one message for two queues in an adopted table', async () => {
    await admin.query(documentTable);
    const store = await open();
    const task = newTask();
    const other = { ...task, destination: { kind: 'queue', address: 'invoices' } };
    expect(await store.insert([task, other])).not.toContain(undefined);
  });

  test('finishes an adoption that was interrupted', async () => {
    await admin.query(documentTable);
    await asDocument();
    await open();
    // As if it had stopped before the rows were filled and the last indexes were built, one of them half-way.
    await admin.query(`UPDATE redrive_schema SET version = 0, oldest = 0;
      ALTER TABLE retry_queue ALTER lane DROP NOT NULL, ALTER visible_at DROP NOT NULL;
      UPDATE retry_queue SET lane = NULL, visible_at = NULL;
      DROP INDEX retry_queue_due;
      UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'retry_queue_finished'::regclass`);
    const store = await open();
    expect((await claimDue(store, 'queue:orders')).tasks).toHaveLength(1);
    expect(await value('SELECT version FROM redrive_schema')).toBe(7);
    expect(
      await value(
        `SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'retry_queue'::regclass`,
      ),
    ).toBe(true);
  });

  test.each([
    ['another column', `${documentTable} ALTER TABLE retry_queue ADD priority int`],
    ['a column less', `${documentTable} ALTER TABLE retry_queue DROP error_reason`],
    ['another type', `${documentTable} ALTER TABLE retry_queue ALTER message_id TYPE text`],
    [
      'another status',
      `${documentTable} ALTER TABLE retry_queue ALTER status SET DEFAULT 'new'; INSERT INTO retry_queue (message_id, original_payload, original_queue, next_retry_at) VALUES ('${crypto.randomUUID()}', '', 'q', now())`,
    ],
    ['no key', `${documentTable} ALTER TABLE retry_queue DROP CONSTRAINT retry_queue_pkey`],
    ['no default for its id', `${documentTable} ALTER TABLE retry_queue ALTER id DROP DEFAULT`],
    ['nothing of a table', `CREATE VIEW retry_queue AS SELECT 1 AS id`],
  ])('refuses a table of that name with %s, and leaves it alone', async (_, sql) => {
    await admin.query(sql);
    await expect(open()).rejects.toMatchObject({ code: 'TABLE_NOT_OURS' });
    expect(await value(`SELECT to_regclass('redrive_schema')`)).toBeNull();
  });

  test('refuses tables that need a newer program, and names both', async () => {
    await open();
    await admin.query('UPDATE redrive_schema SET version = 9, oldest = 8');
    await expect(open()).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
      message: expect.stringMatching(/schema 9.* 8 or later; this one knows 7/),
    });
  });

  test('uses newer tables that say it may', async () => {
    await open();
    await admin.query('UPDATE redrive_schema SET version = 8, oldest = 2');
    await put(await open());
    expect(await value('SELECT version FROM redrive_schema')).toBe(8);
  });

  test('only checks where it is told to', async () => {
    await expect(open({ migrate: 'check' })).rejects.toMatchObject({ code: 'SCHEMA_MISSING' });
    expect(await value(`SELECT to_regclass('retry_queue')`)).toBeNull();
    await migratePostgres(database.url);
    await put(await open({ migrate: 'check' }));
  });

  test('works by a role that may only read and write, once somebody has migrated', async () => {
    const role = `worker_${crypto.randomUUID().slice(0, 8)}`;
    await admin.query(
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
    );
    const url = new URL(database.url);
    url.username = role;
    url.password = 'secret';
    try {
      await expect(open({ url: url.href })).rejects.toMatchObject({ code: 'SCHEMA_MISSING' });
      await migratePostgres(database.url);
      await admin.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
      const store = await open({ url: url.href });
      const { lane } = await put(store);
      const { tasks } = await claimDue(store, lane);
      const [{ id, lease = 0 } = { id: 0 }] = tasks;
      expect(await store.settle([{ id, lease, to: 'done' }])).toEqual(['settled']);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  test('says so when another process does not come to an end with its migration', async () => {
    await admin.query(`BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('redrive:public', 0))`);
    await expect(open({ migrationTimeoutMs: 300 })).rejects.toMatchObject({
      code: 'MIGRATION_LOCKED',
    });
    await admin.query('ROLLBACK');
    await open();
  });

  test('does not wait for ever for a table that somebody has locked', async () => {
    await admin.query(documentTable);
    await admin.query('BEGIN; LOCK TABLE retry_queue IN ACCESS SHARE MODE');
    await expect(open({ migrationTimeoutMs: 100 })).rejects.toMatchObject({
      code: 'MIGRATION_LOCKED',
    });
    await admin.query('ROLLBACK');
    await open();
  });

  test('refuses a database that cannot hold every text', async () => {
    const name = `latin_${crypto.randomUUID().slice(0, 8)}`;
    await admin.query(
      `CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    );
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    try {
      await expect(open({ url: url.href })).rejects.toThrow(/UTF8/);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
}, everyPostgres);
