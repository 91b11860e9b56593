export { isNotificationError, NotificationError, type NotificationErrorCode } from './errors.ts';
export type * from './model/notification.ts';
export { deliveryStates, priorities, statuses } from './model/notification.ts';
export type * from './ports/repository.ts';
export { attemptFault, attemptText, recordFault, recordText } from './repository/limits.ts';
export { readAttempt, readRecord } from './repository/stored.ts';
