/** One delivery of a due retry, by a function of the embedding program. */
import { pause, type Host } from '@redrive/engine/internal';
import type { Notification } from '../model/notification.ts';
import type { FailedDelivery } from '../platforms/judge.ts';

export interface DeliverRequest {
  notificationId: string;
  notification: Notification;
  deviceId: string;
  /** The number of this attempt: 2 is the first retry. The same number may come twice, when a worker was lost. */
  attempt: number;
  /** The same for every attempt at this device: a collapse key, so that the user sees it once. */
  collapseKey: string;
  /** Aborted when the time is up, and on stop. */
  signal: AbortSignal;
}

/**
 * `delivered`: it worked. `failed`: the push service refused it, or nobody answered. `handed_over`: a topic or a queue has it,
 * and whoever reads that reports on it. `not_sent`: nothing was sent, so the attempt is not spent, and comes again after
 * `delayMs` (5 s).
 */
export type DeliverOutcome =
  | { outcome: 'delivered'; platformResponse?: unknown }
  | ({ outcome: 'failed' } & FailedDelivery)
  | { outcome: 'handed_over' }
  | { outcome: 'not_sent'; delayMs?: number }
  | { outcome: 'stopped' };

/** Nothing returned counts as delivered; what is thrown counts as failed. */
export type Deliver = (
  request: DeliverRequest,
) => Promise<Exclude<DeliverOutcome, { outcome: 'stopped' }> | void>;

interface Subject {
  notificationId: string;
  deviceId: string;
  attempt: number;
  record: { notification: Notification };
}

/** Never rejects. */
export async function runDelivery(
  deliver: Deliver,
  { notificationId, deviceId, attempt, record }: Subject,
  timeoutMs: number,
  host: Host,
  stopping: AbortSignal,
): Promise<DeliverOutcome> {
  const over = new AbortController();
  const limit = new AbortController();
  const late = pause(host, timeoutMs, limit.signal, stopping).then((): DeliverOutcome => {
    over.abort();
    if (stopping.aborted) return { outcome: 'stopped' };
    return {
      outcome: 'failed',
      errorCode: 'TIMEOUT',
      errorMessage: `No answer in ${timeoutMs} ms.`,
    };
  });
  const { notification } = record;
  const collapseKey = `${notificationId}:${deviceId}`;
  const request = {
    notificationId,
    notification,
    deviceId,
    attempt,
    collapseKey,
    signal: over.signal,
  };
  const work = outcomeOf(() => deliver(request));
  const outcome = await Promise.race([work, late]);
  limit.abort();
  return outcome;
}

async function outcomeOf(deliver: () => ReturnType<Deliver>): Promise<DeliverOutcome> {
  try {
    return (await deliver()) ?? { outcome: 'delivered' };
  } catch (error) {
    const { code, status, message } = Object(error) as {
      code?: unknown;
      status?: unknown;
      message?: unknown;
    };
    return {
      outcome: 'failed',
      ...(typeof code === 'string' ? { errorCode: code } : {}),
      errorMessage: typeof message === 'string' ? message : String(error),
      ...(typeof status === 'number' ? { platformResponse: { status } } : {}),
    };
  }
}
