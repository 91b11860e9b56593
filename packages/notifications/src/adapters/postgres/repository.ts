import { EngineError } from '@redrive/engine';
import { type Database, numberOf, type Row } from '@redrive/engine/internal/postgres';
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
  isIdentifier,
  latestOf,
  recordText,
  rowLimit,
} from '../../repository/limits.ts';
import { readAttempt, readRecord } from '../../repository/stored.ts';
import type { Reader } from '../../repository/unreadable.ts';
import type { Names } from './schema.ts';
import * as texts from './texts.ts';

interface Parts {
  database: Database;
  names: Names;
  reader: Reader;
  open: () => Promise<void>;
  close: () => Promise<void>;
}

/** One statement deletes no more: it would hold its locks for too long. */
const PRUNED_AT_ONCE = 1000;
/** So often a record may be deleted between being known and being looked for. */
const MAX_LOOKS = 5;

export class PostgresNotifications implements NotificationRepository {
  readonly #parts: Parts;
  #opening: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  open(): Promise<void> {
    this.#opening ??= this.#parts.open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#opening = undefined;
    await this.#parts.close();
  }

  async create(records: readonly NotificationRecord[]): Promise<Created[]> {
    const batch = records.map((value) => ({ value, text: recordText(value) }));
    const answers = new Map<number, () => Created>();
    for (let looks = 1; answers.size < batch.length; looks++) {
      if (looks > MAX_LOOKS) throw contended();
      const left = batch.map((_, i) => i).filter((i) => !answers.has(i));
      const first = firstOnes(left, batch);
      const given = first.map((i) => batch[i]!);
      const rows = await this.#askOnce(texts.insertRecords(this.#parts.names, given), given.length);
      const added = new Set(rows.map(([id]) => id));
      for (const i of first) {
        const { value, text } = batch[i]!;
        if (!added.has(value.id)) continue;
        answers.set(i, () => ({ isNew: true, record: readRecord(value.id, 1, text) }));
      }
      const known = left.filter((i) => !answers.has(i));
      const found = await this.#known(known.map((i) => batch[i]!.value));
      for (const [at, row] of found.entries()) {
        if (row) answers.set(known[at]!, () => ({ isNew: false, record: recordIn(row) }));
      }
    }
    return this.#parts.reader.strict(batch, (_, i) => answers.get(i)!());
  }

  async find(ids: readonly string[]): Promise<(NotificationRecord | undefined)[]> {
    const rows = await this.#byId(ids);
    return this.#parts.reader.strict(ids, (id) => {
      const row = rows.get(id);
      return row && recordIn(row);
    });
  }

  async write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Written> {
    const batch = records.map((value) => ({ value, text: recordText(value), key: value.id }));
    const made = attempts.map((value) => {
      const { notificationId: id, deviceId, attemptNumber } = value;
      return { value, text: attemptText(value), key: keyOf([id, deviceId, attemptNumber]) };
    });
    const first = new Map([...batch, ...made].toReversed().map((one) => [one.key, one]));
    const isFirst = (one: { key: string }) => first.get(one.key) === one;
    const given = batch.filter(isFirst).toSorted((one, other) => (one.key < other.key ? -1 : 1));
    const statement = texts.writeAll(this.#parts.names, given, made.filter(isFirst));
    const rows = await this.#askOnce(statement, given.length + made.length);
    const done = new Set(rows.map((row) => (row[1] === null ? row[0] : keyOf(row))));
    const isDone = (one: { key: string }) => isFirst(one) && done.has(one.key);
    return { records: batch.map(isDone), attempts: made.map(isDone) };
  }

  async attempts(notificationId: string, page: AttemptPage): Promise<DeliveryAttempt[]> {
    const ids = [notificationId, page.deviceId, page.after?.deviceId];
    if (!ids.every(isAskable)) return [];
    return this.#readable(
      page.limit,
      (limit) => texts.selectAttempts(this.#parts.names, notificationId, page, limit),
      ([name, text]) => readAttempt(name as string, text),
    );
  }

  due(nowMs: number, limit: number): Promise<NotificationRecord[]> {
    return this.#readable(
      limit,
      (most) => texts.selectDue(this.#parts.names, nowMs, most),
      recordIn,
    );
  }

  async list(query: NotificationQuery): Promise<NotificationRecord[]> {
    if (![query.userId, query.before?.id].every(isAskable)) return [];
    return this.#readable(
      query.limit,
      (limit) => texts.selectList(this.#parts.names, query, limit),
      recordIn,
    );
  }

  async deactivate(devices: readonly InactiveDevice[]): Promise<void> {
    const latest = latestOf(devices);
    await this.#ask(texts.upsertDevices(this.#parts.names, latest), latest.length);
  }

  async inactiveSince(deviceIds: readonly string[]): Promise<(number | undefined)[]> {
    const asked = deviceIds.filter(isIdentifier);
    const rows = await this.#ask(texts.selectDevices(this.#parts.names, asked), asked.length);
    const since = new Map(rows.map(([id, ms]) => [id, numberOf(ms)]));
    return deviceIds.map((deviceId) => since.get(deviceId));
  }

  async activate(deviceIds: readonly string[]): Promise<void> {
    const asked = deviceIds.filter(isIdentifier);
    await this.#ask(texts.deleteDevices(this.#parts.names, asked), asked.length);
  }

  async prune(beforeMs: number, limit: number): Promise<number> {
    let pruned = 0;
    for (const most = rowLimit(limit); pruned < most;) {
      const atOnce = Math.min(PRUNED_AT_ONCE, most - pruned);
      const [row] = await this.#ask(texts.pruneRecords(this.#parts.names, beforeMs, atOnce));
      pruned += numberOf(row![0]);
      if (numberOf(row![0]) < atOnce) break;
    }
    return pruned;
  }

  /** The rows that have the id or the key of these; undefined where there is none any more. */
  async #known(records: readonly NotificationRecord[]): Promise<(Row | undefined)[]> {
    const byId = await this.#byId(records.map(({ id }) => id));
    const ownKey = ({ notification }: NotificationRecord) => notification.idempotencyKey;
    const keys = records.filter(({ id }) => !byId.has(id)).map(ownKey);
    const rows = await this.#ask(texts.selectByKeys(this.#parts.names, keys), keys.length);
    const byKey = new Map(rows.map((row) => [row[3], row]));
    return records.map((record) => byId.get(record.id) ?? byKey.get(ownKey(record)));
  }

  async #byId(ids: readonly string[]): Promise<Map<unknown, Row>> {
    const asked = ids.filter(isIdentifier);
    const rows = await this.#ask(texts.selectByIds(this.#parts.names, asked), asked.length);
    return new Map(rows.map((row) => [row[0], row]));
  }

  /** As many as can be read, up to the limit: for every one that cannot be read one more is asked for. */
  async #readable<T>(
    limit: number,
    statement: (limit: number) => texts.Statement,
    read: (row: Row) => T,
  ): Promise<T[]> {
    const most = rowLimit(limit);
    for (let asked = most; ;) {
      const rows = await this.#ask(statement(asked), asked);
      const found = rows.flatMap((row) => this.#parts.reader.tolerant(() => read(row)) ?? []);
      if (found.length >= most || rows.length < asked) return found.slice(0, most);
      asked += rows.length - found.length;
    }
  }

  /** A statement that may run twice without harm: sent again by itself when a connection turns out to be dead. */
  #ask(statement: texts.Statement, count = 1): Promise<Row[]> {
    return this.#send(statement, count, true);
  }

  /** A second time would say false of what was written: the caller has to know that the answer was lost. */
  #askOnce(statement: texts.Statement, count: number): Promise<Row[]> {
    return this.#send(statement, count, false);
  }

  /** Nothing is asked about nothing: `count` is how much the statement is about. */
  async #send({ text, values }: texts.Statement, count: number, again: boolean): Promise<Row[]> {
    if (!this.#opening) throw notOpen();
    await this.#opening;
    if (count === 0) return [];
    const { database } = this.#parts;
    return again ? database.queryAgain(text, values) : database.query(text, values);
  }
}

/** Of those with one id or one key, the first. */
function firstOnes(
  left: readonly number[],
  batch: readonly texts.WithText<NotificationRecord>[],
): number[] {
  const ids = new Set<string>();
  const keys = new Set<string>();
  return left.filter((i) => {
    const { id, notification } = batch[i]!.value;
    const isFirst = !ids.has(id) && !keys.has(notification.idempotencyKey);
    ids.add(id);
    keys.add(notification.idempotencyKey);
    return isFirst;
  });
}

function recordIn([id, version, text]: Row): NotificationRecord {
  return readRecord(id as string, numberOf(version), text);
}

/** Of an attempt. No identifier has a NUL, so that it is no other attempt's, and no record's. */
function keyOf(columns: readonly unknown[]): string {
  return columns.join('\0');
}

function isAskable(text: string | undefined): boolean {
  return text === undefined || isIdentifier(text);
}

function notOpen(): EngineError {
  const message =
    'The repository of notifications is not open: start the service first, and use it no more after its stop.';
  return new EngineError('STORE_UNAVAILABLE', message);
}

function contended(): EngineError {
  const message =
    'A record with the same id or idempotency key was created and deleted again and again meanwhile. Trying again is safe.';
  return new EngineError('STORE_UNAVAILABLE', message);
}
