import { type MongoServer, startMongo } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { type Collection, MongoBulkWriteError, MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { finished, newAttempt, newRecord, T0 } from '../../testing/repository/fixtures.ts';
import type { NotificationRepository } from '../../ports/repository.ts';
import { Reader } from '../../repository/unreadable.ts';
import type { Collections, Connection, Stored } from './connection.ts';
import { documentOf } from './documents.ts';
import { duplicatesOf } from './faults.ts';
import { mongodbNotifications } from './index.ts';
import { MongodbNotifications } from './repository.ts';
import { prunedOf, writtenOf } from './writes.ts';

type Method = 'bulkWrite' | 'find' | 'updateMany' | 'deleteMany';

/** The collection, where something else happens before each call of that method reaches the server. */
function meanwhile(
  collection: Collection<Stored>,
  method: Method,
  act: () => Promise<unknown>,
): Collection<Stored> {
  const call = collection[method].bind(collection) as (...args: unknown[]) => unknown;
  const after = async (...args: unknown[]) => {
    await act();
    return call(...args);
  };
  const found = (...args: unknown[]) => ({
    toArray: async () => ((await after(...args)) as { toArray(): Promise<unknown> }).toArray(),
  });
  return new Proxy(collection, {
    get: (target, name) => {
      if (name === method) return method === 'find' ? found : after;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

describeService('MongoDB (mongo-java-server)', () => {
  let server: MongoServer;
  let client: MongoClient;
  let repository: NotificationRepository;
  let stored: Collections;
  beforeAll(async () => {
    server = await startMongo({});
    client = new MongoClient(server.url);
    repository = mongodbNotifications(`${server.url}/writes`);
    await repository.open();
    const db = client.db('writes');
    stored = {
      notifications: db.collection('notifications'),
      attempts: db.collection('delivery_attempts'),
      devices: db.collection('devices'),
    };
  });
  beforeEach(async () => {
    for (const collection of Object.values(stored) as Collection[]) await collection.deleteMany({});
  });
  afterAll(async () => {
    await repository.close();
    await client.close();
    await server.stop();
  });

  /** As a bulk says it that meets a key which is there. */
  async function duplicateKey(): Promise<MongoBulkWriteError> {
    const inserts = [1, 2].map(() => ({ insertOne: { document: { _id: 'twice' } } }));
    const error: unknown = await stored.devices.bulkWrite(inserts).catch((said: unknown) => said);
    if (error instanceof MongoBulkWriteError) return error;
    throw new Error('the server took a key twice');
  }

  it('takes for known only what met a key that is there, and is on a majority of the servers', async () => {
    expect(duplicatesOf(await duplicateKey())).toEqual(new Set([1]));
    const [duplicate] = [(await duplicateKey()).writeErrors].flat();
    for (const writeErrors of [[], [duplicate, { code: 121, index: 0 }]]) {
      const other = Object.assign(await duplicateKey(), { writeErrors });
      expect(() => duplicatesOf(other)).toThrow(other);
    }
    const lost = await duplicateKey();
    Object.assign(lost.result, { getWriteConcernError: () => new Error('no majority') });
    expect(() => duplicatesOf(lost)).toThrow(lost);
  });

  it('keeps the later time of two that insert a device at once', async () => {
    let calls = 0;
    // Another one comes first, between the look for the device and its insertion.
    const devices = meanwhile(stored.devices, 'bulkWrite', async () => {
      if ((calls += 1) > 1) return;
      await stored.devices.insertOne({ _id: 'd', since: new Date(T0), reason: 'r' });
      throw Object.assign(await duplicateKey(), { writeErrors: [{ code: 11_000, index: 0 }] });
    });
    const connection = {
      use: (work: (all: Collections) => unknown) => work({ ...stored, devices }),
    };
    const one = new MongodbNotifications(connection as unknown as Connection, new Reader({}));
    await one.deactivate([{ deviceId: 'd', sinceMs: T0 + 1, reason: 'r' }]);
    expect(await repository.inactiveSince(['d'])).toEqual([T0 + 1]);
  });

  const records = [newRecord(), newRecord(), newRecord()];
  const ids = records.map(({ id }) => id);
  /** They are created, then written again as often as that by others. */
  async function create(...writes: number[]): Promise<void> {
    await repository.create(records);
    for (const [i, count] of writes.entries()) {
      for (let version = 1; version <= count; version++)
        await repository.write([{ ...records[i]!, version }]);
    }
  }
  /** Of version 2, after which this happens before they are read again. */
  function write(act: () => Promise<unknown>): Promise<Set<string>> {
    const documents = records.map((record) => documentOf(JSON.stringify(record), 2, 'mine'));
    return writtenOf(meanwhile(stored.notifications, 'find', act), documents, 'mine');
  }
  const overwrite = (i: number) => repository.write([{ ...records[i]!, version: 2 }]);

  it('knows its own writes again, also where one was written over or deleted since', async () => {
    await create(1);
    expect(await write(async () => undefined)).toEqual(new Set(ids.slice(1)));
    await stored.notifications.deleteMany({});
    await create(1);
    expect(await write(() => overwrite(1))).toEqual(new Set(ids.slice(1)));
    await stored.notifications.deleteMany({});
    await create(1);
    const remove = () => stored.notifications.deleteOne({ _id: ids[2]! });
    expect(await write(remove)).toEqual(new Set(ids.slice(1)));
  });

  it('says that it does not know where both might have been written over', async () => {
    // The first had been written twice before, the second is written over afterwards: both are of version 3 now.
    await create(2);
    await expect(write(() => overwrite(1))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    // Whoever reads again finds what is true, and goes on.
    expect((await repository.find(ids)).map((record) => record?.version)).toEqual([3, 3, 2]);
  });

  it('reads nothing again where all or none were written', async () => {
    let reads = 0;
    const count = async () => void (reads += 1);
    await create();
    expect(await write(count)).toEqual(new Set(ids));
    expect(await write(count)).toEqual(new Set());
    expect(reads).toBe(0);
  });

  const over = finished(newRecord({ updatedAtMs: T0 }));
  const woken = { ...over, version: 1, wakeAtMs: T0 + 5 };
  async function createOver(): Promise<void> {
    await repository.create([over]);
    await repository.write([], [newAttempt({ notificationId: over.id })]);
  }
  const prune = (method: Method, act: () => Promise<unknown>) => {
    const notifications = meanwhile(stored.notifications, method, act);
    return prunedOf({ ...stored, notifications }, new Date(T0 + 1), 10);
  };
  const left = async () => [
    await stored.notifications.countDocuments(),
    await stored.attempts.countDocuments(),
  ];

  it('leaves a record that is woken while it is looked for, and its attempts', async () => {
    await createOver();
    const wake = () => repository.write([woken]);
    expect(await prune('updateMany', wake)).toEqual({ looked: 1, deleted: 0 });
    expect(await left()).toEqual([1, 1]);
    expect(await repository.find([over.id])).toEqual([{ ...woken, version: 2 }]);
  });

  it('deletes a record that it has marked, and refuses the write that comes too late', async () => {
    await createOver();
    const answers: unknown[] = [];
    const wake = async () => {
      const attempt = newAttempt({ notificationId: over.id, attemptNumber: 2 });
      answers.push(await repository.write([woken], [attempt]));
    };
    expect(await prune('deleteMany', wake)).toEqual({ looked: 1, deleted: 1 });
    expect(answers).toEqual([{ records: [false], attempts: [false] }]);
    expect(await left()).toEqual([0, 0]);
  });

  it('leaves the attempts of a record whose deletion somebody else has finished', async () => {
    await createOver();
    const finish = async () => {
      await repository.prune(T0 + 1, 10);
      await createOver();
    };
    expect(await prune('updateMany', finish)).toEqual({ looked: 1, deleted: 1 });
    await createOver();
    expect(await prune('deleteMany', finish)).toEqual({ looked: 1, deleted: 0 });
    // Its attempts went with the mark: the record is new, and has those that are reported from now on.
    expect((await repository.find([over.id]))[0]?.version).toBe(1);
  });
});
