export {
  isNotificationError,
  NotificationError,
  type NotificationErrorCode,
  type NotificationFault,
} from './errors.ts';
export type { AssessFacts, Assessment, DeviceFacts, FailureReport } from './model/assess.ts';
export { assess } from './model/assess.ts';
export type * from './model/notification.ts';
export {
  deliveryStates,
  eventTypes,
  failureReasons,
  priorities,
  statuses,
} from './model/notification.ts';
export { afterQuietHours } from './model/quiet-hours.ts';
export { statusOf } from './model/record.ts';
export {
  addJitter,
  calculateBackoffDelay,
  getPriorityBackoff,
  type Lane,
  laneOfPriority,
  lanes,
  type PriorityPolicies,
  priorityPolicies,
  shouldRetry,
} from './model/retry-config.ts';
export { addedMoves, documentMoves, mayMove } from './model/states.ts';
export { errorTables, type FailedDelivery, judge, type Judged } from './platforms/judge.ts';
export {
  type ErrorRow,
  type Platform,
  platforms,
  type Verdict,
  verdicts,
} from './platforms/verdict.ts';
export type * from './ports/repository.ts';
export {
  attemptFault,
  attemptText,
  notWritten,
  recordFault,
  recordText,
} from './repository/limits.ts';
export { readAttempt, readRecord } from './repository/stored.ts';
export type { NewNotification } from './service/checks.ts';
export type { Deliver, DeliverOutcome, DeliverRequest } from './service/delivery.ts';
export type { Devices, DeviceServiceOptions } from './service/devices.ts';
export type { DeadLetter, NotificationEvent } from './service/documents.ts';
export type {
  CreatedNotification,
  Notifications,
  NotificationStats,
  Refused,
} from './service/notifications.ts';
export type { NotificationOptions } from './service/options.ts';
export type { NotificationHappening } from './service/parts.ts';
export type { FailedDeliveryItem, Sinks } from './service/publisher.ts';
export { queueNames, type QueueNames } from './service/queue-names.ts';
export type { FailureAnswer, SuccessAnswer, SuccessReport } from './service/report.ts';
export { createNotifications } from './service/service.ts';
