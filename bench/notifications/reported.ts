/** What is reported, and the rows that a report comes to. */
import { createHash } from 'node:crypto';
import { type DelayQueue, storeDelayQueue, type Store } from '@redrive/engine';
import {
  attemptText,
  createNotifications,
  type NotificationRepository,
  type Notifications,
  recordText,
} from '@redrive/notifications';

/** Reports at once, each about a notification of its own. */
export const REPORTS = 100;
const HOUR_MS = 3_600_000;

export const ids: readonly string[] = Array.from({ length: REPORTS }, (_, i) => `n${i}`);

/** The statements that a batch of reports comes to, and nothing else: three commits. */
export interface BareWrites {
  write(rows: readonly ReportRows[]): Promise<boolean>;
  close(): Promise<void>;
}

/** The rows of one report: an attempt, the record by its version, and an entry of the queue. */
export interface ReportRows {
  id: string;
  attempt: number;
  attemptText: string;
  version: number;
  recordText: string;
  updatedAtMs: number;
  dueAtMs: number;
  /** 16 bytes, as spread over the index as those of Redrive. */
  entryId: Buffer;
  context: string;
  payload: Buffer;
}

/** A service on this store whose notifications each have one failure. It is left to the caller to stop it. */
export async function startReports(
  store: Store,
  repository: NotificationRepository,
): Promise<Notifications> {
  const queue = (name: string): DelayQueue => storeDelayQueue(store, { name });
  const service = createNotifications({
    repository,
    queues: { urgent: queue('urgent'), bulk: queue('bulk') },
    deliver: async () => undefined,
    policies: { high: { maxAttempts: 1_000_000, base: '1h', cap: '1h' } },
    consume: false,
  });
  await service.start();
  await service.createMany(
    ids.map((id) => ({
      id,
      recipient: { userId: 'u' },
      priority: 'high',
      notification: { title: 'Your taxi is here', body: 'It waits at the door.' },
      source: 'bench',
      ttlMs: 300 * 24 * HOUR_MS,
    })),
  );
  if (!(await report(service, 1))) throw new Error('the first reports were not scheduled');
  return service;
}

/** All of them failed at this attempt. Whether each is scheduled again. */
export async function report(service: Notifications, attemptNumber: number): Promise<boolean> {
  const answers = await service.reportFailures(
    ids.map((notificationId) => ({ notificationId, deviceId: 'd', attemptNumber })),
  );
  return answers.every((answer) => 'decision' in answer && answer.decision === 'scheduled');
}

/** Makes the rows of all reports of one attempt, from the record as the service stored it. */
export async function rowMaker(
  service: Notifications,
): Promise<(attempt: number) => readonly ReportRows[]> {
  const record = await service.get(ids[0]!);
  if (!record) throw new Error(`there is no ${ids[0]}`);
  const text = recordText(record);
  return (attempt) => {
    const updatedAtMs = Date.now();
    return ids.map((id) => {
      const entry = `${id}:d:${attempt}`;
      const payload = { notification_id: id, device_id: 'd', attempt };
      return {
        id,
        attempt,
        attemptText: attemptText({
          notificationId: id,
          deviceId: 'd',
          attemptNumber: attempt,
          status: 'failed',
          attemptedAtMs: updatedAtMs,
        }),
        version: attempt,
        recordText: text,
        updatedAtMs,
        dueAtMs: updatedAtMs + HOUR_MS,
        entryId: createHash('md5').update(entry).digest(),
        context: JSON.stringify({ extra: { id: entry, key: id } }),
        payload: Buffer.from(JSON.stringify(payload)),
      };
    });
  };
}
