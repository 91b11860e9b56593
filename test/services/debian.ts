/** Getting a server from Debian's packages. */
import { spawnSync } from 'node:child_process';
import { findProgram } from './find.ts';
import type { GetKit } from './service.ts';

/** Installs packages when that is possible here; what went wrong is said, not thrown. */
export function install(packages: readonly string[], { say }: GetKit): void {
  const obstacle = obstacleToApt();
  if (obstacle !== undefined) {
    say(`cannot install ${packages.join(' ')}: ${obstacle}`);
    return;
  }
  say(`apt-get install ${packages.join(' ')}`);
  const wanted = ['install', '-y', '--no-install-recommends', ...packages];
  if (apt(wanted).status === 0) return;
  // The lists of a fresh machine are empty, those of an old one name files that are gone.
  apt(['update']);
  const { status, output } = apt(wanted);
  if (status !== 0) say(lastLines(output, 10));
}

/** How a person gets the packages here. */
export function wayOut(packages: readonly string[]): string {
  const names = packages.join(' ');
  const obstacle = obstacleToApt();
  return obstacle === undefined
    ? `scripts/services get, which runs apt-get install ${names}`
    : `${obstacle}: run scripts/services get as root on Debian 12, or install ${names} another way`;
}

function obstacleToApt(): string | undefined {
  if (process.platform !== 'linux' || !findProgram('apt-get', ['/usr/bin'])) {
    return 'this system has no apt-get';
  }
  return process.getuid?.() === 0 ? undefined : 'only root can run apt-get install';
}

function apt(options: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync('apt-get', ['-q', ...options], {
    encoding: 'utf8',
    timeout: 10 * 60_000,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
  });
  return { status, output: error ? error.message : stdout + stderr };
}

function lastLines(text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n');
}
