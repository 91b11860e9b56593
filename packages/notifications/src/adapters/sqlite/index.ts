import type { SqliteOptions } from '@redrive/engine/sqlite';
import { type Database, databaseIn } from '@redrive/engine/internal/sqlite';
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
  latestOf,
  notWritten,
  recordText,
  rowLimit,
} from '../../repository/limits.ts';
import { readAttempt, readRecord } from '../../repository/stored.ts';
import { Reader, type UnreadableOptions } from '../../repository/unreadable.ts';
import { migrateNotifications } from './schema.ts';
import { type StoredRecord, Tables } from './tables.ts';

export type SqliteNotificationsOptions = SqliteOptions & UnreadableOptions;

/**
 * Records in one file, which several processes of one machine may share. It may be the file of an engine: the records
 * have tables of their own. Every change is on the disk before it is answered; concurrent calls share a commit.
 */
export function sqliteNotifications(
  file: string | URL,
  { onUnreadable, ...options }: SqliteNotificationsOptions = {},
): NotificationRepository {
  const { database } = databaseIn(file, options, (db) => new Tables(db), migrateNotifications);
  return new SqliteNotifications(database, new Reader(onUnreadable ? { onUnreadable } : {}));
}

/** A commit deletes no more: the event loop stands still meanwhile, and other processes wait. */
const PRUNED_AT_ONCE = 200;

class SqliteNotifications implements NotificationRepository {
  readonly #database: Database<Tables>;
  readonly #reader: Reader;

  constructor(database: Database<Tables>, reader: Reader) {
    this.#database = database;
    this.#reader = reader;
  }

  open(): Promise<void> {
    return this.#database.open();
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  async create(records: readonly NotificationRecord[]): Promise<Created[]> {
    const texts = records.map(recordText);
    const known = await this.#database.write((tables) =>
      records.map((record, i) => {
        if (tables.insert(record, texts[i]!)) return undefined;
        return tables.find(record.id) ?? tables.findByKey(record.notification.idempotencyKey)!;
      }),
    );
    return this.#reader.strict(known, (row, i) => {
      const stored: StoredRecord = row ?? [records[i]!.id, 1, texts[i]!];
      return { isNew: row === undefined, record: readRecord(...stored) };
    });
  }

  async find(ids: readonly string[]): Promise<(NotificationRecord | undefined)[]> {
    const rows = await this.#database.read((tables) => tables.findAll(ids));
    const byId = new Map(rows.map((row) => [row[0], row]));
    return this.#reader.strict(ids, (id) => {
      const row = byId.get(id);
      return row && readRecord(...row);
    });
  }

  async write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Written> {
    const texts = records.map(recordText);
    const attemptTexts = attempts.map(attemptText);
    return this.#database.write((tables) => {
      const written = records.map((record, i) => tables.update(record, texts[i]!));
      const lost = notWritten(records, written);
      const added = attempts.map(
        (one, i) => !lost.has(one.notificationId) && tables.insertAttempt(one, attemptTexts[i]!),
      );
      return { records: written, attempts: added };
    });
  }

  attempts(notificationId: string, page: AttemptPage): Promise<DeliveryAttempt[]> {
    return this.#readable(
      page.limit,
      (tables) => tables.attempts(notificationId, page),
      ([name, text]) => readAttempt(name, text),
    );
  }

  due(nowMs: number, limit: number): Promise<NotificationRecord[]> {
    return this.#readable(
      limit,
      (tables) => tables.due(nowMs),
      (row) => readRecord(...row),
    );
  }

  list(query: NotificationQuery): Promise<NotificationRecord[]> {
    return this.#readable(
      query.limit,
      (tables) => tables.list(query),
      (row) => readRecord(...row),
    );
  }

  async deactivate(devices: readonly InactiveDevice[]): Promise<void> {
    const latest = latestOf(devices);
    await this.#database.write((tables) => {
      for (const device of latest) tables.deactivate(device);
    });
  }

  async inactiveSince(deviceIds: readonly string[]): Promise<(number | undefined)[]> {
    const rows = await this.#database.read((tables) => tables.inactiveSince(deviceIds));
    const since = new Map(rows);
    return deviceIds.map((deviceId) => since.get(deviceId));
  }

  async activate(deviceIds: readonly string[]): Promise<void> {
    await this.#database.write((tables) => {
      for (const deviceId of deviceIds) tables.activate(deviceId);
    });
  }

  async prune(beforeMs: number, limit: number): Promise<number> {
    let pruned = 0;
    for (const most = rowLimit(limit); pruned < most;) {
      const atOnce = Math.min(PRUNED_AT_ONCE, most - pruned);
      const some = await this.#database.write((tables) => tables.prune(beforeMs, atOnce));
      pruned += some;
      if (some < atOnce) break;
    }
    return pruned;
  }

  /** As many as can be read, up to the limit: what cannot be read takes nobody's place. */
  #readable<R, T>(
    limit: number,
    rows: (tables: Tables) => Iterable<R>,
    read: (row: R) => T,
  ): Promise<T[]> {
    return this.#database.read((tables) => {
      const found: T[] = [];
      if (rowLimit(limit) === 0) return found;
      for (const row of rows(tables)) {
        const one = this.#reader.tolerant(() => read(row));
        if (one !== undefined && found.push(one) === rowLimit(limit)) break;
      }
      return found;
    });
  }
}
