import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRecord } from '../../testing/repository/fixtures.ts';
import { postgresNotifications } from './index.ts';

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

  test('several that open at once make the tables once, in a schema of their own', async () => {
    const schema = 'own "schema"';
    const all = Array.from({ length: 5 }, () =>
      postgresNotifications({ url: database.url, schema, maxConnections: 1 }),
    );
    await Promise.all(all.map((one) => one.open()));
    const record = newRecord();
    await all[0]!.create([record]);
    expect(await all[4]!.find([record.id])).toEqual([{ ...record, version: 1 }]);
    await Promise.all(all.map((one) => one.close()));
  });

  test('works on a pool that stays the caller’s', async () => {
    const repository = postgresNotifications({ pool, schema: 'lent' });
    await repository.open();
    await repository.create([newRecord()]);
    await repository.close();
    await expect(repository.find(['a'])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  test('refuses a table of somebody else, and a schema without tables where it only checks', async () => {
    await pool.query('CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.notifications (a int)');
    const open = (options: { schema: string; migrate?: 'check' }) =>
      postgresNotifications({ pool, ...options }).open();
    await expect(open({ schema: 'foreign_one' })).rejects.toMatchObject({ code: 'TABLE_NOT_OURS' });
    await expect(open({ schema: 'nothing', migrate: 'check' })).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
    });
    await open({ schema: 'newer' });
    await pool.query('UPDATE newer.redrive_notifications_schema SET version = 9, oldest = 9');
    await expect(open({ schema: 'newer' })).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' });
  });

  test('a server that is not there is said so', async () => {
    const repository = postgresNotifications('postgres://nobody@127.0.0.1:1/nothing');
    await expect(repository.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await repository.close();
  });
});
