import { randomUUID } from 'node:crypto';
import { EngineError } from '@redrive/engine';
import type { AnyBulkWriteOperation, Collection, Filter } from 'mongodb';
import type { DeliveryAttempt, NotificationRecord } from '../../model/notification.ts';
import type {
  AttemptPage,
  Created,
  InactiveDevice,
  NotificationQuery,
  NotificationRepository,
  Written,
} from '../../ports/repository.ts';
import {
  attemptText,
  cleanReason,
  isIdentifier,
  latestOf,
  notWritten,
  recordText,
  rowLimit,
} from '../../repository/limits.ts';
import type { Reader } from '../../repository/unreadable.ts';
import type { Collections, Connection, Stored } from './connection.ts';
import {
  attemptDocument,
  attemptIn,
  documentOf,
  type RecordDocument,
  recordIn,
  type Values,
} from './documents.ts';
import { duplicatesOf } from './faults.ts';
import { prunedOf, writtenOf } from './writes.ts';

/** So often a record may be deleted between being known and being looked for. */
const MAX_LOOKS = 5;
/** The last time that a date can be. */
const LAST_DATE = 8.64e15;

export class MongodbNotifications implements NotificationRepository {
  readonly #connection: Connection;
  readonly #reader: Reader;

  constructor(connection: Connection, reader: Reader) {
    this.#connection = connection;
    this.#reader = reader;
  }

  open(): Promise<void> {
    return this.#connection.open();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async create(records: readonly NotificationRecord[]): Promise<Created[]> {
    const writer = randomUUID();
    const documents = records.map((record) => documentOf(recordText(record), 1, writer));
    const answers = new Map<number, { isNew: boolean; document: Values }>();
    for (let looks = 1; answers.size < documents.length; looks++) {
      if (looks > MAX_LOOKS) throw contended();
      const left = documents.map((_, i) => i).filter((i) => !answers.has(i));
      const first = firstOnes(left, documents);
      const added = await this.#insert(
        ({ notifications }) => notifications,
        first.map((i) => documents[i]!),
      );
      for (const [at, i] of first.entries()) {
        if (added[at]) answers.set(i, { isNew: true, document: documents[i]! });
      }
      const known = left.filter((i) => !answers.has(i));
      const found = await this.#known(known.map((i) => documents[i]!));
      for (const [at, document] of found.entries()) {
        if (document) answers.set(known[at]!, { isNew: false, document });
      }
    }
    return this.#reader.strict(documents, (_, i) => {
      const { isNew, document } = answers.get(i)!;
      return { isNew, record: recordIn(document) };
    });
  }

  async find(ids: readonly string[]): Promise<(NotificationRecord | undefined)[]> {
    const asked = ids.filter(isIdentifier);
    const found = await this.#all(({ notifications }) => notifications, { _id: { $in: asked } });
    const byId = new Map(found.map((document) => [document._id, document]));
    return this.#reader.strict(ids, (id) => {
      const document = byId.get(id);
      return document && recordIn(document);
    });
  }

  async write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Written> {
    const writer = randomUUID();
    const documents = records.map((record) =>
      documentOf(recordText(record), record.version + 1, writer),
    );
    const made = attempts.map((attempt) => attemptDocument(attemptText(attempt)));
    const first = new Map(documents.toReversed().map((one) => [one._id, one]));
    // A version that no record has might not even be a number, on which FerretDB hangs up.
    const given = [...first.values()].filter(({ version }) => version > 1);
    const ids = await this.#connection.use(({ notifications }) =>
      writtenOf(notifications, given, writer),
    );
    const written = documents.map((one) => first.get(one._id) === one && ids.has(one._id));
    const lost = notWritten(records, written);
    const added = await this.#addAttempts(
      made.filter((_, i) => !lost.has(attempts[i]!.notificationId)),
    );
    return { records: written, attempts: made.map((one) => added.has(one)) };
  }

  /** Those that are new. */
  async #addAttempts(documents: readonly Values[]): Promise<ReadonlySet<Values>> {
    const first = new Map(documents.toReversed().map((one) => [attemptKey(one), one]));
    const given = [...first.values()];
    const added = await this.#insert(({ attempts }) => attempts, given);
    return new Set(given.filter((_, i) => added[i]));
  }

  attempts(notificationId: string, page: AttemptPage): Promise<DeliveryAttempt[]> {
    const { deviceId, after, limit } = page;
    const filter: Filter<Stored> = { notification_id: notificationId };
    if (deviceId !== undefined) filter['device_id'] = deviceId;
    if (after) {
      filter['$or'] = [
        { device_id: { $gt: after.deviceId } },
        { device_id: after.deviceId, attempt_number: { $gt: after.attemptNumber } },
      ];
    }
    const sort = { device_id: 1, attempt_number: 1 } as const;
    return this.#readable(({ attempts }) => attempts, filter, sort, limit, attemptIn);
  }

  due(nowMs: number, limit: number): Promise<NotificationRecord[]> {
    const filter = { wake_at: { $lte: new Date(Math.min(nowMs, LAST_DATE)) } };
    const of = ({ notifications }: Collections) => notifications;
    return this.#readable(of, filter, { wake_at: 1 }, limit, recordIn);
  }

  list({ status, priority, userId, before, limit }: NotificationQuery) {
    const filter: Filter<Stored> = {};
    if (status !== undefined) filter['status'] = status;
    if (priority !== undefined) filter['priority'] = priority;
    if (userId !== undefined) filter['recipient.user_id'] = userId;
    if (before) {
      const createdAt = new Date(before.createdAtMs);
      filter['created_at'] = { $lte: createdAt };
      filter.$or = [{ created_at: { $lt: createdAt } }, { _id: { $lt: before.id } }];
    }
    const of = ({ notifications }: Collections) => notifications;
    return this.#readable(of, filter, { created_at: -1, _id: -1 }, limit, recordIn);
  }

  /** Twice where need be: of two that insert a device at once one fails, and its time may be the later. */
  async deactivate(devices: readonly InactiveDevice[]): Promise<void> {
    let left = latestOf(devices).map(
      ({ deviceId, sinceMs, reason }): AnyBulkWriteOperation<Stored> => {
        const since = new Date(sinceMs);
        const filter = { _id: deviceId, since: { $lt: since } };
        const update = { $set: { since, reason: cleanReason(reason) } };
        return { updateOne: { filter, update, upsert: true } };
      },
    );
    for (let round = 1; round <= 2 && left.length > 0; round++) {
      const known = await this.#bulk(({ devices: all }) => all, left);
      left = left.filter((_, i) => known.has(i));
    }
  }

  async inactiveSince(deviceIds: readonly string[]): Promise<(number | undefined)[]> {
    const filter = { _id: { $in: deviceIds.filter(isIdentifier) } };
    const found = await this.#all(({ devices }) => devices, filter);
    const since = new Map(found.map((one) => [one._id, (one['since'] as Date).getTime()]));
    return deviceIds.map((deviceId) => since.get(deviceId));
  }

  async activate(deviceIds: readonly string[]): Promise<void> {
    const asked = deviceIds.filter(isIdentifier);
    await this.#connection.use(({ devices }) => devices.deleteMany({ _id: { $in: asked } }));
  }

  async prune(beforeMs: number, limit: number): Promise<number> {
    const most = rowLimit(limit);
    const before = new Date(Math.min(beforeMs, LAST_DATE));
    let pruned = 0;
    while (pruned < most) {
      const { looked, deleted } = await this.#connection.use((collections) =>
        prunedOf(collections, before, most - pruned),
      );
      pruned += deleted;
      if (looked === 0 || deleted < looked) break;
    }
    return pruned;
  }

  /** For each: whether it was inserted; else it is known. */
  async #insert(
    of: (collections: Collections) => Collection<Stored>,
    documents: readonly Values[],
  ): Promise<boolean[]> {
    const inserts = documents.map((document) => ({ insertOne: { document } }));
    const known = await this.#bulk(of, inserts as unknown as AnyBulkWriteOperation<Stored>[]);
    return documents.map((_, i) => !known.has(i));
  }

  /** Each by itself. Answers which of them met a key that is there. */
  async #bulk(
    of: (collections: Collections) => Collection<Stored>,
    operations: readonly AnyBulkWriteOperation<Stored>[],
  ): Promise<Set<number>> {
    return this.#connection.use(async (collections) => {
      if (operations.length === 0) return new Set();
      try {
        await of(collections).bulkWrite(operations, { ordered: false });
        return new Set();
      } catch (error) {
        return duplicatesOf(error);
      }
    });
  }

  /** The documents that have the id or the key of these; undefined where there is none any more. */
  async #known(documents: readonly RecordDocument[]): Promise<(Values | undefined)[]> {
    const ids = documents.map(({ _id }) => _id);
    const keys = documents.map((document) => document['idempotency_key']);
    const filter = { $or: [{ _id: { $in: ids } }, { idempotency_key: { $in: keys } }] };
    const found = await this.#all(({ notifications }) => notifications, filter);
    const byId = new Map(found.map((one) => [one['_id'], one]));
    const byKey = new Map(found.map((one) => [one['idempotency_key'], one]));
    return documents.map((one) => byId.get(one._id) ?? byKey.get(one['idempotency_key']));
  }

  #all(
    of: (collections: Collections) => Collection<Stored>,
    filter: Filter<Stored>,
  ): Promise<Stored[]> {
    return this.#connection.use((collections) => of(collections).find(filter).toArray());
  }

  /** As many as can be read, up to the limit: for every one that cannot be read one more is asked for. */
  async #readable<R>(
    of: (collections: Collections) => Collection<Stored>,
    filter: Filter<Stored>,
    sort: Readonly<Record<string, 1 | -1>>,
    limit: number,
    read: (document: Values) => R,
  ): Promise<R[]> {
    const most = rowLimit(limit);
    for (let asked = most; ;) {
      const documents = await this.#connection.use(async (collections) =>
        asked === 0 ? [] : of(collections).find(filter, { sort, limit: asked }).toArray(),
      );
      const found = documents.flatMap((one) => this.#reader.tolerant(() => read(one)) ?? []);
      if (found.length >= most || documents.length < asked) return found.slice(0, most);
      asked += documents.length - found.length;
    }
  }
}

/** Of those with one id or one key, the first. */
function firstOnes(left: readonly number[], documents: readonly RecordDocument[]): number[] {
  const ids = new Set<unknown>();
  const keys = new Set<unknown>();
  return left.filter((i) => {
    const { _id: id, idempotency_key: key } = documents[i]!;
    const isFirst = !ids.has(id) && !keys.has(key);
    ids.add(id);
    keys.add(key);
    return isFirst;
  });
}

function attemptKey(document: Values): string {
  const { notification_id: id, device_id: deviceId, attempt_number: number } = document;
  return JSON.stringify([id, deviceId, number]);
}

function contended(): EngineError {
  const message =
    'A record with the same id or idempotency key was created and deleted again and again meanwhile. Trying again is safe.';
  return new EngineError('STORE_UNAVAILABLE', message);
}
