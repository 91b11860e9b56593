import { randomBytes } from 'node:crypto';
import { describeMongo } from '@redrive/services/vitest';
import { type Document, MongoClient } from 'mongodb';
import { afterAll, beforeAll, test } from 'vitest';
import { repositorySuite } from '../../testing/index.ts';
import { mongodbNotifications } from './index.ts';

/** Drops the database once for each case, and not more: a server may have others. */
describeMongo(({ server, isAtomic }) => {
  const database = `redrive_test_${randomBytes(6).toString('hex')}`;
  let url: string;
  let admin: MongoClient;
  beforeAll(async () => {
    url = await server();
    admin = new MongoClient(url);
  });
  afterAll(async () => {
    await admin.db(database).dropDatabase();
    await admin.close();
  });

  const cases = repositorySuite({
    atomic: isAtomic,
    // FerretDB looks at all documents for each update, and refuses lists in lists.
    complete: isAtomic,
    durable: true,
    damaging: true,
    async open(onUnreadable) {
      const db = admin.db(database);
      for (const name of ['notifications', 'delivery_attempts', 'devices']) {
        await db.collection(name).deleteMany({});
      }
      const another = () => mongodbNotifications({ url, database, onUnreadable });
      const repository = another();
      await repository.open();
      return {
        repository,
        another,
        close: () => repository.close(),
        async damage(id, how) {
          const change =
            how === 'without createdAtMs'
              ? { $unset: { created_at: 1 } }
              : { $set: { deliveries: 'none' } };
          const notifications = db.collection<Document & { _id: string }>('notifications');
          await notifications.updateOne({ _id: id }, change);
        },
      };
    },
  });
  for (const { name, skip, run: assertCase } of cases) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});
