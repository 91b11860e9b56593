import { startProxy } from '@redrive/services';
import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newAttempt, newRecord } from '../../testing/repository/fixtures.ts';
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

  test('says so when the answer of a write is lost, and not that somebody else was faster', async () => {
    await using proxy = await startProxy(database.url);
    const repository = postgresNotifications({ url: proxy.url, schema: 'lossy' });
    await repository.open();
    const record = newRecord();
    /** Done, and nobody hears of it. */
    const lost = async (call: () => Promise<unknown>, version: number) => {
      proxy.mute();
      const answer = call().catch((error: unknown) => error);
      const isDone = 'SELECT 1 FROM lossy.notifications WHERE id = $1 AND version = $2';
      const values = [record.id, version];
      await expect.poll(async () => (await pool.query(isDone, values)).rowCount).toBe(1);
      proxy.cut();
      proxy.resume();
      expect(await answer).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    };
    await lost(() => repository.create([record]), 1);
    const [stored] = await repository.find([record.id]);
    await lost(() => repository.write([stored!], [newAttempt({ notificationId: record.id })]), 2);
    expect(await repository.find([record.id])).toEqual([{ ...stored, version: 2 }]);
    expect(await repository.attempts(record.id, { limit: 5 })).toHaveLength(1);
    await repository.close();
  });

  test('a server that is not there is said so', async () => {
    const repository = postgresNotifications('postgres://nobody@127.0.0.1:1/nothing');
    await expect(repository.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await repository.close();
  });
});
