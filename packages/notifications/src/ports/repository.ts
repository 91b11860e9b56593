import type {
  DeliveryAttempt,
  NotificationRecord,
  NotificationStatus,
  Priority,
} from '../model/notification.ts';

/**
 * Keeps records and attempts. Each record is one row or document that is written whole, by compare-and-set on its
 * version: that is all the atomicity that is relied on, so that a database without transactions serves too.
 *
 * - Every method resolves only after a durable commit, and is safe to call again when its answer was lost.
 * - Trouble that passes is an EngineError whose code begins with `STORE_`.
 * - What no repository takes (`repository/limits.ts`) rejects with a NotificationError before anything is stored.
 * - All times are by the clock of the process that made the record: a repository reads no clock.
 * - A stored record that cannot be read is never answered. `find` and `create` reject with `RECORD_UNREADABLE`, whose
 *   `ids` name it. `due` and `list` go on without it and tell the adapter's `onUnreadable`.
 */
export interface NotificationRepository {
  /** Connects, and makes or checks tables and indexes. Safe to call again. */
  open(): Promise<void>;
  close(): Promise<void>;

  /**
   * Stores what is new, each by itself, as version 1. Where the id or the idempotency key is known, it answers the record
   * that is there.
   */
  create(records: readonly NotificationRecord[]): Promise<Created[]>;
  find(ids: readonly string[]): Promise<(NotificationRecord | undefined)[]>;
  /**
   * Writes each record whose stored version is the one that it has, as the next version, and adds the attempts. One of a
   * known (notification, device, attempt) changes nothing. Attempts of a record that was given and not written are left
   * out. A database with transactions commits all of it at once. Another one writes the records first.
   * A write whose answer was lost answers false when it is repeated: read again.
   */
  write(
    records: readonly NotificationRecord[],
    attempts?: readonly DeliveryAttempt[],
  ): Promise<Written>;

  /** Of one notification, by device (its character codes) and number. */
  attempts(notificationId: string, page: AttemptPage): Promise<DeliveryAttempt[]>;

  /** Records whose `wakeAtMs` is not after that time, the earliest first. */
  due(nowMs: number, limit: number): Promise<NotificationRecord[]>;
  /** Newest first, by creation and id (its character codes). */
  list(query: NotificationQuery): Promise<NotificationRecord[]>;

  /** Remembers devices whose token is dead. A later `sinceMs` replaces an earlier one. */
  deactivate(devices: readonly InactiveDevice[]): Promise<void>;
  /** For each: since when it is known to be inactive. */
  inactiveSince(deviceIds: readonly string[]): Promise<(number | undefined)[]>;
  /** Forgets that these devices are inactive. One that was not changes nothing. */
  activate(deviceIds: readonly string[]): Promise<void>;

  /** Deletes records without `wakeAtMs` that were last written before that time, with their attempts. Answers how many. */
  prune(beforeMs: number, limit: number): Promise<number>;
}

export interface Created {
  isNew: boolean;
  record: NotificationRecord;
}

export interface Written {
  /** For each record: whether it was written. */
  records: boolean[];
  /** For each attempt: whether it was added. */
  attempts: boolean[];
}

export interface AttemptPage {
  deviceId?: string;
  after?: { deviceId: string; attemptNumber: number };
  limit: number;
}

export interface NotificationQuery {
  status?: NotificationStatus;
  priority?: Priority;
  userId?: string;
  before?: { createdAtMs: number; id: string };
  limit: number;
}

export interface InactiveDevice {
  deviceId: string;
  sinceMs: number;
  reason: string;
}
