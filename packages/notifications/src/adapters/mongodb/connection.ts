import { EngineError } from '@redrive/engine';
import type { Collection, Document, IndexDescription, MongoClient } from 'mongodb';
import { CallTimeout, faultOf } from './faults.ts';
import { loadMongodb } from './library.ts';
import type { MongodbSettings } from './options.ts';

export interface Stored extends Document {
  _id: string;
}

export interface Collections {
  notifications: Collection<Stored>;
  attempts: Collection<Stored>;
  /** Devices that are known to be inactive: `since`, and the `reason` for people. */
  devices: Collection<Stored>;
}

/** The client, while it is open. Every call is bounded in time, and its errors have codes. */
export class Connection {
  readonly #settings: MongodbSettings;
  #client: MongoClient | undefined;
  #opening: Promise<void> | undefined;

  constructor(settings: MongodbSettings) {
    this.#settings = settings;
  }

  open(): Promise<void> {
    this.#opening ??= this.#open().catch(async (error: unknown) => {
      await this.close();
      throw faultOf(error);
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#opening = undefined;
    await client?.close();
  }

  async use<T>(work: (collections: Collections) => Promise<T>): Promise<T> {
    if (!this.#opening) {
      const message =
        'The repository of notifications is not open: start the service first, and use it no more after its stop.';
      throw new EngineError('STORE_UNAVAILABLE', message);
    }
    await this.#opening;
    return this.#bounded(work);
  }

  async #open(): Promise<void> {
    const { url, maxConnections, statementTimeoutMs, connectTimeoutMs } = this.#settings;
    const mongodb = await loadMongodb();
    this.#client ??= new mongodb.MongoClient(url, {
      appName: 'redrive',
      maxPoolSize: maxConnections,
      connectTimeoutMS: connectTimeoutMs,
      serverSelectionTimeoutMS: connectTimeoutMs,
      waitQueueTimeoutMS: connectTimeoutMs,
      socketTimeoutMS: statementTimeoutMs,
      // Whoever is told that something is stored must find it after the loss of any one server.
      writeConcern: { w: 'majority', journal: true, wtimeoutMS: statementTimeoutMs },
      // And nobody is told of a record that might be rolled back.
      readConcern: { level: 'majority' },
      readPreference: 'primary',
    });
    await this.#bounded(makeIndexes);
  }

  async #bounded<T>(work: (collections: Collections) => Promise<T>): Promise<T> {
    const { database, statementTimeoutMs, connectTimeoutMs } = this.#settings;
    const db = this.#client!.db(database);
    const ms = statementTimeoutMs + connectTimeoutMs;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new CallTimeout(`no answer within ${ms} ms`)), ms);
    });
    try {
      const working = work({
        notifications: db.collection('notifications'),
        attempts: db.collection('delivery_attempts'),
        devices: db.collection('devices'),
      });
      return await Promise.race([working, late]);
    } catch (error) {
      throw faultOf(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

const recordIndexes: readonly IndexDescription[] = [
  { key: { idempotency_key: 1 }, unique: true },
  // Both what is due and what is over: a record without a time has null there.
  { key: { wake_at: 1, updated_at: 1 } },
  { key: { created_at: -1, _id: -1 } },
  { key: { status: 1, created_at: -1, _id: -1 } },
  { key: { 'recipient.user_id': 1, created_at: -1, _id: -1 } },
];

/** One that is there already changes nothing. Each by itself: FerretDB breaks off where one of several is there. */
async function makeIndexes({ notifications, attempts }: Collections): Promise<void> {
  for (const index of recordIndexes) await notifications.createIndexes([index]);
  const key = { notification_id: 1, device_id: 1, attempt_number: 1 } as const;
  await attempts.createIndexes([{ key, unique: true }]);
}
