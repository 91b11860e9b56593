import { startPgBouncer } from '@redrive/services';
import {
  type Database,
  describePostgres,
  everyPostgres,
  describeService,
  freshDatabase,
} from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isEngineError } from '../../../errors.ts';
import { examine, migratePostgres, postgres } from '../index.ts';

const soon = { timeout: 20_000, interval: 50 };

describePostgres(({ version, freshDatabase: fresh }) => {
  let database: Database;
  let admin: pg.Client;

  beforeEach(async () => {
    database = await fresh();
    admin = new pg.Client(database.url);
    await admin.connect();
  });
  afterEach(async () => {
    await admin.end();
    await database.drop();
  });

  test('tells what it found', async () => {
    await migratePostgres({ url: database.url, schema: 'own' });
    const findings = await examine({ url: database.url, schema: 'own' });
    expect(findings).toMatchObject({
      server: { encoding: 'UTF8', isStandby: false },
      schema: { name: 'own', version: 7, oldest: 4, known: 7 },
      seesSessions: true,
      pooler: { isBetween: false, hasWayAround: false },
      settings: { fsync: 'on', synchronous_commit: 'on', statement_timeout: '0', autovacuum: 'on' },
    });
    const { server, clock, tables, connections } = findings;
    expect(Math.floor(server.number / 10_000)).toBe(version);
    expect(server.version).toMatch(new RegExp(`^${version}`));
    // It is this machine's clock.
    expect(Math.abs(clock.aheadMs)).toBeLessThanOrEqual(clock.uncertaintyMs + 1);
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['redrive_audit', 'redrive_inbox', 'retry_queue']),
    );
    // Keys have a row that says which version of their table it is.
    for (const { name, rows, tableBytes } of tables) {
      const most = name.startsWith('redrive_idempotency') ? 1 : 0;
      expect([rows <= most, tableBytes >= 0], name).toEqual([true, true]);
    }
    expect(connections.used).toBeGreaterThanOrEqual(2);
    expect(connections.max - connections.reserved).toBeGreaterThan(connections.used);
  });

  test('says that there are no tables', async () => {
    const { schema, tables, indexes } = await examine(database.url);
    expect(schema).toEqual({ name: 'public', known: 7 });
    expect([tables, indexes]).toEqual([[], []]);
  });

  test('changes nothing, and needs no right to', async () => {
    await migratePostgres(database.url);
    const role = `reader_${Date.now()}_${version}`;
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; GRANT SELECT ON redrive_schema TO ${role};
      ALTER ROLE ${role} SET default_transaction_read_only = on; ALTER ROLE ${role} SET statement_timeout = '7s'`);
    try {
      const url = new URL(database.url);
      Object.assign(url, { username: role, password: 'x' });
      const { schema, seesSessions, settings, tables } = await examine(url.href);
      expect(schema.version).toBe(7);
      expect(seesSessions).toBe(false);
      expect(settings).toMatchObject({
        default_transaction_read_only: 'on',
        statement_timeout: '7s',
      });
      expect(tables.length).toBeGreaterThan(5);
    } finally {
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  test('tells who holds back vacuum', async () => {
    await migratePostgres(database.url);
    const forgetful = new pg.Client({
      connectionString: database.url,
      application_name: 'forgetful',
    });
    await forgetful.connect();
    await forgetful.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const { rows } = await forgetful.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    for (let i = 0; i < 3; i++) await admin.query('SELECT pg_current_xact_id()');
    const { holders } = await examine(database.url);
    const [holder] = holders.filter(({ name }) => name === 'forgetful');
    expect(holder).toMatchObject({
      kind: 'session',
      pid: rows[0]!.pid,
      state: 'idle in transaction',
    });
    expect(holder!.transactions).toBeGreaterThanOrEqual(3);
    expect(holder!.ageMs).toBeGreaterThanOrEqual(0);
    await forgetful.end();
    await vi.waitFor(async () => {
      const { holders: after } = await examine(database.url);
      expect(after.filter(({ name }) => name === 'forgetful')).toEqual([]);
    }, soon);
  });

  test('tells dead rows, vacuum and what an index would need', async () => {
    await migratePostgres(database.url);
    await admin.query('ALTER TABLE retry_queue SET (autovacuum_enabled = off)');
    await admin.query(`INSERT INTO retry_queue (message_id, original_payload, original_queue, lane, next_retry_at, visible_at)
      SELECT gen_random_uuid(), 'x', 'orders', 'queue:orders', now(), now() + i * interval '1 s'
      FROM generate_series(1, 40000) AS i`);
    await admin.query('SELECT pg_stat_force_next_flush()');
    await admin.query('VACUUM (ANALYZE) retry_queue');
    const due = async () => {
      const { indexes } = await examine(database.url);
      return indexes.find(({ name }) => name === 'retry_queue_due')!;
    };
    const full = await due();
    expect(full.table).toBe('retry_queue');
    expect(full.bytes / full.neededBytes!).toBeGreaterThan(0.5);
    expect(full.bytes / full.neededBytes!).toBeLessThan(2);
    await admin.query('DELETE FROM retry_queue WHERE id % 20 <> 0');
    await admin.query('SELECT pg_stat_force_next_flush()');
    await vi.waitFor(async () => {
      const { tables } = await examine(database.url);
      const queue = tables.find(({ name }) => name === 'retry_queue');
      expect(queue).toMatchObject({ deadRows: 38_000, rows: 2000 });
      expect(queue!.vacuumedAgoMs).toBeGreaterThan(0);
      expect(queue!.autovacuumedAgoMs).toBeUndefined();
      expect(queue!.tableBytes).toBeGreaterThan(1024 * 1024);
      expect(queue!.indexBytes).toBeGreaterThan(full.bytes);
    }, soon);
    await admin.query('VACUUM (ANALYZE) retry_queue');
    const empty = await due();
    expect(empty.bytes).toBe(full.bytes);
    expect(empty.bytes / empty.neededBytes!).toBeGreaterThan(10);
  });

  test('takes a pool, and gives its connection back', async () => {
    await using pool = new DisposablePool({ connectionString: database.url, max: 1 });
    for (let i = 0; i < 2; i++) {
      const { pooler, schema } = await examine({ pool });
      expect(pooler).toEqual({ isBetween: false, hasWayAround: false });
      expect(schema.version).toBeUndefined();
    }
  });

  test('is told of what is wrong as the store tells it', async () => {
    const away = await examine('postgres://127.0.0.1:1/x').catch((error: unknown) => error);
    expect(isEngineError(away) && away.code).toBe('STORE_UNAVAILABLE');
    await expect(examine({ url: 'nowhere' })).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });
}, everyPostgres);

describeService(['PostgreSQL 15', 'PgBouncer'], () => {
  test('knows PgBouncer when it stands between', async () => {
    await using database = await freshDatabase(15);
    await using bouncer = await startPgBouncer({
      upstreamUrl: database.url,
      poolMode: 'transaction',
    });
    const { pooler, server } = await examine({ url: bouncer.url, listenUrl: database.url });
    expect(pooler).toEqual({ isBetween: true, hasWayAround: true });
    expect(server.number).toBeGreaterThan(150_000);
    const store = postgres({ url: bouncer.url, listen: false });
    await store.open();
    await store.close();
  });
});

class DisposablePool extends pg.Pool {
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
