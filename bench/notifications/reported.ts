/** What is reported, and the rows that a report comes to. */
import { createHash } from 'node:crypto';
import { type DelayQueue, storeDelayQueue, type Store } from '@redrive/engine';
import {
  attemptText,
  createNotifications,
  type FailureReport,
  type NotificationRepository,
  type Notifications,
  recordText,
} from '@redrive/notifications';

/** Reports at once, each about a notification and a device of its own. */
export const REPORTS = 100;
const HOUR_MS = 3_600_000;
/** Of the priority `high`. It spreads the due times over their indexes. */
const JITTER = 0.3;

/** Attempts without end, an hour apart: none is due while it is measured. */
export const policy = { maxAttempts: 1_000_000, base: '1h', cap: '1h' } as const;

export const newNotifications = Array.from({ length: REPORTS }, (_, i) => ({
  id: `n${i}`,
  recipient: { userId: 'u' },
  priority: 'high' as const,
  notification: { title: 'Your taxi is here', body: 'It waits at the door.' },
  source: 'bench',
  ttlMs: 300 * 24 * HOUR_MS,
}));

/** All of them failed at this attempt. */
export function reportsOf(attemptNumber: number): FailureReport[] {
  return newNotifications.map(({ id }, i) => {
    return { notificationId: id, deviceId: `device-${i}`, attemptNumber };
  });
}

/** The statements that a batch of reports comes to, and nothing else: two commits. */
export interface BareWrites {
  write(rows: readonly ReportRows[]): Promise<boolean>;
  close(): Promise<void>;
}

/** The rows of one report: the record by its version, an attempt, and an entry of the queue. */
export interface ReportRows {
  id: string;
  deviceId: string;
  attempt: number;
  attemptText: string;
  version: number;
  recordText: string;
  updatedAtMs: number;
  dueAtMs: number;
  /** 16 bytes. Ids and due times are as spread over their indexes as those of Redrive. */
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
    policies: { high: policy },
    consume: false,
  });
  await service.start();
  await service.createMany(newNotifications);
  if (!(await report(service, 1))) throw new Error('the first reports were not scheduled');
  return service;
}

/** Whether each is scheduled again. */
export async function report(service: Notifications, attempt: number): Promise<boolean> {
  const answers = await service.reportFailures(reportsOf(attempt));
  return answers.every((answer) => 'decision' in answer && answer.decision === 'scheduled');
}

/** Makes the rows of reports, from the record as the service stored it. */
export async function rowMaker(
  service: Notifications,
): Promise<(reports: readonly FailureReport[]) => readonly ReportRows[]> {
  const record = await service.get(newNotifications[0]!.id);
  if (!record) throw new Error('no notification was created');
  const text = recordText(record);
  return (reports) => {
    const updatedAtMs = Date.now();
    return reports.map(({ notificationId: id, deviceId, attemptNumber: attempt }) => {
      const entry = `${id}:${deviceId}:${attempt}`;
      const payload = { notification_id: id, device_id: deviceId, attempt };
      return {
        id,
        deviceId,
        attempt,
        attemptText: attemptText({
          notificationId: id,
          deviceId,
          attemptNumber: attempt,
          status: 'failed',
          attemptedAtMs: updatedAtMs,
        }),
        // A record was created, and written once for each attempt.
        version: attempt,
        recordText: text,
        updatedAtMs,
        dueAtMs: updatedAtMs + Math.floor(HOUR_MS * (1 + JITTER * Math.random())),
        entryId: createHash('md5').update(entry).digest(),
        context: JSON.stringify({ extra: { id: entry, key: id } }),
        payload: Buffer.from(JSON.stringify(payload)),
      };
    });
  };
}
