import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { repositorySuite } from '../../testing/index.ts';
import { postgresNotifications } from './index.ts';

const tables = ['notifications', 'notification_attempts', 'notification_devices'];

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Pool;
  beforeAll(async () => {
    database = await freshDatabase();
    admin = new pg.Pool({ connectionString: database.url });
    const repository = postgresNotifications(database.url);
    await repository.open();
    await repository.close();
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  const cases = repositorySuite({
    atomic: true,
    complete: true,
    durable: true,
    damaging: true,
    async open(onUnreadable) {
      await admin.query(`TRUNCATE ${tables.join(', ')}`);
      const another = () => postgresNotifications({ url: database.url, onUnreadable });
      const repository = another();
      await repository.open();
      return {
        repository,
        another,
        close: () => repository.close(),
        async damage(id, how) {
          const change =
            how === 'without createdAtMs'
              ? `document::jsonb - 'createdAtMs'`
              : `jsonb_set(document::jsonb, '{deliveries}', '"none"')`;
          await admin.query(`UPDATE notifications SET document = (${change})::json WHERE id = $1`, [
            id,
          ]);
        },
      };
    },
  });
  for (const { name, run: assertCase } of cases) test(`${name}`, () => assertCase());
});
