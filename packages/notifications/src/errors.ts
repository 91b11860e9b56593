/** Every code a user of notifications can meet. `docs/reference/errors.md` has a line for each; `tidy` checks that. */
export const errorCodes = {
  INVALID_RECORD:
    'A record, an attempt or a device has an identifier, a time or a value that no repository takes.',
  RECORD_TOO_LARGE: 'A record or an attempt is over the limit of a repository.',
  RECORD_UNREADABLE:
    'A stored record lacks fields, or they have the wrong shape: something else has written it.',
} as const;

export type NotificationErrorCode = keyof typeof errorCodes;

/** Thrown for what cannot work, with a code and a way out. */
export class NotificationError extends Error {
  override readonly name = 'NotificationError';
  readonly code: NotificationErrorCode;
  /** The records that it is about, where it is about records. */
  readonly ids: readonly string[];

  constructor(
    code: NotificationErrorCode,
    message: string,
    details: { cause?: unknown; ids?: readonly string[] } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.ids = details.ids ?? [];
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
