import { type MongoServer, startMongo } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { MongoClient, MongoServerError } from 'mongodb';
import { afterAll, beforeAll, expect, it, test } from 'vitest';
import { newRecord } from '../../testing/repository/fixtures.ts';
import { faultOf } from './faults.ts';
import { mongodbNotifications } from './index.ts';
import { loadMongodb } from './library.ts';

test.each([
  ['a URL', 'http://host'],
  ['a password with an @', 'mongodb://u:p@ss@host'],
  ['a password with a broken escape', 'mongodb://u:secret%zz@host'],
  ['a URL without a host', 'mongodb:///db'],
  ['nothing', undefined as never],
  ['a database', { url: 'mongodb://host', database: 'a.b' }],
  ['an option', { url: 'mongodb://host', maxConections: 3 }],
  ['a number', { url: 'mongodb://host', statementTimeoutMs: 0 }],
])('refuses %s that cannot work', (_, options) => {
  expect(() => mongodbNotifications(options)).toThrow(
    expect.objectContaining({ code: 'INVALID_CONFIG' }),
  );
});

test.each([
  'mongodb://u:p%40ss@one:27017,two:27018/db?replicaSet=rs0',
  'mongodb+srv://u:p@cluster.example.net/?retryWrites=true',
  'mongodb://[::1]:27017/db',
])('takes %s', (url) => {
  expect(() => mongodbNotifications(url)).not.toThrow();
});

it('says what is wrong with an option of the URL, and does not try again', async () => {
  const repository = mongodbNotifications('mongodb://127.0.0.1:1/db?replicaSat=rs0');
  await expect(repository.open()).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringMatching(/MONGODB_URL.*replicasat/i),
  });
});

it('calls a refused password by its name', async () => {
  await loadMongodb();
  const refusal = new MongoServerError({ message: 'Authentication failed.', code: 18 });
  expect(faultOf(refusal)).toMatchObject({
    code: 'STORE_DENIED',
    message: expect.stringContaining('MONGODB_URL'),
  });
});

describeService('MongoDB (mongo-java-server)', () => {
  let server: MongoServer;
  beforeAll(async () => {
    server = await startMongo({ onDisk: true });
  });
  afterAll(() => server.stop());

  it('has its records again after a restart of the server, and says when it is away', async () => {
    const url = `${server.url}/mine`;
    const repository = mongodbNotifications({ url, connectTimeoutMs: 300 });
    await repository.open();
    const record = newRecord();
    await repository.create([record]);
    await server.end();
    await expect(repository.find([record.id])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(mongodbNotifications({ url, connectTimeoutMs: 100 }).open()).rejects.toMatchObject(
      {
        code: 'STORE_UNAVAILABLE',
      },
    );
    await server.start();
    expect(await repository.find([record.id])).toEqual([{ ...record, version: 1 }]);
    expect(await repository.create([record])).toMatchObject([{ isNew: false }]);
    await repository.close();
  });

  it('takes the database of the URL, and finishes what a prune left marked', async () => {
    const repository = mongodbNotifications(`${server.url}/other`);
    await repository.open();
    const { wakeAtMs: _, ...record } = newRecord();
    await repository.create([record]);
    const client = new MongoClient(server.url);
    const stored = client.db('other').collection<{ _id: string }>('notifications');
    await stored.updateOne({ _id: record.id }, { $set: { pruned: true }, $inc: { version: 1 } });
    expect(await repository.write([{ ...record, version: 1 }])).toMatchObject({ records: [false] });
    expect(await repository.prune(record.updatedAtMs + 1, 10)).toBe(1);
    expect(await stored.countDocuments()).toBe(0);
    await client.close();
    await repository.close();
  });
});
