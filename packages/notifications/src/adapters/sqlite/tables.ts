import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { prepareRows } from '@redrive/engine/internal/sqlite';
import type { DeliveryAttempt, NotificationRecord } from '../../model/notification.ts';
import type { AttemptPage, InactiveDevice, NotificationQuery } from '../../ports/repository.ts';
import { cleanReason } from '../../repository/limits.ts';

/** As `readRecord` takes it: id, version, document. */
export type StoredRecord = [id: string, version: unknown, text: unknown];
type StoredAttempt = [name: string, text: unknown];

const record = 'SELECT id, version, document FROM notifications';

/** The statements on the tables, prepared once for a connection. None waits, none commits. */
export class Tables {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** False: its id or its key is known. */
  insert({ id, notification, status, ...rest }: NotificationRecord, text: string): boolean {
    const { idempotencyKey, priority, recipient } = notification;
    const { wakeAtMs = null, createdAtMs, updatedAtMs } = rest;
    const { changes } = this.#statement(
      `INSERT INTO notifications (id, version, idempotency_key, status, priority, user_id,
         wake_at_ms, created_at_ms, updated_at_ms, document)
       VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ).run(
      id,
      idempotencyKey,
      status,
      priority,
      recipient.userId,
      wakeAtMs,
      createdAtMs,
      updatedAtMs,
      text,
    );
    return changes === 1;
  }

  find(id: string): StoredRecord | undefined {
    return this.#statement(`${record} WHERE id = ?`).get(id) as unknown as StoredRecord | undefined;
  }

  /** One statement: each takes a lock of its own. */
  findAll(ids: readonly string[]): StoredRecord[] {
    const found = this.#statement(`${record} WHERE id IN (SELECT value FROM json_each(?))`);
    return found.all(JSON.stringify(ids)) as unknown as StoredRecord[];
  }

  findByKey(key: string): StoredRecord | undefined {
    const found = this.#statement(`${record} WHERE idempotency_key = ?`).get(key);
    return found as unknown as StoredRecord | undefined;
  }

  /** What was asked for never changes, and its columns neither. */
  update({ id, version, status, wakeAtMs, updatedAtMs }: NotificationRecord, text: string) {
    const { changes } = this.#statement(
      `UPDATE notifications SET version = version + 1, status = ?, wake_at_ms = ?, updated_at_ms = ?, document = ?
       WHERE id = ? AND version = ?`,
    ).run(status, wakeAtMs ?? null, updatedAtMs, text, id, version);
    return changes === 1;
  }

  /** False: it is known. */
  insertAttempt(
    { notificationId, deviceId, attemptNumber }: DeliveryAttempt,
    text: string,
  ): boolean {
    const { changes } = this.#statement(
      `INSERT INTO notification_attempts (notification_id, device_id, attempt_number, document)
       VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ).run(notificationId, deviceId, attemptNumber, text);
    return changes === 1;
  }

  attempts(notificationId: string, { deviceId, after }: AttemptPage): Iterable<StoredAttempt> {
    const where = ['notification_id = ?'];
    const values: (string | number)[] = [notificationId];
    if (deviceId !== undefined) {
      where.push('device_id = ?');
      values.push(deviceId);
    }
    if (after) {
      where.push('(device_id, attempt_number) > (?, ?)');
      values.push(after.deviceId, after.attemptNumber);
    }
    return this.#rows(
      `SELECT notification_id || ':' || device_id || ':' || attempt_number, document
       FROM notification_attempts WHERE ${where.join(' AND ')} ORDER BY device_id, attempt_number`,
      values,
    );
  }

  due(nowMs: number): Iterable<StoredRecord> {
    return this.#rows(`${record} WHERE wake_at_ms <= ? ORDER BY wake_at_ms`, [nowMs]);
  }

  list({ status, priority, userId, before }: NotificationQuery): Iterable<StoredRecord> {
    const where: string[] = [];
    const values: (string | number)[] = [];
    for (const [column, value] of Object.entries({ status, priority, user_id: userId })) {
      if (value === undefined) continue;
      where.push(`${column} = ?`);
      values.push(value);
    }
    if (before) {
      where.push('(created_at_ms, id) < (?, ?)');
      values.push(before.createdAtMs, before.id);
    }
    const condition = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
    return this.#rows(`${record} ${condition} ORDER BY created_at_ms DESC, id DESC`, values);
  }

  deactivate({ deviceId, sinceMs, reason }: InactiveDevice): void {
    this.#statement(
      `INSERT INTO notification_devices (device_id, since_ms, reason) VALUES (?, ?, ?)
       ON CONFLICT (device_id) DO UPDATE SET since_ms = excluded.since_ms, reason = excluded.reason
       WHERE excluded.since_ms > since_ms`,
    ).run(deviceId, sinceMs, cleanReason(reason));
  }

  inactiveSince(deviceIds: readonly string[]): [deviceId: string, sinceMs: number][] {
    const found = this.#statement(
      `SELECT device_id, since_ms FROM notification_devices
       WHERE device_id IN (SELECT value FROM json_each(?))`,
    );
    return found.all(JSON.stringify(deviceIds)) as unknown as [string, number][];
  }

  activate(deviceId: string): void {
    this.#statement('DELETE FROM notification_devices WHERE device_id = ?').run(deviceId);
  }

  prune(beforeMs: number, limit: number): number {
    const pruned = this.#statement(
      `DELETE FROM notifications WHERE id IN (SELECT id FROM notifications
         WHERE wake_at_ms IS NULL AND updated_at_ms < ? ORDER BY updated_at_ms LIMIT ?) RETURNING id`,
    ).all(beforeMs, limit) as unknown as [string][];
    const attempts = this.#statement('DELETE FROM notification_attempts WHERE notification_id = ?');
    for (const [id] of pruned) attempts.run(id);
    return pruned.length;
  }

  #rows<R>(text: string, values: readonly (string | number)[]): Iterable<R> {
    return this.#statement(text).iterate(...values) as unknown as Iterable<R>;
  }

  /** Few texts come about: a filter has a handful of forms. */
  #statement(text: string): StatementSync {
    const known = this.#prepared.get(text) ?? prepareRows(this.#db, text);
    this.#prepared.set(text, known);
    return known;
  }
}
