/** The record as a whole: what follows from its deliveries. Pure. */
import type {
  DeliveryRecord,
  Notification,
  NotificationRecord,
  NotificationStatus,
} from './notification.ts';
import { statusByState } from './states.ts';

/** Devices of one notification. All of them are in one record, which every report rewrites. */
export const MAX_DEVICES = 1000;

export function newRecord(
  id: string,
  notification: Notification,
  nowMs: number,
): NotificationRecord {
  return {
    id,
    version: 0,
    notification,
    deliveries: {},
    status: 'pending',
    retryCount: 0,
    wakeAtMs: notification.expiresAtMs,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

/** A device may be called `constructor`. */
export function deliveryOf(
  { deliveries }: NotificationRecord,
  deviceId: string,
): DeliveryRecord | undefined {
  return Object.hasOwn(deliveries, deviceId) ? deliveries[deviceId] : undefined;
}

/** The record with another delivery, and all that follows from it. */
export function withDelivery(
  record: NotificationRecord,
  deviceId: string,
  delivery: DeliveryRecord,
  nowMs: number,
): NotificationRecord {
  return withDeliveries(record, [[deviceId, delivery]], nowMs);
}

/** With several at once: each by itself would copy all of them anew. */
export function withDeliveries(
  record: NotificationRecord,
  changed: readonly (readonly [deviceId: string, delivery: DeliveryRecord])[],
  nowMs: number,
): NotificationRecord {
  const deliveries = { ...record.deliveries, ...Object.fromEntries(changed) };
  const all = Object.values(deliveries);
  const { wakeAtMs: _, ...rest } = record;
  const wakeAtMs = wakeOf(earliest(all), record.notification.expiresAtMs, nowMs);
  return {
    ...rest,
    deliveries,
    status: statusOf(all),
    retryCount: all.reduce((sum, { retryCount }) => sum + retryCount, 0),
    ...(wakeAtMs === undefined ? {} : { wakeAtMs }),
    updatedAtMs: nowMs,
  };
}

/** Also at its end, since what waits then is over, whatever its queue does. */
function wakeOf(firstMs: number | undefined, endMs: number, nowMs: number): number | undefined {
  return firstMs === undefined || nowMs >= endMs ? firstMs : Math.min(firstMs, endMs);
}

/**
 * Without what it can do without, for a record that has grown too large for its repository: texts of failures, and events but
 * the last of each device. Else nothing could be done about it any more, not even end it.
 */
export function slimmed(record: NotificationRecord): NotificationRecord {
  const deliveries = Object.entries(record.deliveries).map(([deviceId, delivery]) => {
    const { failure, unpublished, ...rest } = delivery;
    const last = unpublished.findLast(({ to }) => to === 'event');
    const kept = unpublished.filter((one) => one.to !== 'event' || one === last);
    if (!failure) return [deviceId, { ...rest, unpublished: kept }] as const;
    const { message: _, ...short } = failure;
    return [deviceId, { ...rest, unpublished: kept, failure: short }] as const;
  });
  return { ...record, deliveries: Object.fromEntries(deliveries) };
}

/** Nothing was ever reported, and its time is over. */
export function withoutReports(record: NotificationRecord, nowMs: number): NotificationRecord {
  const { wakeAtMs: _, ...rest } = record;
  return { ...rest, status: 'expired', updatedAtMs: nowMs };
}

/** The best that is still possible. */
const order = ['retrying', 'delivered', 'failed', 'expired', 'skipped'] as const;

export function statusOf(deliveries: readonly Pick<DeliveryRecord, 'state'>[]): NotificationStatus {
  const found = new Set(deliveries.map(({ state }) => statusByState[state]));
  return order.find((status) => found.has(status)) ?? 'pending';
}

function earliest(deliveries: readonly DeliveryRecord[]): number | undefined {
  let first: number | undefined;
  for (const { wakeAtMs } of deliveries) {
    if (wakeAtMs !== undefined && (first === undefined || wakeAtMs < first)) first = wakeAtMs;
  }
  return first;
}
