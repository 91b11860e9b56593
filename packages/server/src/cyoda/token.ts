import { readFile } from 'node:fs/promises';
import { isToken } from '../settings/cyoda.ts';
import { CyodaError } from './trouble.ts';

/** Asked on every join, so that a token that was renewed is used. Undefined: there is none. */
export type TokenSource = () => Promise<string | undefined>;

const MAX_BYTES = 64 * 1024;

/** From a file where one is named, else the token itself. */
export function tokenSource(from: {
  token?: string | undefined;
  tokenFile?: string | undefined;
}): TokenSource {
  const { token, tokenFile } = from;
  if (tokenFile === undefined) return () => Promise.resolve(token);
  return async () => {
    const read = (await contentOf(tokenFile)).trim();
    if (isToken(read)) return read;
    throw unreadable(tokenFile, 'it does not hold one token of visible ASCII characters');
  };
}

async function contentOf(file: string): Promise<string> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw unreadable(file, code ?? 'unknown error', error);
  }
  if (bytes.length > MAX_BYTES) throw unreadable(file, `it has more than ${MAX_BYTES} bytes`);
  return bytes.toString('utf8');
}

function unreadable(file: string, why: string, cause?: unknown): CyodaError {
  const message = `The token cannot be read from ${file}: ${why}. Correct CYODA_TOKEN_FILE, or write a token there.`;
  return new CyodaError('CYODA_TOKEN_UNREADABLE', message, { cause });
}
