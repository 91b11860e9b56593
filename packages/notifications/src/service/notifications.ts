/** The interface of the notification service. */
import type { NotificationError, NotificationFault } from '../errors.ts';
import type { FailureReport } from '../model/assess.ts';
import type { Replayed } from '../model/moves.ts';
import type { DeliveryAttempt, NotificationRecord } from '../model/notification.ts';
import type { Lane } from '../model/retry-config.ts';
import type { AttemptPage, NotificationQuery } from '../ports/repository.ts';
import type { NewNotification } from './checks.ts';
import type { FailureAnswer, SuccessAnswer, SuccessReport } from './report.ts';

export interface Notifications {
  /**
   * Opens repository and queues, for as long as that takes. A lane begins to deliver when its own queue is open. Safe to call
   * again.
   */
  start(): Promise<void>;
  /** Takes no more work, waits up to `stopTimeoutMs` for deliveries in flight, then aborts them. Safe to call again. */
  stop(): Promise<void>;

  create(notification: NewNotification): Promise<CreatedNotification>;
  /** One with faults is refused by itself. */
  createMany(notifications: readonly NewNotification[]): Promise<(CreatedNotification | Refused)[]>;

  /** Resolves when the decision is durable. Repeating a report is safe. */
  reportFailure(report: FailureReport): Promise<FailureAnswer>;
  reportFailures(reports: readonly FailureReport[]): Promise<(FailureAnswer | Refused)[]>;
  reportSuccess(report: SuccessReport): Promise<SuccessAnswer>;
  reportSuccesses(reports: readonly SuccessReport[]): Promise<(SuccessAnswer | Refused)[]>;

  /** Lists every fault for which `create` or a report would be refused, whatever the fields hold. Changes nothing. */
  faultsOf(notification: NewNotification): readonly NotificationFault[];
  reportFaultsOf(report: FailureReport): readonly NotificationFault[];

  get(id: string): Promise<NotificationRecord | undefined>;
  attempts(id: string, page: AttemptPage): Promise<DeliveryAttempt[]>;
  list(query: NotificationQuery): Promise<NotificationRecord[]>;

  /** Delivers again what failed for good, now. Safe to repeat: a delivery that waits already is left as it is. */
  replay(id: string, deviceId: string): Promise<Replayed>;
  /** Starts no more deliveries of a lane in this instance. Deliveries in flight continue, and due retries wait in the queue. */
  pause(lane: Lane): Promise<void>;
  resume(lane: Lane): Promise<void>;
  /** What this instance holds. */
  stats(): NotificationStats;
}

export interface CreatedNotification {
  isNew: boolean;
  record: NotificationRecord;
}

export interface Refused {
  error: NotificationError;
}

export interface NotificationStats {
  running: number;
  /** The repository was reached since the start. */
  isOpen: boolean;
  lanes: Record<Lane, LaneStats>;
  /** Why the repository cannot be used at present, as the last try told. */
  trouble?: string;
}

export interface LaneStats {
  running: number;
  isPaused: boolean;
  /** Its queue was reached since the start. */
  isOpen: boolean;
  /** Why its queue cannot be used at present, as the last try told. */
  trouble?: string;
}
