import { MongoClient } from 'mongodb';
import { expect, it } from 'vitest';
import { startFerretdb, startMongo } from './index.ts';
import { describeService } from './vitest.ts';

async function connected<T>(url: string, use: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 5000 });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** So many of 500 increments by 20 writers are counted. */
function increments(url: string): Promise<number> {
  return connected(url, async (client) => {
    const counters = client.db('test').collection<{ _id: string; n: number }>('counters');
    await counters.insertOne({ _id: 'c', n: 0 });
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let i = 0; i < 25; i++) await counters.updateOne({ _id: 'c' }, { $inc: { n: 1 } });
      }),
    );
    return (await counters.findOne({ _id: 'c' }))!.n;
  });
}

describeService('MongoDB (mongo-java-server)', () => {
  it('says that it is version 5.0 with wire version 13', async () => {
    await using server = await startMongo();
    await connected(server.url, async (client) => {
      const admin = client.db('admin');
      expect(await admin.command({ buildInfo: 1 })).toMatchObject({ version: '5.0.0' });
      expect(await admin.command({ isMaster: 1 })).toMatchObject({ maxWireVersion: 13 });
    });
  });

  it('counts every update of 20 writers', async () => {
    await using server = await startMongo();
    expect(await increments(server.url)).toBe(500);
  });

  it('has its data again after a restart', async () => {
    await using server = await startMongo({ onDisk: true });
    await connected(server.url, (client) => client.db('a').collection('b').insertOne({ c: 1 }));
    await server.end();
    await server.start();
    await connected(server.url, async (client) => {
      expect(await client.db('a').collection('b').countDocuments()).toBe(1);
    });
  });
});

describeService('FerretDB', () => {
  it('speaks the protocol, and has its data again after a restart', async () => {
    await using server = await startFerretdb();
    await connected(server.url, (client) => client.db('a').collection('b').insertOne({ c: 1 }));
    await server.end();
    await server.start();
    await connected(server.url, async (client) => {
      expect(await client.db('a').collection('b').findOne()).toMatchObject({ c: 1 });
    });
  });
});
