import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { type IdempotencyStore, idempotent } from 'redrive';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { idempotencySuite, type OpenedIdempotency } from '../../../testing/index.ts';
import { migratePostgres, postgresIdempotency } from '../index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    pool = new pg.Pool({ connectionString: database.url });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  async function open(): Promise<OpenedIdempotency> {
    await pool.query('DROP TABLE IF EXISTS redrive_idempotency, redrive_idempotency_schema');
    const stores: IdempotencyStore[] = [];
    const another = async () => {
      const store = postgresIdempotency({ url: database.url, maxConnections: 4 });
      stores.push(store);
      return store;
    };
    const store = await another();
    return {
      store,
      another,
      elsewhere: {
        module: new URL('../index.ts', import.meta.url).href,
        create: `adapter.postgresIdempotency(${JSON.stringify(database.url)})`,
      },
      async close() {
        for (const one of stores) await one.close?.();
      },
    };
  }

  for (const { name, run: assertCase } of idempotencySuite({ open, shared: true })) {
    test(`${name}`, () => assertCase());
  }

  test('lives in the schema of one’s choice, beside an engine', async () => {
    await migratePostgres({ url: database.url, schema: 'My Schema' });
    const store = postgresIdempotency({ pool, schema: 'My Schema' });
    expect(await idempotent(store, 'k', () => 1)).toBe(1);
    const fresh = postgresIdempotency({ pool, schema: 'fresh' });
    expect(await idempotent(fresh, 'k', () => 2)).toBe(2);
    expect(await idempotent(store, 'k', () => 3)).toBe(1);
  });

  test('is created once by many at once', async () => {
    const schema = 'crowd';
    const stores = Array.from({ length: 8 }, () => postgresIdempotency({ pool, schema }));
    const results = await Promise.all(stores.map((store) => idempotent(store, 'k', () => 1)));
    expect(results).toEqual(stores.map(() => 1));
  });

  test('says that the table is missing where it may not create it, and then goes on', async () => {
    const store = postgresIdempotency({ pool, schema: 'later', migrate: 'check' });
    await expect(store.read('k')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' });
    await postgresIdempotency({ pool, schema: 'later' }).read('k');
    expect(await store.read('k')).toBeUndefined();
  });

  test('refuses a table that a newer program made', async () => {
    await postgresIdempotency({ pool, schema: 'newer' }).read('k');
    await pool.query('UPDATE newer.redrive_idempotency_schema SET version = 9, oldest = 9');
    const store = postgresIdempotency({ pool, schema: 'newer' });
    await expect(store.read('k')).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
  });

  test('prunes by an index', async () => {
    const store = postgresIdempotency({ pool, schema: 'plan' });
    await store.read('k');
    await pool.query(`INSERT INTO plan.redrive_idempotency
      SELECT i, 'o', '', 1, 1, now(), 'value', '1', NULL, now(), CASE WHEN i % 100 = 0 THEN now() END
      FROM generate_series(1, 20000) AS i; ANALYZE plan.redrive_idempotency`);
    const { rows } = await pool.query(`EXPLAIN SELECT key FROM plan.redrive_idempotency
      WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT 10`);
    expect(JSON.stringify(rows)).toContain('redrive_idempotency_expiry');
    expect(await store.prune(150)).toBe(150);
    expect(await store.prune(1000)).toBe(50);
  });

  describe('within a transaction of the caller', () => {
    let store: ReturnType<typeof postgresIdempotency>;
    let cases = 0;
    let key: string;

    beforeAll(async () => {
      store = postgresIdempotency(pool);
      await pool.query('CREATE TABLE effects (key text)');
    });

    const effects = async () => {
      const { rows } = await pool.query('SELECT key FROM effects WHERE key = $1', [key]);
      return rows.length;
    };
    const begin = async () => {
      key = `tx-${++cases}`;
      const client = await pool.connect();
      await client.query('BEGIN');
      const insert = async () => {
        await client.query('INSERT INTO effects VALUES ($1)', [key]);
        return { paid: true };
      };
      return { client, insert };
    };

    test('effect and record commit together', async () => {
      const { client, insert } = await begin();
      expect(await idempotent(store.within(client), key, insert)).toEqual({ paid: true });
      expect(await effects()).toBe(0);
      expect(await store.read(key)).toBeUndefined();
      await client.query('COMMIT');
      client.release();
      expect(await effects()).toBe(1);
      expect(await idempotent(store, key, () => 'again')).toEqual({ paid: true });
    });

    test('a result that is there is found, and the work does not run', async () => {
      const { client, insert } = await begin();
      await idempotent(store, key, () => 'first');
      expect(await idempotent(store.within(client), key, insert)).toBe('first');
      await client.query('COMMIT');
      client.release();
      expect(await effects()).toBe(0);
    });

    test('the transaction holds the key: no lease is renewed', async () => {
      const { client, insert } = await begin();
      const texts: string[] = [];
      const spy = {
        query: (text: string, values?: unknown[]) => {
          texts.push(text);
          return client.query(text, values);
        },
      };
      const inside = store.within(spy);
      expect(inside.transactional).toBe(true);
      const work = async () => {
        // Some renewals would have come meanwhile.
        await client.query('SELECT pg_sleep(0.2)');
        return insert();
      };
      await idempotent(inside, key, work, { lease: 60 });
      expect(texts.map((text) => /SAVEPOINT|INSERT|UPDATE/.exec(text)?.[0])).toEqual([
        'SAVEPOINT',
        'INSERT',
        'UPDATE',
      ]);
      await client.query('ROLLBACK');
      client.release();
    });

    test('a rollback takes both back, and the key is free at once', async () => {
      const { client, insert } = await begin();
      await idempotent(store.within(client), key, insert);
      await client.query('ROLLBACK');
      client.release();
      expect(await effects()).toBe(0);
      const options = { whileRunning: 'conflict' } as const;
      expect(await idempotent(store, key, () => 'second', options)).toBe('second');
    });

    test('a connection that is cut takes both back', async () => {
      const { client, insert } = await begin();
      client.on('error', () => undefined);
      await idempotent(store.within(client), key, insert);
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid]);
      await expect(client.query('COMMIT')).rejects.toThrow(/connection|terminat/i);
      client.release(true);
      expect(await effects()).toBe(0);
      expect(await idempotent(store, key, () => 'second')).toBe('second');
    });

    test('others see that the key is held, without waiting for the transaction', async () => {
      const { client, insert } = await begin();
      await idempotent(store.within(client), key, insert);
      const options = { whileRunning: 'conflict' } as const;
      await expect(idempotent(store, key, () => 1, options)).rejects.toMatchObject({
        code: 'IDEMPOTENCY_CONFLICT',
      });
      const other = await pool.connect();
      await other.query('BEGIN');
      const inside = idempotent(store.within(other), key, () => 1, options);
      await expect(inside).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
      await other.query('ROLLBACK');
      other.release();
      const waiting = idempotent(store, key, () => 'own');
      await client.query('COMMIT');
      client.release();
      expect(await waiting).toEqual({ paid: true });
    });

    test('of twenty transactions at once one has the effect', async () => {
      key = `tx-${++cases}`;
      const crowd = new pg.Pool({ connectionString: database.url, max: 20 });
      const results = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const client = await crowd.connect();
          try {
            await client.query('BEGIN');
            const result = await idempotent(store.within(client), key, async () => {
              await client.query('INSERT INTO effects VALUES ($1)', [key]);
              return 'paid';
            });
            await client.query('COMMIT');
            return result;
          } finally {
            client.release();
          }
        }),
      );
      expect(results).toEqual(Array.from({ length: 20 }, () => 'paid'));
      expect(await effects()).toBe(1);
      await crowd.end();
    });

    test('work that fails leaves the error of the work, also where it broke the transaction', async () => {
      const { client } = await begin();
      const broken = idempotent(store.within(client), key, () => client.query('SELECT nonsense'));
      await expect(broken).rejects.toThrow('nonsense');
      await client.query('ROLLBACK');
      client.release();
      expect(await idempotent(store, key, () => 1)).toBe(1);
    });

    test('a client without a transaction, and a pool, are refused', async () => {
      const client = await pool.connect();
      await expect(idempotent(store.within(client), 'x', () => 1)).rejects.toMatchObject({
        code: 'IDEMPOTENCY_STORE_FAILED',
        cause: { code: 'NOT_IN_TRANSACTION' },
      });
      client.release();
      const wrong = store.within(pool as never);
      await expect(wrong.read('x')).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' });
    });
  });
});
