/** Looking for a program: in the folders where packages put it, then on the PATH. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Program {
  readonly path: string;
  readonly version: string;
}

/** The first that runs, and whose version is wanted. */
export function findProgram(
  name: string,
  folders: readonly string[],
  isWanted: (version: string) => boolean = () => true,
  ask: readonly string[] = ['--version'],
): Program | undefined {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const folder of [...folders, ...onPath]) {
    const path = join(folder, name);
    const version = existsSync(path) ? versionOf(path, ask) : undefined;
    if (version !== undefined && isWanted(version)) return { path, version };
  }
  return undefined;
}

/** What the program says of itself; undefined when it does not run here. */
export function versionOf(
  path: string,
  ask: readonly string[] = ['--version'],
): string | undefined {
  const { status, stdout } = spawnSync(path, ask, {
    encoding: 'utf8',
    timeout: 10_000,
    env: { LC_ALL: 'C' },
  });
  return status === 0 ? /\d+(?:\.\d+)+/.exec(stdout)?.[0] : undefined;
}

export function major(version: string): number {
  return Number.parseInt(version, 10);
}
