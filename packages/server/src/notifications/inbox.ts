/** Permanent failures as items of the inbox, and their replays. */
import {
  type Delivery,
  type Engine,
  type FailureReport,
  type Outcome,
  type Task,
  uuidOf,
} from '@redrive/engine';
import type { FailedDeliveryItem, Notifications } from '@redrive/notifications';

/** The kind of the destination: a replay is delivered to the service itself. */
export const NOTIFICATION = 'notification';

/** Straight into the inbox. The failure of an attempt is one item, however often it is published. */
export function itemReport({ letter, failure }: FailedDeliveryItem): FailureReport {
  const { notification_id, device_id, attempt_number, priority, reason } = letter;
  return {
    messageId: uuidOf(NOTIFICATION, notification_id, device_id, String(attempt_number)),
    to: { kind: NOTIFICATION, address: priority },
    payload: letter,
    context: { contentType: 'application/json' },
    failure,
    attempt: Math.max(1, attempt_number),
    maxAttempts: Math.max(1, attempt_number),
    verdict: reason as NonNullable<FailureReport['verdict']>,
  };
}

/** Resolves when the item is stored. */
export async function addItem(
  engine: Pick<Engine, 'report'>,
  item: FailedDeliveryItem,
): Promise<void> {
  const [answer] = await engine.report([itemReport(item)]);
  if (answer?.status === 'rejected')
    throw new Error(`The inbox refused an item: ${answer.message}`);
}

export function replayDelivery(service: () => Pick<Notifications, 'replay'> | undefined): Delivery {
  return { kind: NOTIFICATION, deliver: (task) => replay(service(), task) };
}

async function replay(
  service: Pick<Notifications, 'replay'> | undefined,
  task: Task,
): Promise<Outcome> {
  if (!service) return away('NOTIFICATIONS is off in this instance.');
  const { notification_id: id, device_id: deviceId } = payloadOf(task);
  if (typeof id !== 'string' || typeof deviceId !== 'string') {
    const message = 'The item does not say which notification and which device it is about.';
    return { type: 'invalid', failure: { class: 'business', code: 'INVALID_PAYLOAD', message } };
  }
  try {
    const { result } = await service.replay(id, deviceId);
    switch (result) {
      case 'scheduled':
      case 'waiting':
      case 'delivered':
        return { type: 'done' };
      case 'expired': {
        const message = 'The notification has ended: its time to live is over.';
        return {
          type: 'giveUp',
          reason: 'EXPIRED',
          failure: { class: 'business', code: 'EXPIRED', message },
        };
      }
      case 'unknown': {
        const message = `There is no delivery of notification ${id} to this device any more.`;
        return {
          type: 'impossible',
          failure: { class: 'business', code: 'NOTIFICATION_UNKNOWN', message },
        };
      }
    }
  } catch (error) {
    return away(error instanceof Error ? error.message : String(error));
  }
}

function away(message: string): Outcome {
  return { type: 'away', failure: { class: 'transient', code: 'STORE_UNAVAILABLE', message } };
}

function payloadOf({ payload }: Task): { notification_id?: unknown; device_id?: unknown } {
  try {
    return Object(JSON.parse(Buffer.from(payload).toString('utf8'))) as object;
  } catch {
    return {};
  }
}
