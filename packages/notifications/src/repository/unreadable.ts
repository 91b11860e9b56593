import { reportFault } from 'redrive/internal';
import { isNotificationError, NotificationError } from '../errors.ts';

export interface UnreadableOptions {
  /** Hears of a stored record that cannot be read, once for each in this process. Unless given: the console. */
  onUnreadable?: (error: NotificationError) => void;
}

/** So many are remembered as told: somebody who fills the database with them shall not fill the memory too. */
const MAX_TOLD = 10_000;

/** Reads stored records, and goes on where one of them cannot be read. */
export class Reader {
  readonly #tell: (error: NotificationError) => void;
  readonly #told = new Set<string>();

  constructor({ onUnreadable }: UnreadableOptions) {
    this.#tell = onUnreadable ?? ((error) => reportFault('a stored record cannot be read', error));
  }

  /** Undefined where it cannot be read; that is told. */
  tolerant<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#tellOnce(error);
      return undefined;
    }
  }

  /** All of them, or one error that names every one that cannot be read. */
  strict<S, T>(stored: readonly S[], read: (one: S, index: number) => T): T[] {
    const errors: NotificationError[] = [];
    const found: T[] = [];
    for (const [i, one] of stored.entries()) {
      try {
        found.push(read(one, i));
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        errors.push(error);
      }
    }
    for (const error of errors) this.#tellOnce(error);
    if (errors.length === 0) return found;
    const ids = [...new Set(errors.flatMap((error) => error.ids))];
    const message = errors.map((error) => error.message).join(' ');
    throw new NotificationError('RECORD_UNREADABLE', message, { cause: errors[0], ids });
  }

  #tellOnce(error: NotificationError): void {
    const key = error.ids.join();
    if (this.#told.has(key)) return;
    if (this.#told.size === MAX_TOLD) this.#told.clear();
    this.#told.add(key);
    this.#tell(error);
  }
}

function isUnreadable(error: unknown): error is NotificationError {
  return isNotificationError(error) && error.code === 'RECORD_UNREADABLE';
}
