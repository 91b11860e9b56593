import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stickySuite } from '../../testing/sticky-suite.ts';
import { migratePostgres, postgresSticky } from './index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Pool;
  beforeAll(async () => {
    database = await freshDatabase();
    admin = new pg.Pool({ connectionString: database.url });
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  let schemas = 0;
  const cases = stickySuite({
    shared: true,
    counting: true,
    async open(now) {
      const options = { url: database.url, schema: `sticky "${schemas++}"`, now };
      const [store, twin] = [postgresSticky(options), postgresSticky(options)];
      const count = async () => {
        const { rows } = await admin.query(
          `SELECT count(*)::int AS n FROM ${pg.escapeIdentifier(options.schema)}.redrive_sticky`,
        );
        return (rows as { n: number }[])[0]!.n;
      };
      const close = async () => {
        await Promise.allSettled([store.close(), twin.close()]);
      };
      return { store, twin, count, closeStore: () => store.close(), close };
    },
  });
  for (const { name, run: assertCase } of cases) test(`${name}`, () => assertCase());

  test('several that begin at once make one table', async () => {
    const stores = Array.from({ length: 5 }, () =>
      postgresSticky({ url: database.url, schema: 'crowd' }),
    );
    const session = { provider: 'a', expires_at_ms: Date.now() + 60_000 };
    await Promise.all(stores.map(async (store, i) => store.set(`k${i}`, session)));
    expect(await stores[0]!.get('k4')).toEqual(session);
    await Promise.all(stores.map((store) => store.close()));
  });

  test('a role that may not create the table hears so, and works once somebody has migrated', async () => {
    await admin.query(`CREATE ROLE guest LOGIN PASSWORD 'guest'; CREATE SCHEMA shut;
      GRANT USAGE ON SCHEMA shut TO guest`);
    const url = new URL(database.url);
    [url.username, url.password] = ['guest', 'guest'];
    const store = postgresSticky({ url: url.href, schema: 'shut' });
    await expect(store.get('k')).rejects.toMatchObject({ code: 'STORE_READ_ONLY' });
    await migratePostgres({ url: database.url, schema: 'shut' });
    await admin.query('GRANT ALL ON shut.redrive_sticky TO guest');
    expect(await store.get('k')).toBeUndefined();
    await store.close();
  });

  test('a server that is not there is said so', async () => {
    const store = postgresSticky('postgres://nobody@127.0.0.1:1/nothing');
    await expect(store.get('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await store.close();
  });
});
