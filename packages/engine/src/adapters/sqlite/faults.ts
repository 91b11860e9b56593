import { EngineError } from '../../errors.ts';

/** The primary result codes of SQLite that a user can do something about. */
const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;

/** Somebody else holds the lock: to be tried again. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

export function isCannotOpen(error: unknown): boolean {
  return resultCode(error) === CANNOT_OPEN;
}

/** What SQLite or the file system said as an error with a way out; anything else comes back as it is. */
export function faultOf(error: unknown, file: string): unknown {
  const said = error instanceof Error ? error.message : '';
  switch (systemCode(error) ?? resultCode(error)) {
    case BUSY:
    case LOCKED:
      return unavailable(
        `${file} is locked by other processes for too long. Trying again is safe.`,
      );
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
    case READ_ONLY:
      return fault(
        'STORE_READ_ONLY',
        `${file} cannot be written (${said}). Let this process write the file and its folder.`,
      );
    case 'ENOSPC':
    case FULL:
      return fault(
        'STORE_FULL',
        `No room is left for ${file} (${said}). Free some of the disk, or raise maxFileBytes. What was stored is safe.`,
      );
    case CORRUPT:
    case NOT_A_DATABASE:
      return fault(
        'STORE_CORRUPT',
        `${file} is damaged, or is not a database (${said}). Name another file, or restore this one from a backup.`,
      );
    case 'other':
    case CANNOT_OPEN:
      return unavailable(`${file} cannot be opened (${said}). See to the path and its rights.`);
    case IO_ERROR:
      return unavailable(`The disk under ${file} failed (${said}). Trying again is safe.`);
    case undefined:
    default:
      return error;
  }

  function fault(code: EngineError['code'], message: string): EngineError {
    return new EngineError(code, message, { cause: error });
  }

  function unavailable(message: string): EngineError {
    return fault('STORE_UNAVAILABLE', message);
  }
}

/** Why a call of the file system failed. */
function systemCode(error: unknown): 'EROFS' | 'EACCES' | 'EPERM' | 'ENOSPC' | 'other' | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined;
  switch (error.code) {
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
    case 'ENOSPC':
      return error.code;
    default:
      return 'other';
  }
}

/** Without the details in the higher bits; undefined where the error is not SQLite's. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}
