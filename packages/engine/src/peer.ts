import { EngineError } from './errors.ts';

/**
 * Loads the client of a database or a broker, which whoever uses its adapter installs. Not by a static import: without the
 * package that fails before a word can be said about it. Not by a top-level await either, since CommonJS could then not
 * `require` the adapter.
 *
 * @param needs Who needs it, as the subject of a sentence: "The PostgreSQL store".
 */
export async function loadPeer<T>(
  needs: string,
  name: string,
  load: () => Promise<T>,
  install = name,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new EngineError(
      'PEER_MISSING',
      `${needs} needs the package ${name}, which is not installed. Run: npm install ${install}`,
      { cause: error },
    );
  }
}

/** The package itself, not a part of it. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as NodeJS.ErrnoException;
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isNotFound && String(message).includes(`'${name}'`);
}
