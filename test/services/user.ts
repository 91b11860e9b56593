/** Whom servers run as: PostgreSQL and PgBouncer refuse to run as root. */
import { chownSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** As root `postgres`, or where there is none `nobody`; else undefined, for whoever runs this. */
export function serverUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8').split('\n').map(parseUser);
  const user =
    users.find((one) => one?.name === 'postgres') ?? users.find((one) => one?.name === 'nobody');
  if (!user) throw new Error('root needs a user postgres or nobody to run servers as: add one');
  return user;
}

/** What spawn takes to run as that user. */
export function spawnIds(user: ServerUser | undefined): { uid?: number; gid?: number } {
  return user ? { uid: user.uid, gid: user.gid } : {};
}

export function giveTo(user: ServerUser | undefined, path: string): void {
  if (user) chownSync(path, user.uid, user.gid);
}

/** Whether the user may enter every folder on the way to a file, and read it. */
export function canRead(user: ServerUser | undefined, path: string): boolean {
  if (!user) return true;
  return has(user, path, 4) && foldersAbove(path).every((folder) => has(user, folder, 1));
}

function has(user: ServerUser, path: string, bit: 1 | 4): boolean {
  const { mode, uid, gid } = statSync(path);
  const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
  return ((mode >> shift) & bit) !== 0;
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [folder, ...foldersAbove(folder)];
}

function parseUser(line: string): ServerUser | undefined {
  const [name, , uid, gid] = line.split(':');
  return name && uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined;
}
