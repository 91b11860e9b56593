/** What a command says when it cannot get at the store. */
import { CommandError, exits } from './command.ts';

/** Codes of sockets and of PostgreSQL that mean: not there, or not now. */
const away = /^(E[A-Z]+|08\w{3}|57P0\d|53300|STORE_\w+|MIGRATION_LOCKED)$/;

const NO_SUCH_DATABASE = '3D000';

/** The error as a command tells it. `hint` is what to do where the store is away. */
export function storeError(error: unknown, hint = 'Is it running, and DATABASE_URL right?'): Error {
  if (error instanceof CommandError) return error;
  const { code = '', message = '' } = firstOf(error);
  if (code === '28P01' || code === '28000' || code === '42501') {
    return new CommandError(`The database does not allow it: ${message}.`, {
      exit: exits.notAllowed,
      code: 'NOT_ALLOWED',
      cause: error,
    });
  }
  if (code === NO_SUCH_DATABASE) {
    return new CommandError(`The ${message}. Make it, or name another one in DATABASE_URL.`, {
      exit: exits.unavailable,
      code: 'UNAVAILABLE',
      cause: error,
    });
  }
  if (away.test(code) || /timeout|connection terminated/i.test(message)) {
    const why = code === '' ? message : code;
    return new CommandError(`The store cannot be reached (${why}). ${hint}`, {
      exit: exits.unavailable,
      code: 'UNAVAILABLE',
      cause: error,
    });
  }
  return error as Error;
}

/** A host with several addresses fails with as many errors. */
function firstOf(error: unknown): { code?: string; message?: string } {
  const { errors } = Object(error) as { errors?: unknown };
  return (Array.isArray(errors) ? (errors[0] as object) : Object(error)) as object;
}
