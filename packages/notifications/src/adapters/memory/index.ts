import { EngineError } from '@redrive/engine';
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

/** Records in memory: for tests and development. They are gone with the process. */
export function memoryNotifications(): NotificationRepository {
  return new MemoryNotifications();
}

class MemoryNotifications implements NotificationRepository {
  /** Kept as copies: neither who stored one nor who reads one can change it. */
  readonly #records = new Map<string, NotificationRecord>();
  readonly #idByKey = new Map<string, string>();
  readonly #attempts = new Map<string, Map<string, DeliveryAttempt>>();
  readonly #inactive = new Map<string, number>();
  #isOpen = false;

  async open(): Promise<void> {
    this.#isOpen = true;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
  }

  async create(records: readonly NotificationRecord[]): Promise<Created[]> {
    this.#assertOpen();
    const copies = records.map((record) => copyOf(recordText(record)) as NotificationRecord);
    return copies.map((copy) => {
      const key = copy.notification.idempotencyKey;
      const known = this.#records.get(copy.id) ?? this.#records.get(this.#idByKey.get(key) ?? '');
      if (known) return { isNew: false, record: structuredClone(known) };
      const record = { ...copy, version: 1 };
      this.#records.set(record.id, record);
      this.#idByKey.set(key, record.id);
      return { isNew: true, record: structuredClone(record) };
    });
  }

  async find(ids: readonly string[]): Promise<(NotificationRecord | undefined)[]> {
    this.#assertOpen();
    return ids.map((id) => structuredClone(this.#records.get(id)));
  }

  async write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Written> {
    this.#assertOpen();
    const copies = records.map((record) => copyOf(recordText(record)) as NotificationRecord);
    const made = attempts.map((attempt) => copyOf(attemptText(attempt)) as DeliveryAttempt);
    const written = copies.map((copy) => this.#update(copy));
    const lost = notWritten(records, written);
    const added = made.map((one) => !lost.has(one.notificationId) && this.#addAttempt(one));
    return { records: written, attempts: added };
  }

  #update(copy: NotificationRecord): boolean {
    const known = this.#records.get(copy.id);
    if (!known || known.version !== copy.version) return false;
    this.#records.set(copy.id, { ...copy, version: known.version + 1 });
    return true;
  }

  #addAttempt(copy: DeliveryAttempt): boolean {
    const { notificationId, deviceId, attemptNumber } = copy;
    const known = this.#attempts.get(notificationId) ?? new Map<string, DeliveryAttempt>();
    this.#attempts.set(notificationId, known);
    const key = `${attemptNumber} ${deviceId}`;
    if (known.has(key)) return false;
    known.set(key, copy);
    return true;
  }

  async attempts(notificationId: string, page: AttemptPage): Promise<DeliveryAttempt[]> {
    this.#assertOpen();
    const { deviceId, after, limit } = page;
    const known = [...(this.#attempts.get(notificationId)?.values() ?? [])];
    return known
      .filter((one) => deviceId === undefined || one.deviceId === deviceId)
      .filter((one) => after === undefined || compareAttempts(one, after) > 0)
      .toSorted(compareAttempts)
      .slice(0, rowLimit(limit))
      .map((one) => structuredClone(one));
  }

  async due(nowMs: number, limit: number): Promise<NotificationRecord[]> {
    this.#assertOpen();
    const wakeAt = ({ wakeAtMs = Infinity }: NotificationRecord) => wakeAtMs;
    return [...this.#records.values()]
      .filter((record) => wakeAt(record) <= nowMs)
      .toSorted((one, other) => wakeAt(one) - wakeAt(other))
      .slice(0, rowLimit(limit))
      .map((record) => structuredClone(record));
  }

  async list(query: NotificationQuery): Promise<NotificationRecord[]> {
    this.#assertOpen();
    const { status, priority, userId, before, limit } = query;
    return [...this.#records.values()]
      .filter((record) => status === undefined || record.status === status)
      .filter(({ notification }) => priority === undefined || notification.priority === priority)
      .filter(
        ({ notification }) => userId === undefined || notification.recipient.userId === userId,
      )
      .filter((record) => before === undefined || compareRecords(record, before) < 0)
      .toSorted((one, other) => compareRecords(other, one))
      .slice(0, rowLimit(limit))
      .map((record) => structuredClone(record));
  }

  async deactivate(devices: readonly InactiveDevice[]): Promise<void> {
    this.#assertOpen();
    for (const { deviceId, sinceMs } of latestOf(devices)) {
      const known = this.#inactive.get(deviceId) ?? -1;
      this.#inactive.set(deviceId, Math.max(known, sinceMs));
    }
  }

  async inactiveSince(deviceIds: readonly string[]): Promise<(number | undefined)[]> {
    this.#assertOpen();
    return deviceIds.map((deviceId) => this.#inactive.get(deviceId));
  }

  async activate(deviceIds: readonly string[]): Promise<void> {
    this.#assertOpen();
    for (const deviceId of deviceIds) this.#inactive.delete(deviceId);
  }

  async prune(beforeMs: number, limit: number): Promise<number> {
    this.#assertOpen();
    const over = [...this.#records.values()]
      .filter(({ wakeAtMs, updatedAtMs }) => wakeAtMs === undefined && updatedAtMs < beforeMs)
      .toSorted((one, other) => one.updatedAtMs - other.updatedAtMs)
      .slice(0, rowLimit(limit));
    for (const { id, notification } of over) {
      this.#records.delete(id);
      this.#idByKey.delete(notification.idempotencyKey);
      this.#attempts.delete(id);
    }
    return over.length;
  }

  #assertOpen(): void {
    if (this.#isOpen) return;
    const message =
      'The repository in memory is not open: start the service first, and use it no more after its stop.';
    throw new EngineError('STORE_UNAVAILABLE', message);
  }
}

function copyOf(text: string): unknown {
  return JSON.parse(text);
}

type Identified = Pick<NotificationRecord, 'createdAtMs' | 'id'>;

function compareRecords(one: Identified, other: Identified): number {
  return one.createdAtMs - other.createdAtMs || compareTexts(one.id, other.id);
}

type Numbered = Pick<DeliveryAttempt, 'deviceId' | 'attemptNumber'>;

function compareAttempts(one: Numbered, other: Numbered): number {
  return compareTexts(one.deviceId, other.deviceId) || one.attemptNumber - other.attemptNumber;
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
