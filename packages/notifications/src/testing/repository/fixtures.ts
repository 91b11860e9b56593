import { randomUUID } from 'node:crypto';
import { equal } from 'node:assert/strict';
import type {
  DeliveryAttempt,
  DeliveryRecord,
  Notification,
  NotificationRecord,
} from '../../model/notification.ts';
import type { NotificationRepository } from '../../ports/repository.ts';

/** Times of the suite: repositories read no clock, so that these may be any. */
export const T0 = Date.UTC(2026, 0, 1);
export const HOUR = 3_600_000;

type Wanted = Partial<Omit<NotificationRecord, 'notification'>> & {
  notification?: Partial<Notification>;
};

/** A record that was not stored yet, complete, with an id and a key of its own. */
export function newRecord({ notification, ...rest }: Wanted = {}): NotificationRecord {
  const id = randomUUID();
  return {
    id,
    version: 0,
    notification: {
      recipient: { userId: 'user-1' },
      priority: 'high',
      notification: { title: 'Your order', body: 'It was sent.' },
      source: 'orders',
      idempotencyKey: `key-of-${id}`,
      ttlMs: 24 * HOUR,
      expiresAtMs: T0 + 24 * HOUR,
      ...notification,
    },
    deliveries: {},
    status: 'pending',
    retryCount: 0,
    wakeAtMs: T0 + HOUR,
    createdAtMs: T0,
    updatedAtMs: T0,
    ...rest,
  };
}

/** The same record without a time to wake: all is over. */
export function finished(record: NotificationRecord): NotificationRecord {
  const { wakeAtMs: _, ...rest } = record;
  return { ...rest, status: 'delivered' };
}

export function newDelivery(wanted: Partial<DeliveryRecord> = {}): DeliveryRecord {
  const counts = { attempt: 1, retryCount: 0, countsFrom: 0 };
  return { state: 'AwaitingRetry', ...counts, unpublished: [], ...wanted };
}

export function newAttempt(wanted: Partial<DeliveryAttempt> = {}): DeliveryAttempt {
  return {
    notificationId: 'n',
    deviceId: 'phone',
    attemptNumber: 1,
    status: 'failed',
    attemptedAtMs: T0,
    ...wanted,
  };
}

/** Every device id is to come back as it is, also where a language or a database has other plans for it. */
export const oddTexts = [
  '__proto__',
  '_bsontype',
  'toBSON',
  'toJSON',
  'snake_case',
  'camelCase',
  '_id',
  'constructor',
  'a.b',
  '.',
  '$x',
  '$',
  '%24x',
  '%',
  ' ',
  'ünï 🚀 漢字',
  `'"\\ %_*?[x]`,
  'a\nb\tc',
  '0',
  '12',
  'X'.repeat(255),
];

export async function stored(
  repository: NotificationRepository,
  record: NotificationRecord,
): Promise<NotificationRecord> {
  const [created] = await repository.create([record]);
  equal(created?.isNew, true, 'a new record was taken for a known one');
  return created.record;
}

/** For each: whether it was written. */
export async function written(
  repository: NotificationRepository,
  records: readonly NotificationRecord[],
): Promise<boolean[]> {
  return (await repository.write(records)).records;
}

/** For each: whether it is new. */
export async function added(
  repository: NotificationRepository,
  attempts: readonly DeliveryAttempt[],
): Promise<boolean[]> {
  return (await repository.write([], attempts)).attempts;
}

export async function found(
  repository: NotificationRepository,
  id: string,
): Promise<NotificationRecord> {
  const [record] = await repository.find([id]);
  if (record === undefined) throw new Error(`record ${id} was not found`);
  return record;
}

export function idsOf(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}
