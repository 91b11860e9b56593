import { type Database, describePostgres, everyPostgres } from '@redrive/services/vitest';
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

  test('records work whose result throws a text that PostgreSQL cannot keep', async () => {
    const store = postgresIdempotency(pool);
    const result = {
      toJSON() {
        throw new Error('bad \0 byte, half \ud800 pair');
      },
    };
    const unstored = { code: 'RESULT_NOT_STORED' };
    await expect(idempotent(store, 'nul', () => result)).rejects.toMatchObject(unstored);
    await expect(idempotent(store, 'nul', () => 'again')).rejects.toMatchObject(unstored);
  });

  test('a clear whose connection breaks is not sent again', async () => {
    const sent: string[] = [];
    const breaking = {
      connect: async () => {
        const client = await pool.connect();
        const query = async (text: { text: string; values?: unknown[] }) => {
          const answer = await client.query(text);
          if (!text.text.startsWith('DELETE')) return answer;
          sent.push(text.text);
          throw new Error('Connection terminated unexpectedly');
        };
        return {
          query,
          release: (destroy?: boolean) => client.release(destroy),
          on: () => undefined,
        };
      },
    };
    const store = postgresIdempotency({ pool: breaking });
    await store.read('k');
    await expect(store.release('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(sent).toHaveLength(1);
    // The token of an owner makes a repetition harmless.
    await expect(store.release('k', 'owner')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(sent).toHaveLength(3);
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

    test('a new store needs no second connection, which a full pool does not have', async () => {
      await store.read('k');
      key = `tx-${++cases}`;
      const one = new pg.Pool({ connectionString: database.url, max: 1 });
      const client = await one.connect();
      await client.query('BEGIN');
      const inside = postgresIdempotency(one).within(client);
      expect(await idempotent(inside, key, () => 1, { storeTimeout: '2s' })).toBe(1);
      await client.query('COMMIT');
      client.release();
      await one.end();
    });

    test('a table of a newer program is refused there too, and one that is missing is made', async () => {
      const { client, insert } = await begin();
      await postgresIdempotency({ pool, schema: 'newer_tx' }).read('k');
      await pool.query('UPDATE newer_tx.redrive_idempotency_schema SET version = 9, oldest = 9');
      const newer = postgresIdempotency({ pool, schema: 'newer_tx' }).within(client);
      await expect(newer.read('k')).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
      const fresh = postgresIdempotency({ pool, schema: 'fresh_tx' });
      expect(await idempotent(fresh.within(client), key, insert)).toEqual({ paid: true });
      await client.query('COMMIT');
      client.release();
      expect(await fresh.read(key)).toMatchObject({ state: 'done' });
    });

    test('a serialization failure is told as such, so that the caller begins anew', async () => {
      const { client } = await begin();
      await client.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT FROM effects');
      await idempotent(store, key, () => 'first');
      await expect(idempotent(store.within(client), key, () => 'second')).rejects.toMatchObject({
        code: 'IDEMPOTENCY_STORE_FAILED',
        cause: { cause: { code: '40001' } },
      });
      await client.query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ');
      expect(await idempotent(store.within(client), key, () => 'second')).toBe('first');
      await client.query('COMMIT');
      client.release();
    });

    test('a rollback to a savepoint takes both back', async () => {
      const { client, insert } = await begin();
      await client.query('SAVEPOINT mine');
      await idempotent(store.within(client), key, insert);
      await client.query('ROLLBACK TO mine');
      expect(await idempotent(store.within(client), key, () => 'second')).toBe('second');
      await client.query('COMMIT');
      client.release();
      expect(await effects()).toBe(0);
      expect(await idempotent(store, key, () => 'third')).toBe('second');
    });

    test('the same store is refused once its transaction is over', async () => {
      const { client, insert } = await begin();
      const inside = store.within(client);
      await idempotent(inside, key, insert);
      await client.query('COMMIT');
      await expect(idempotent(inside, `${key}-b`, insert)).rejects.toMatchObject({
        cause: { code: 'NOT_IN_TRANSACTION' },
      });
      client.release();
      expect(await effects()).toBe(1);
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
}, everyPostgres);
