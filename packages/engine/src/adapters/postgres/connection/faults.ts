import { EngineError } from '../../../errors.ts';

/** The call did not end in time: whether it took effect is not known. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';
}

/** Rolled back as a whole by the server: the same again may work. */
export function isContention(error: unknown): boolean {
  const code = sqlState(error);
  return code === '40001' || code === '40P01';
}

/** A lock could not be had in time. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/** Something in the data itself that the server does not take: the same again will not work. */
export function isDataFault(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && (/^(22|23)/.test(code) || code === '54000');
}

/** Something else is there already that must be there once: by this index, or by any. */
export function isUniqueFault(error: unknown, index?: string): boolean {
  if (sqlState(error) !== '23505') return false;
  return index === undefined || (error as { constraint?: string }).constraint === index;
}

/** The connection is not worth keeping: it is gone, answers too late, or leads to a server that may not write. */
export function isConnectionFault(error: unknown): boolean {
  const code = sqlState(error);
  // A fault of the caller's own move is none: its transaction is rolled back before it is told.
  if (code === undefined) return isOfConnection(error);
  return /^(08|57P)/.test(code) || code === '25006' || code === '53300';
}

/** What PostgreSQL or the way to it said, as an error with a way out; anything else comes back as it is. */
export function faultOf(error: unknown): unknown {
  if (error instanceof EngineError) return error;
  const code = sqlState(error);
  const said = error instanceof Error ? error.message : String(error);
  if (code === undefined) {
    return isOfConnection(error) ? unreachable(error) : error;
  }
  switch (code) {
    case '25006':
      return fault(
        'STORE_READ_ONLY',
        `The database takes no writes (${said}). Point the URL at the primary, or end its read-only mode.`,
      );
    case '53100':
      return fault(
        'STORE_FULL',
        `The disk of the database is full (${said}). Free some of it. What was stored is safe.`,
      );
    case '42P01':
    case '42703':
    case '3F000':
      return fault(
        'SCHEMA_MISSING',
        `The tables of Redrive are missing or incomplete (${said}). Run the migration with a role that may create tables.`,
      );
    case '42501':
      return fault(
        'STORE_READ_ONLY',
        `The role of this program lacks a right on Redrive's tables (${said}). Grant it SELECT, INSERT, UPDATE and DELETE on them and USAGE on the schema and its sequences.`,
      );
    // No waiting heals these.
    case '3D000':
      return fault(
        'STORE_DENIED',
        `PostgreSQL has no such database (${said}). Create it, or correct its name in the URL.`,
      );
    case '28000':
    case '28P01':
      return fault(
        'STORE_DENIED',
        `PostgreSQL does not let this program in (${said}). Check the role and the password in the URL, and whether the role exists.`,
      );
  }
  // Connections, resources, shutdowns, locks, cancelled statements: all of them may pass.
  if (/^(08|40|53|55|57|58|XX)/.test(code)) {
    return unavailable(`PostgreSQL did not do it (${code}: ${said})`);
  }
  return error;

  function fault(kind: EngineError['code'], message: string): EngineError {
    return new EngineError(kind, message, { cause: error });
  }

  function unavailable(message: string): EngineError {
    return fault('STORE_UNAVAILABLE', `${message}. Trying again is safe.`);
  }
}

/** No connection could be had. */
export function unreachable(error: unknown): EngineError {
  // That the client is not installed does not pass.
  if (error instanceof EngineError) return error;
  const said = error instanceof Error ? error.message || error.name : String(error);
  return new EngineError(
    'STORE_UNAVAILABLE',
    `PostgreSQL cannot be reached (${said}). Trying again is safe.`,
    { cause: error },
  );
}

/** The server's five-character code; undefined where the error is not the server's. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  const { code } = error;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in error
    ? code
    : undefined;
}

/** Of the system's codes (ECONNREFUSED) or of the words of `pg`, which has no codes of its own. */
function isOfConnection(error: unknown): boolean {
  if (error instanceof DatabaseTimeout) return true;
  if (typeof error !== 'object' || error === null) return false;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && /^(E[A-Z_]+|ERR_(SOCKET|TLS|SSL|STREAM)_\w+)$/.test(code))
    return true;
  return (
    typeof message === 'string' &&
    /connection|connect|terminated|timeout|timed out|not queryable|pool after calling end/i.test(
      message,
    )
  );
}
