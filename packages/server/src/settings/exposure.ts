/** Who else may write what is read, or run, at the start: they decide what the service does. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const ROOT = 0;

interface User {
  uid: number;
  gid: number;
}

/** A sentence for each of these files that somebody else may write; what is not there is left out. */
export async function exposures(
  folder: string,
  names: readonly string[],
  own = ownUser(),
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

function ownUser(): User | undefined {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}

function exposureOf(name: string, file: User & { mode: number }, own: User): string[] {
  const { mode, uid, gid } = file;
  const found: string[] = [];
  if (uid !== own.uid && uid !== ROOT) {
    found.push(
      `${name} belongs to another user (uid ${uid}), who decides by it what Redrive does. Give it to yourself: chown ${own.uid} ${name}`,
    );
  }
  // Where new files are made for their group, everybody has one of his own.
  const isOfOthers =
    (mode & OTHERS_WRITE) !== 0 || (gid !== own.gid && (mode & GROUP_WRITES) !== 0);
  if (isOfOthers) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    found.push(
      `${name} may be written by others (mode ${octal}), who decide by it what Redrive does. Take that away: chmod go-w ${name}`,
    );
  }
  return found;
}
