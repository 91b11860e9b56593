import { randomUUID } from 'node:crypto';
import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../../ports/store.ts';
import { claimDue, settlements } from '../../../testing/fixtures.ts';
import { postgres } from '../index.ts';
import { namesIn } from '../names.ts';
import { splitState } from '../inbox/open-schema.ts';
import { createQueue, createTables, createTrigger, type Index, queueIndexes } from './schema.ts';
import { upgrade, upgradedQueueIndexes } from './upgrade.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: Store[];
  const names = namesIn('public');

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
    await admin.query(`${createQueue(names)} ${createTables(names)} ${createTrigger(names)} ${built(queueIndexes)}
      CREATE TABLE redrive_schema (version integer NOT NULL, oldest integer NOT NULL);
      INSERT INTO redrive_schema VALUES (1, 1)`);
  }

  /** As the program of schema 3 has made it of that: with the state of an item in its row, and counted from there. */
  async function makeSchema3(): Promise<void> {
    const count = (name: string, when: string, tables: string, text: string) => `
      CREATE FUNCTION redrive_count_${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO redrive_group_deltas (fingerprint, open) ${text}; RETURN NULL; END $$;
      CREATE TRIGGER redrive_count_${name} AFTER ${when} ON redrive_inbox REFERENCING ${tables}
        FOR EACH STATEMENT EXECUTE FUNCTION redrive_count_${name}();`;
    const total = (table: string) =>
      `SELECT fingerprint, sum((state = 'open')::integer) FROM ${table} GROUP BY fingerprint`;
    await admin.query(`${upgrade(names)} ${built(upgradedQueueIndexes)}
      ${count('new', 'INSERT', 'NEW TABLE AS fresh', total('fresh'))}
      ${count('changed', 'UPDATE', 'NEW TABLE AS fresh', total('fresh'))}
      ${count('deleted', 'DELETE', 'OLD TABLE AS old', total('old'))}
      DROP INDEX redrive_inbox_fingerprint, redrive_inbox_lane;
      CREATE INDEX redrive_inbox_state ON redrive_inbox (state, id);
      CREATE INDEX redrive_inbox_cause ON redrive_inbox (fingerprint, state, id);
      CREATE INDEX redrive_inbox_way ON redrive_inbox (lane, state, id);
      CREATE INDEX redrive_inbox_job ON redrive_inbox (job, id) WHERE job IS NOT NULL;
      CREATE INDEX redrive_inbox_closed ON redrive_inbox (closed_at) WHERE closed_at IS NOT NULL;
      UPDATE redrive_schema SET version = 3, oldest = 2`);
  }

  function built(indexes: readonly Index[]): string {
    return indexes
      .map(
        ({ name, unique, on }) =>
          `CREATE ${unique ? 'UNIQUE' : ''} INDEX ${name} ON ${names.queue} ${on};`,
      )
      .join(' ');
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
    await makeSchema3();
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
    const found = await value(
      `SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE indexdef LIKE '%ordering_key, %'`,
    );
    expect(found).toBe('retry_queue_place');
  });

  test('from schema 3: every item is as it was, open or closed, and is counted and acted on', async () => {
    await makeSchema3();
    await insert(
      `('failed', NULL, NULL::bigint), ('failed', NULL, NULL), ('pending', NULL, NULL), ('cancelled', NULL, NULL)`,
    );
    await admin.query(`INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, state, reason, fingerprint,
        attempt, max_attempts, generation, first_seen, last_seen, failure, closed_at, closed_by, edit)
      SELECT task, gen_random_uuid(), 'queue', 'orders', 'a', state, 'EXHAUSTED', 'f', 1, 4, 0, '2020-01-01', '2020-01-02',
        '{"class":"technical"}', at::timestamptz, CASE WHEN at IS NOT NULL THEN 'anna' END, edit::json
      FROM (VALUES (1, 'open', NULL, NULL), (2, 'open', NULL, '{"headers":{}}'), (3, 'replayed', '2020-01-03', NULL),
        (4, 'discarded', '2020-01-04', NULL), (NULL, 'open', NULL, NULL), (NULL, 'erased', '2020-01-05', NULL)
      ) AS t(task, state, at, edit)`);
    // What its triggers counted and nobody has added up yet.
    await admin.query(
      `INSERT INTO redrive_groups SELECT 'f', 'a', 'EXHAUSTED', '{"class":"technical"}', 6, 0, now(), now()`,
    );
    await admin.query(
      `INSERT INTO redrive_members (job, item_id, result) VALUES (7, 1, NULL), (7, 3, 'done')`,
    );
    const store = await open();
    const { items } = await store.items({ limit: 10 });
    expect(
      items.map(({ state, closedAtMs, closedBy, edit }) => [state, closedAtMs, closedBy, edit]),
    ).toEqual([
      ['erased', Date.UTC(2020, 0, 5), 'anna', undefined],
      ['open', undefined, undefined, undefined],
      ['discarded', Date.UTC(2020, 0, 4), 'anna', undefined],
      ['replayed', Date.UTC(2020, 0, 3), 'anna', undefined],
      ['open', undefined, undefined, { headers: {} }],
      ['open', undefined, undefined, undefined],
    ]);
    expect(await store.groups({ limit: 10 })).toMatchObject([{ fingerprint: 'f', open: 3 }]);
    expect(
      await store.members({ job: 7, result: 'done', after: 0, upTo: 3, limit: 9 }),
    ).toHaveLength(2);
    expect(await store.act([1, 2, 3, 4, 5], { type: 'replay' })).toEqual(
      'done done closed closed unaddressed'.split(' '),
    );
    expect(await store.act([4], { type: 'restore' })).toEqual(['done']);
    expect(await store.groups({ limit: 10 })).toMatchObject([{ fingerprint: 'f', open: 2 }]);
    expect(await store.count({ state: 'replayed' })).toBe(3);
  });

  test('from schema 3: older programs are kept out from the split on, and a step that was interrupted goes on', async () => {
    await makeSchema3();
    // Interrupted after the first new index, and then after the split.
    await admin.query('CREATE INDEX redrive_inbox_lane ON redrive_inbox (lane, id)');
    await admin.query(splitState(names));
    expect(await value('SELECT oldest FROM redrive_schema')).toBe(4);
    expect(await value('SELECT version FROM redrive_schema')).toBe(3);
    await expect(
      admin.query(`SELECT FROM redrive_inbox WHERE state = 'open'`),
    ).rejects.toMatchObject({
      code: '42703',
    });
    await open();
    expect(await value('SELECT version FROM redrive_schema')).toBe(7);
    for (const name of ['lane', 'fingerprint', 'job']) {
      expect(await value(`SELECT to_regclass('redrive_inbox_${name}')`)).not.toBeNull();
    }
  });

  test('from schema 4: older programs of that schema go on beside it', async () => {
    await open();
    await admin.query(`ALTER TABLE redrive_inbox DROP COLUMN task_edited, DROP COLUMN task_on_dead;
      UPDATE redrive_schema SET version = 4`);
    const store = await open();
    expect((await admin.query('SELECT version, oldest FROM redrive_schema')).rows).toEqual([
      { version: 7, oldest: 4 },
    ]);
    expect(await store.items({ limit: 1 })).toEqual({ items: [] });
  });

  test('from schema 6: the events that are there are found by their message, and erased', async () => {
    await open();
    const id = randomUUID();
    await admin.query('DROP TABLE redrive_erased; DROP INDEX redrive_audit_message');
    await admin.query('UPDATE redrive_schema SET version = 6');
    const event = { exception_message: 'Eva \ud800', redrive: { message_id: id } };
    await admin.query(
      `INSERT INTO redrive_audit (instance, sequence, event_type, at, event) VALUES ('', 0, 'retry_attempt', now(), $1)`,
      [JSON.stringify(event)],
    );
    const { audit } = await open();
    expect(await audit?.erase?.(id)).toBe(1);
    expect(await value('SELECT event::text FROM redrive_audit')).not.toContain('Eva');
  });

  test('leaves tables as it would have made them, also when it was interrupted', async () => {
    await open();
    await admin.query(`UPDATE redrive_schema SET version = 1, oldest = 1; DROP INDEX redrive_inbox_lane;
      UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'retry_queue_place'::regclass`);
    await open();
    await open('fresh');
    expect(await value('SELECT version FROM redrive_schema')).toBe(7);
    expect(await value('SELECT oldest FROM redrive_schema')).toBe(4);
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
