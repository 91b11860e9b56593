/** Every code a user of notifications can meet beside the engine's. `docs/reference/errors.md` has a line for each; `tidy` checks that. */
export const errorCodes = {
  INVALID_RECORD:
    'A record, an attempt or a device has an identifier, a time or a value that no repository takes.',
  RECORD_TOO_LARGE: 'A record or an attempt is over the limit of a repository.',
  RECORD_UNREADABLE:
    'A stored record lacks fields, or they have the wrong shape: something else has written it.',
  RECORD_CONTENDED: 'Too many write the same notification at once. Trying again is safe.',
  INVALID_NOTIFICATION: 'A notification has faults; `faults` lists all of them.',
  INVALID_REPORT: 'A report of a failure or a success has faults; `faults` lists all of them.',
  UNKNOWN_PRIORITY: 'A priority that is not `critical`, `high`, `medium` or `low`.',
  INVALID_QUIET_HOURS: 'Quiet hours whose times or whose time zone cannot be read.',
  NOTIFICATION_UNKNOWN: 'There is no such notification.',
  NOTIFICATION_EXISTS: 'A notification with this `idempotency_key` was created before.',
  IDEMPOTENCY_KEY_REUSED: 'Another notification was created with this `idempotency_key`.',
  DEVICE_UNKNOWN: 'The device is not one of the recipient of the notification.',
  TOO_MANY_DEVICES: 'Reports name more devices than one notification may have.',
  ILLEGAL_MOVE: 'A delivery cannot go from the one state to the other.',
  DEVICE_ANSWER_INVALID: 'The device service gave an answer that cannot be read.',
  INVALID_NOTIFICATIONS: 'The options of the notification service have faults.',
  NOTIFICATIONS_STOPPED: 'The notification service was stopped.',
} as const;

export type NotificationErrorCode = keyof typeof errorCodes;

/** One thing that is wrong with what was given. */
export interface NotificationFault {
  /** Where, as the wire has it: `recipient.user_id`. */
  path: string;
  code: NotificationErrorCode;
  message: string;
}

/** Thrown for what cannot work, with a code and a way out. */
export class NotificationError extends Error {
  override readonly name = 'NotificationError';
  readonly code: NotificationErrorCode;
  /** The records that it is about, where it is about records. */
  readonly ids: readonly string[];
  /** All that is wrong, where it is about what was given. */
  readonly faults: readonly NotificationFault[];

  constructor(
    code: NotificationErrorCode,
    message: string,
    details: {
      cause?: unknown;
      ids?: readonly string[];
      faults?: readonly NotificationFault[];
    } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.ids = details.ids ?? [];
    this.faults = details.faults ?? [];
  }
}

/** By name, not by class: true also for an error of another copy of this library. */
export function isNotificationError(error: unknown): error is NotificationError {
  return (
    typeof error === 'object' &&
    error !== null &&
    (error as Error).name === 'NotificationError' &&
    'ids' in error
  );
}
