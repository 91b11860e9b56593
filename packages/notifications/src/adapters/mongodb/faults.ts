import { EngineError, isEngineError } from '@redrive/engine';
import { ConfigError } from 'redrive';
import { isNotificationError, NotificationError } from '../../errors.ts';
import { errors } from './library.ts';

/** Something else is there already that must be there once. */
const DUPLICATE_KEY = 11_000;
const UNAUTHORIZED = 13;
const AUTHENTICATION_FAILED = 18;
const OUT_OF_DISK_SPACE = 14_031;
/** BadValue, a validator of the collection, BSONObjectTooLarge: the same again will not work. */
const REFUSED_DATA: readonly unknown[] = [2, 121, 10_334];

/** The call did not end in time: whether it took effect is not known. */
export class CallTimeout extends Error {
  override readonly name = 'CallTimeout';
}

/**
 * Which operations of a bulk met a key that is there. Throws where one failed for another reason, or where what was
 * written is not known to be on a majority of the servers.
 */
export function duplicatesOf(error: unknown): Set<number> {
  if (!errors || !(error instanceof errors.MongoBulkWriteError)) throw error;
  const writeErrors = [error.writeErrors].flat();
  const isKnown = writeErrors.length > 0 && writeErrors.every(({ code }) => code === DUPLICATE_KEY);
  if (!isKnown || error.result.getWriteConcernError() !== undefined) throw error;
  return new Set(writeErrors.map(({ index }) => index));
}

/** What MongoDB or the way to it said, as an error with a way out; anything else comes back as it is. */
export function faultOf(error: unknown): unknown {
  if (isEngineError(error) || isNotificationError(error)) return error;
  const isOfDriver = errors !== undefined && error instanceof errors.MongoError;
  if (!isOfDriver && !(error instanceof CallTimeout)) return error;
  const said = error.message;
  const code = errors && error instanceof errors.MongoServerError ? error.code : undefined;
  if (REFUSED_DATA.includes(code)) {
    const message = `MongoDB refused the data (${said}). Change the data, or the validator of the collection.`;
    return new NotificationError('INVALID_RECORD', message, { cause: error });
  }
  // An option of the URL that the driver does not know, or that has a wrong value.
  if (errors && error instanceof errors.MongoParseError)
    return new ConfigError('INVALID_CONFIG', `The URL of MongoDB (MONGODB_URL) is wrong: ${said}`);
  switch (code) {
    case AUTHENTICATION_FAILED:
      return fault(
        'STORE_DENIED',
        `MongoDB refuses the user or the password (${said}). Correct them in the URL (MONGODB_URL).`,
      );
    case UNAUTHORIZED:
      return fault(
        'STORE_READ_ONLY',
        `The user of this program lacks a right on the collections of notifications (${said}). Give it the role readWrite.`,
      );
    case OUT_OF_DISK_SPACE:
      return fault(
        'STORE_FULL',
        `The disk of MongoDB is full (${said}). Free some of it. What was stored is safe.`,
      );
    case undefined:
    default:
      return fault(
        'STORE_UNAVAILABLE',
        `The call to MongoDB failed (${said}). Trying again is safe.`,
      );
  }

  function fault(kind: EngineError['code'], message: string): EngineError {
    return new EngineError(kind, message, { cause: error });
  }
}
