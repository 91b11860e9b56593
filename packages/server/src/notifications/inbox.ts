/** Permanent failures as items of the inbox, and their replays. */
import {
  type Delivery,
  type Engine,
  type FailureReport,
  type Outcome,
  type Task,
  uuidOf,
} from '@redrive/engine';
import {
  type FailedDeliveryItem,
  isNotificationError,
  type Notifications,
} from '@redrive/notifications';
import type { ReadReport } from './intake.ts';

/** The kind of the destination: a replay is delivered to the service itself. */
export const NOTIFICATION = 'notification';

/** The address of reports that nobody could take in. A replay reports them again. */
export const REPORT = 'report';

/** Straight into the inbox. The failure of an attempt is one item, however often it is published. */
function itemReport({ letter, failure }: FailedDeliveryItem): FailureReport {
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
  let [answer] = await engine.report([itemReport(item)]);
  // An item without its content is still an item: a replay needs no more than whom it is about.
  if (answer?.status === 'rejected' && answer.code === 'PAYLOAD_TOO_LARGE')
    [answer] = await engine.report([itemReport({ ...item, letter: bare(item.letter) })]);
  if (answer?.status === 'rejected')
    throw new Error(`The inbox refused an item: ${answer.message}`);
}

function bare(letter: FailedDeliveryItem['letter']): FailedDeliveryItem['letter'] {
  return { ...letter, notification: {}, data: null, attempts: [] };
}

type Replays = Pick<Notifications, 'replay' | 'reportFailure' | 'reportSuccess'>;

export function replayDelivery(
  service: Replays,
  read: (payload: Uint8Array) => ReadReport,
): Delivery {
  return { kind: NOTIFICATION, deliver: (task) => deliverAgain(service, read, task) };
}

async function deliverAgain(
  service: Replays,
  read: (payload: Uint8Array) => ReadReport,
  task: Task,
): Promise<Outcome> {
  try {
    if (task.destination.address !== REPORT) return await replay(service, task);
    const found = read(task.payload);
    if (found.type === 'unreadable') return invalid(found.why);
    if (found.type === 'failure') await service.reportFailure(found.report);
    else await service.reportSuccess(found.report);
    return { type: 'done' };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (isNotificationError(error) && code !== 'RECORD_CONTENDED')
      return impossible(code ?? 'INVALID_REPORT', message);
    return away(message);
  }
}

async function replay(service: Replays, task: Task): Promise<Outcome> {
  const { notification_id: id, device_id: deviceId } = payloadOf(task);
  if (typeof id !== 'string' || typeof deviceId !== 'string') {
    return invalid('The item does not say which notification and which device it is about.');
  }
  const { result } = await service.replay(id, deviceId);
  switch (result) {
    case 'scheduled':
    case 'waiting':
    case 'delivered':
      return { type: 'done' };
    case 'expired': {
      const message = 'The notification has expired: its time to live is over.';
      return {
        type: 'giveUp',
        reason: 'EXPIRED',
        failure: { class: 'business', code: 'EXPIRED', message },
      };
    }
    case 'unknown':
      return impossible('NOTIFICATION_UNKNOWN', 'The notification or its device no longer exists.');
  }
}

function invalid(message: string): Outcome {
  return { type: 'invalid', failure: { class: 'business', code: 'INVALID_PAYLOAD', message } };
}

function impossible(code: string, message: string): Outcome {
  return { type: 'impossible', failure: { class: 'business', code, message } };
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
