/** The record of one notification: what it says, to whom, and how it stands with each device. */
import type { Failure } from 'redrive';

export const priorities = ['critical', 'high', 'medium', 'low'] as const;
export type Priority = (typeof priorities)[number];

/** `failed` is permanent. */
export const statuses = [
  'pending',
  'retrying',
  'delivered',
  'failed',
  'expired',
  'skipped',
] as const;
export type NotificationStatus = (typeof statuses)[number];

export const deliveryStates = [
  'DeliveryFailed',
  'AssessingRetry',
  'SchedulingRetry',
  'AwaitingRetry',
  'Retrying',
  'DeliverySucceeded',
  'PermanentFailure',
  'Skipped',
  'Expired',
] as const;
export type DeliveryState = (typeof deliveryStates)[number];

export interface NotificationRecord {
  id: string;
  /** Grows by one with every write: the next writer must have read the last one. 0: not stored yet. */
  version: number;
  notification: Notification;
  /** By device. A device that nothing was reported for has none. */
  deliveries: Readonly<Record<string, DeliveryRecord>>;
  /** Derived from the deliveries: see `statusOf`. */
  status: NotificationStatus;
  /** The sum over all devices. */
  retryCount: number;
  /**
   * When somebody must look at the record again: the earliest of its deliveries, or where nothing was reported, its end.
   * Absent: never, since all is final and published.
   */
  wakeAtMs?: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** What was asked for. It never changes. */
export interface Notification {
  recipient: Recipient;
  priority: Priority;
  notification: { title: string; body: string; [field: string]: unknown };
  data?: Readonly<Record<string, unknown>>;
  source: string;
  /** Unique. */
  idempotencyKey: string;
  ttlMs: number;
  expiresAtMs: number;
  scheduledAtMs?: number;
  quietHours?: QuietHours;
}

/** Without `deviceIds` a report may name any device. The notification's own quiet hours outrank those of its user. */
export interface Recipient {
  userId: string;
  deviceIds?: readonly string[];
  quietHours?: QuietHours;
}

/** Local times as `22:00`; a window that ends before it begins goes over midnight. */
export interface QuietHours {
  from: string;
  to: string;
  timeZone: string;
}

/** How it stands with one device. */
export interface DeliveryRecord {
  state: DeliveryState;
  /** The number of the attempt that failed last, or that is awaited or under way: 1 is the first delivery. */
  attempt: number;
  /** Retries that were scheduled in all. */
  retryCount: number;
  /** The attempt after which counting began: 0, or where the last replay began. */
  countsFrom: number;
  /** Of AwaitingRetry: when the retry is due, by the clock of this process. */
  dueAtMs?: number;
  /** Of Retrying: until when nobody else may begin, and by which token its owner is known. */
  leaseUntilMs?: number;
  lease?: string;
  /** Of Retrying: leases of this attempt so far. Each one before the last was lost. */
  leases?: number;
  /** Of Retrying: somebody else has it now, and is to report on it. */
  handedOver?: true;
  /** Of PermanentFailure. */
  reason?: FailureReason;
  /** Of what had ended otherwise: a success was reported after that. A replay would deliver it twice. */
  deliveredLate?: true;
  /** When somebody must look at it again. Absent: never. */
  wakeAtMs?: number;
  /** Its wake-up could not be scheduled. */
  unscheduled?: true;
  /** How often somebody looked since its state last changed: the looks get rarer. */
  wakes?: number;
  /** What happened and is still to be told: each is published at least once, then removed. */
  unpublished: readonly Publication[];
  failure?: Failure;
}

/** Why it failed for good. */
export const failureReasons = [
  'EXHAUSTED',
  'PERMANENT',
  'DEAD_TOKEN',
  'CONFIGURATION',
  'RETRY_AFTER_TOO_LONG',
  'WORKER_LOST',
] as const;
export type FailureReason = (typeof failureReasons)[number];

/** `dead_letter`: to the dead-letter topic. `inbox`: an item for operators. `event`: to the events' topic. */
export type Publication =
  | { to: 'dead_letter' | 'inbox'; atMs: number; attempt?: number; reason?: FailureReason }
  | { to: 'event'; type: EventType; atMs: number; data: Readonly<Record<string, unknown>> };

export const eventTypes = ['retry_scheduled', 'delivered', 'failed', 'skipped', 'expired'] as const;
export type EventType = (typeof eventTypes)[number];

/** One attempt that ended. */
export interface DeliveryAttempt {
  notificationId: string;
  deviceId: string;
  attemptNumber: number;
  status: 'delivered' | 'failed';
  platformResponse?: unknown;
  errorCode?: string;
  errorMessage?: string;
  /** How long the push service asked to be left alone. Whoever takes over from a lost worker has to know. */
  retryAfterMs?: number;
  attemptedAtMs: number;
}
