/** Who else may write what is read, or run, at the start: they decide what the service does. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';

const GROUP_AND_OTHERS_WRITE = 0o022;
const ROOT = 0;

/** A sentence for each of these files that somebody else may write; what is not there is left out. */
export async function exposures(
  folder: string,
  names: readonly string[],
  own = process.getuid?.(),
): Promise<string[]> {
  // On Windows a mode says nothing.
  if (own === undefined) return [];
  const found = await Promise.all(
    names.map(async (name) => {
      const file = await stat(resolve(folder, name)).catch(() => undefined);
      return file ? exposureOf(name, file, own) : [];
    }),
  );
  return found.flat();
}

function exposureOf(
  name: string,
  { mode, uid }: { mode: number; uid: number },
  own: number,
): string[] {
  const found: string[] = [];
  if (uid !== own && uid !== ROOT) {
    found.push(
      `${name} belongs to another user (uid ${uid}), who decides by it what Redrive does. Give it to yourself: chown ${own} ${name}`,
    );
  }
  if ((mode & GROUP_AND_OTHERS_WRITE) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    found.push(
      `${name} may be written by others (mode ${octal}), who decide by it what Redrive does. Take that away: chmod go-w ${name}`,
    );
  }
  return found;
}
