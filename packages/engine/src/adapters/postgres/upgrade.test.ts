import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../ports/store.ts';
import { claimDue, settlements } from '../../testing/fixtures.ts';
import { postgres } from './index.ts';
import { namesIn } from './names.ts';
import { createQueue, createTables, createTrigger, queueIndexes } from './schema.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    stores = [];
    await makeSchema1();
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  /** As the program of schema 1 has left it. */
  async function makeSchema1(): Promise<void> {
    const names = namesIn('public');
    const indexes = queueIndexes.map(
      ({ name, unique, on }) =>
        `CREATE ${unique ? 'UNIQUE' : ''} INDEX ${name} ON ${names.queue} ${on};`,
    );
    await admin.query(`${createQueue(names)} ${createTables(names)} ${createTrigger(names)} ${indexes.join(' ')}
      CREATE TABLE redrive_schema (version integer NOT NULL, oldest integer NOT NULL);
      INSERT INTO redrive_schema VALUES (1, 1)`);
  }

  async function open(schema = 'public'): Promise<Store> {
    const store = postgres({ url: database.url, schema, listen: false, maxConnections: 2 });
    stores.push(store);
    await store.open();
    return store;
  }

  function insert(rows: string): Promise<unknown> {
    return admin.query(`INSERT INTO retry_queue (message_id, original_payload, original_queue, lane, next_retry_at,
        visible_at, status, ordering_key, lease, claims)
      SELECT gen_random_uuid(), 'x', 'orders', 'a', now(), now(), status, key, lease, CASE WHEN lease IS NULL THEN 0 ELSE 1 END
      FROM (VALUES ${rows}) AS t(status, key, lease)`);
  }

  async function value(text: string): Promise<unknown> {
    const { rows } = await admin.query({ text, rowMode: 'array' });
    return (rows as unknown[][])[0]?.[0];
  }

  test('keeps the order from now on: all but the first that waits in each line are held back', async () => {
    await insert(`('done', 'k', NULL::bigint), ('pending', 'k', NULL), ('pending', 'l', 7), ('pending', 'k', NULL),
      ('pending', 'l', NULL), ('pending', NULL, NULL), ('pending', NULL, NULL)`);
    const store = await open();
    const tasks = (await store.list({ status: 'pending', limit: 10 })).toReversed();
    expect(tasks.map(({ blocked }) => blocked)).toEqual([false, false, true, true, false, false]);
    const claim = await claimDue(store, 'a');
    expect(claim.tasks.map(({ id }) => id)).toEqual([2, 6, 7]);
    const line = { lane: 'a', key: 'k' };
    await store.settle([{ ...settlements.done(claim.tasks[0]!), line }]);
    expect((await claimDue(store, 'a')).tasks.map(({ id }) => id)).toEqual([4]);
  });

  test('counts the items that are there, and can act on them', async () => {
    await insert(`('failed', 'k', NULL::bigint), ('failed', NULL, NULL), ('failed', NULL, NULL)`);
    await admin.query(`INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, state, reason, fingerprint,
        attempt, max_attempts, generation, first_seen, last_seen, failure)
      SELECT id, message_id, 'queue', 'orders', 'a', 'open', 'EXHAUSTED', 'f', 1, 4, 0, created_at, now(),
        json_build_object('class', 'technical', 'code', id::text) FROM retry_queue ORDER BY id`);
    const store = await open();
    expect(await store.groups({ limit: 10 })).toMatchObject([
      { fingerprint: 'f', lane: 'a', open: 3, failure: { code: '3' } },
    ]);
    const { items } = await store.items({ orderingKey: 'k', limit: 10 });
    expect(items).toMatchObject([{ taskId: 1, orderingKey: 'k' }]);
    expect(await store.act([1, 2], { type: 'replay' })).toEqual(['done', 'done']);
    expect(await store.groups({ limit: 10 })).toMatchObject([{ open: 1 }]);
    expect((await claimDue(store, 'a')).tasks).toHaveLength(2);
  });

  test('from schema 2: one index takes the place of two, and each line goes on where it was', async () => {
    await open();
    await admin.query(`DROP INDEX retry_queue_place; UPDATE redrive_schema SET version = 2;
      CREATE INDEX retry_queue_line ON retry_queue (lane, ordering_key, id) WHERE ordering_key IS NOT NULL
        AND (status = 'pending' OR status = 'failed' AND on_dead IS NULL);
      CREATE INDEX retry_queue_turn ON retry_queue (lane, ordering_key) WHERE ordering_key IS NOT NULL
        AND status = 'pending' AND NOT blocked`);
    await insert(`('done', 'k', NULL::bigint), ('pending', 'k', NULL), ('pending', 'k', NULL)`);
    await admin.query(`UPDATE retry_queue SET blocked = true WHERE id = 3`);
    const store = await open();
    const claim = await claimDue(store, 'a');
    expect(claim.tasks.map(({ id }) => id)).toEqual([2]);
    await store.settle([{ ...settlements.done(claim.tasks[0]!), line: { lane: 'a', key: 'k' } }]);
    expect((await claimDue(store, 'a')).tasks.map(({ id }) => id)).toEqual([3]);
    const names = await value(
      `SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE indexdef LIKE '%ordering_key, %'`,
    );
    expect(names).toBe('retry_queue_place');
  });

  test('leaves tables as it would have made them, also when it was interrupted', async () => {
    await open();
    await admin.query(`UPDATE redrive_schema SET version = 1, oldest = 1; DROP INDEX redrive_inbox_cause;
      UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'retry_queue_place'::regclass`);
    await open();
    await open('fresh');
    expect(await value('SELECT version FROM redrive_schema')).toBe(3);
    expect(await value('SELECT oldest FROM redrive_schema')).toBe(2);
    const shape = (schema: string) =>
      admin.query(
        `SELECT 'column' AS kind, table_name || '.' || column_name AS name, data_type AS text
         FROM information_schema.columns WHERE table_schema = '${schema}'
         UNION ALL SELECT 'index', indexname, replace(indexdef, '${schema}.', '') FROM pg_indexes WHERE schemaname = '${schema}'
         UNION ALL SELECT 'trigger', tgname, tgtype::text FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = tgrelid
           WHERE NOT tgisinternal AND relnamespace = '${schema}'::regnamespace
         ORDER BY 1, 2, 3`,
      );
    const [old, fresh] = [await shape('public'), await shape('fresh')];
    expect(old.rows).toEqual(fresh.rows);
    expect(old.rows.length).toBeGreaterThan(50);
    expect(
      await value(
        `SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'retry_queue'::regclass`,
      ),
    ).toBe(true);
  });
});
