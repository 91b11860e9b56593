import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

/** The variables of `.env` in that folder; none where there is no such file. */
export async function readDotenv(
  folder: string,
): Promise<{ variables: Readonly<Record<string, string | undefined>>; fault?: string }> {
  try {
    return { variables: parseEnv(await readFile(join(folder, '.env'), 'utf8')) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { variables: {} };
    return { variables: {}, fault: `cannot be read (${code ?? 'unknown error'}).` };
  }
}
