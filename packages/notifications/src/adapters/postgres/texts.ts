/** The statements. Each takes a whole batch as arrays: one round trip, whatever its size. */
import { type Column, few, Params, rowsOf, timeAt } from '@redrive/engine/internal/postgres';
import { LAST_DATE_MS } from 'redrive/internal';
import type { DeliveryAttempt, NotificationRecord } from '../../model/notification.ts';
import type { AttemptPage, InactiveDevice, NotificationQuery } from '../../ports/repository.ts';
import { cleanReason } from '../../repository/limits.ts';
import type { Names } from './schema.ts';

export interface Statement {
  text: string;
  values: unknown[];
}

/** A record or an attempt with its JSON. */
export interface WithText<T> {
  value: T;
  text: string;
}

/** In the order of the keys: batches that overlap wait for each other, and not in a circle. */
export function insertRecords(
  { notifications }: Names,
  batch: readonly WithText<NotificationRecord>[],
): Statement {
  const of = (pick: (record: NotificationRecord) => Column['values'][number]) =>
    batch.map(({ value }) => pick(value));
  const params = new Params();
  const rows = rowsOf(
    [
      { name: 'id', type: 'text', isKey: true, values: of(({ id }) => id) },
      { name: 'key', type: 'text', values: of((r) => r.notification.idempotencyKey) },
      { name: 'status', type: 'text', values: of(({ status }) => status) },
      { name: 'priority', type: 'text', values: of((r) => r.notification.priority) },
      { name: 'user_id', type: 'text', values: of((r) => r.notification.recipient.userId) },
      { name: 'wake', type: 'int8', values: of(({ wakeAtMs }) => wakeAtMs) },
      { name: 'created', type: 'int8', values: of(({ createdAtMs }) => createdAtMs) },
      { name: 'updated', type: 'int8', values: of(({ updatedAtMs }) => updatedAtMs) },
      { name: 'document', type: 'json', values: batch.map(({ text }) => text) },
    ],
    params,
  );
  const text = `INSERT INTO ${notifications} (id, version, idempotency_key, status, priority, user_id,
      wake_at, created_at, updated_at, document)
    SELECT id, 1, key, status, priority, user_id, ${timeAt('wake')}, ${timeAt('created')},
      ${timeAt('updated')}, document
    FROM (${rows}) AS given ORDER BY key COLLATE "C", id COLLATE "C"
    ON CONFLICT DO NOTHING RETURNING id`;
  return { text, values: params.values };
}

/**
 * Records, then attempts, in one statement. Its rows are the ids of the records that were written, and the keys of the
 * attempts that were added.
 */
export function writeAll(
  names: Names,
  records: readonly WithText<NotificationRecord>[],
  attempts: readonly WithText<DeliveryAttempt>[],
): Statement {
  const params = new Params();
  const steps: string[] = [];
  const answers: string[] = [];
  if (records.length > 0) {
    steps.push(updateRecords(names, records, params));
    answers.push('SELECT id, NULL::text, NULL::int FROM updated');
  }
  if (attempts.length > 0) {
    const given = new Set(records.map(({ value }) => value.id));
    steps.push(insertAttempts(names, attempts, given, params));
    answers.push(`SELECT ${attemptKey} FROM added`);
  }
  const text = `WITH ${steps.join(', ')} ${answers.join(' UNION ALL ')}`;
  return { text, values: params.values };
}

/** The rows are looked up one by one in the order that they are given in: by id, so that no two batches deadlock. */
function updateRecords(
  { notifications }: Names,
  batch: readonly WithText<NotificationRecord>[],
  params: Params,
): string {
  const of = (pick: (record: NotificationRecord) => Column['values'][number]) =>
    batch.map(({ value }) => pick(value));
  const rows = rowsOf(
    [
      { name: 'id', type: 'text', isKey: true, values: of(({ id }) => id) },
      { name: 'version', type: 'int8', isKey: true, values: of(storedVersion) },
      { name: 'status', type: 'text', values: of(({ status }) => status) },
      { name: 'wake', type: 'int8', values: of(({ wakeAtMs }) => wakeAtMs) },
      { name: 'updated', type: 'int8', values: of(({ updatedAtMs }) => updatedAtMs) },
      { name: 'document', type: 'json', values: batch.map(({ text }) => text) },
    ],
    params,
  );
  return `given AS MATERIALIZED (${rows}),
    updated AS (UPDATE ${notifications} AS stored SET version = stored.version + 1, status = g.status,
      wake_at = ${timeAt('g.wake')}, updated_at = ${timeAt('g.updated')}, document = g.document
    FROM (${few('given', 'n')}) AS g
    WHERE stored.id = g.id AND stored.version = g.version RETURNING stored.id)`;
}

/** One that no record has might not even be a number. */
function storedVersion({ version }: NotificationRecord): number {
  return Number.isSafeInteger(version) && version > 0 ? version : 0;
}

const attemptKey = 'notification_id, device_id, attempt_number';

/** The sort waits for all of the update, and gives all batches one order: none waits for another in a circle. */
function insertAttempts(
  { attempts }: Names,
  batch: readonly WithText<DeliveryAttempt>[],
  /** The records that are written in the same statement: their attempts need them to be. */
  records: ReadonlySet<string>,
  params: Params,
): string {
  const of = (pick: (attempt: DeliveryAttempt) => Column['values'][number]) =>
    batch.map(({ value }) => pick(value));
  const rows = rowsOf(
    [
      { name: 'notification_id', type: 'text', values: of((one) => one.notificationId) },
      { name: 'device_id', type: 'text', values: of(({ deviceId }) => deviceId) },
      { name: 'attempt_number', type: 'int4', values: of((one) => one.attemptNumber) },
      { name: 'document', type: 'json', values: batch.map(({ text }) => text) },
      { name: 'needs', type: 'bool', values: of((one) => records.has(one.notificationId)) },
    ],
    params,
  );
  const wanted =
    records.size === 0
      ? ''
      : `LEFT JOIN updated ON updated.id = notification_id WHERE NOT needs OR updated.id IS NOT NULL`;
  return `added AS (INSERT INTO ${attempts} (${attemptKey}, document)
    SELECT ${attemptKey}, document FROM (${rows}) AS made ${wanted}
    ORDER BY notification_id COLLATE "C", device_id COLLATE "C", attempt_number
    ON CONFLICT DO NOTHING RETURNING ${attemptKey})`;
}

const stored = 'SELECT id, version, document FROM';

export function selectByIds({ notifications }: Names, ids: readonly string[]): Statement {
  return { text: `${stored} ${notifications} WHERE id = ANY($1)`, values: [ids] };
}

export function selectByKeys({ notifications }: Names, keys: readonly string[]): Statement {
  const text = `SELECT id, version, document, idempotency_key FROM ${notifications} WHERE idempotency_key = ANY($1)`;
  return { text, values: [keys] };
}

export function selectDue({ notifications }: Names, nowMs: number, limit: number): Statement {
  const text = `${stored} ${notifications} WHERE wake_at <= ${timeAt('$1')} ORDER BY wake_at, id LIMIT $2`;
  return { text, values: [boundedMs(nowMs), limit] };
}

export function selectList(
  { notifications }: Names,
  { status, priority, userId, before }: NotificationQuery,
  limit: number,
): Statement {
  const params = new Params();
  const where = Object.entries({ status, priority, user_id: userId }).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${params.add(value)}`],
  );
  if (before) {
    const createdAt = timeAt(params.add(boundedMs(before.createdAtMs)));
    where.push(`(created_at, id) < (${createdAt}, ${params.add(before.id)})`);
  }
  const condition = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
  const text = `${stored} ${notifications} ${condition} ORDER BY created_at DESC, id DESC LIMIT ${params.add(limit)}`;
  return { text, values: params.values };
}

export function selectAttempts(
  { attempts }: Names,
  notificationId: string,
  { deviceId, after }: AttemptPage,
  limit: number,
): Statement {
  const params = new Params();
  const where = [`notification_id = ${params.add(notificationId)}`];
  if (deviceId !== undefined) where.push(`device_id = ${params.add(deviceId)}`);
  if (after) {
    const last = `(${params.add(after.deviceId)}, ${params.add(after.attemptNumber)}::int)`;
    where.push(`(device_id, attempt_number) > ${last}`);
  }
  const text = `SELECT notification_id || ':' || device_id || ':' || attempt_number, document FROM ${attempts}
    WHERE ${where.join(' AND ')} ORDER BY device_id, attempt_number LIMIT ${params.add(limit)}`;
  return { text, values: params.values };
}

export function upsertDevices({ devices }: Names, batch: readonly InactiveDevice[]): Statement {
  const params = new Params();
  const rows = rowsOf(
    [
      { name: 'device_id', type: 'text', values: batch.map(({ deviceId }) => deviceId) },
      { name: 'since', type: 'int8', values: batch.map(({ sinceMs }) => sinceMs) },
      { name: 'reason', type: 'text', values: batch.map(({ reason }) => cleanReason(reason)) },
    ],
    params,
  );
  const text = `INSERT INTO ${devices} AS stored (device_id, since, reason)
    SELECT device_id, ${timeAt('since')}, reason FROM (${rows}) AS given ORDER BY device_id COLLATE "C"
    ON CONFLICT (device_id) DO UPDATE SET since = excluded.since, reason = excluded.reason
    WHERE excluded.since > stored.since`;
  return { text, values: params.values };
}

export function selectDevices({ devices }: Names, ids: readonly string[]): Statement {
  const text = `SELECT device_id, round(date_part('epoch', since) * 1000) FROM ${devices} WHERE device_id = ANY($1)`;
  return { text, values: [ids] };
}

export function deleteDevices({ devices }: Names, ids: readonly string[]): Statement {
  const text = `WITH locked AS MATERIALIZED (SELECT device_id FROM ${devices} WHERE device_id = ANY($1)
      ORDER BY device_id FOR UPDATE)
    DELETE FROM ${devices} USING locked WHERE ${devices}.device_id = locked.device_id`;
  return { text, values: [ids] };
}

/** Whoever else prunes takes others. A record that somebody has woken meanwhile is looked at again, and stays. */
export function pruneRecords(
  { notifications, attempts }: Names,
  beforeMs: number,
  limit: number,
): Statement {
  const text = `WITH over AS MATERIALIZED (SELECT id FROM ${notifications}
      WHERE wake_at IS NULL AND updated_at < ${timeAt('$1')} ORDER BY updated_at LIMIT $2
      FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM ${notifications} AS stored USING over WHERE stored.id = over.id RETURNING stored.id),
    done AS (DELETE FROM ${attempts} AS one USING gone WHERE one.notification_id = gone.id)
    SELECT count(*) FROM gone`;
  return { text, values: [boundedMs(beforeMs), limit] };
}

function boundedMs(ms: number): number {
  return Math.min(Math.max(Math.floor(ms), 0), LAST_DATE_MS);
}
