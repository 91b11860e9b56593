/** PostgreSQL servers of one's own, with the settings that a fresh installation has. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout } from 'node:timers/promises';
import { Home } from './home.ts';
import { startOnFreePort } from './port.ts';
import { type PostgresVersion, programs } from './postgres-programs.ts';
import { childrenOf } from './processes.ts';
import { need, type Service } from './service.ts';
import { canRead, spawnIds } from './user.ts';

export interface PostgresOptions {
  readonly version: PostgresVersion;
  /** Of postgresql.conf, over the installation's own and `max_connections` 200. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgresServer extends AsyncDisposable {
  /** As superuser, with the password, to the database `postgres`. */
  readonly url: string;
  readonly version: PostgresVersion;
  /** Shuts down in order, cutting connections, and starts again on the same port and data. */
  restart(): Promise<void>;
  /** Kills the server and all its processes, as a crash of the machine would. */
  kill9(): Promise<void>;
  /** After `kill9`: recovers, on the same port and data. */
  start(): Promise<void>;
  /** Ends the server and removes its data. A second call does nothing. */
  stop(): Promise<void>;
}

export const postgres15: Service<'PostgreSQL 15'> = {
  name: 'PostgreSQL 15',
  ...programs[15],
  share: () => startPostgres({ version: 15 }),
};

export const postgres18: Service<'PostgreSQL 18'> = {
  name: 'PostgreSQL 18',
  ...programs[18],
  share: () => startPostgres({ version: 18 }),
};

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { version, settings } = options;
  const { path } = need(version === 15 ? postgres15 : postgres18);
  // SIGQUIT and not SIGKILL, which would leave shared memory behind.
  const home = new Home(`postgres-${version}`, 'SIGQUIT');
  try {
    const bin = openPrograms(home, dirname(path));
    const data = join(home.folder, 'data');
    const password = randomBytes(16).toString('hex');
    await initialise(home, bin, data, password);
    const start = (port: number) =>
      home.run(join(bin, 'postgres'), ['-D', data, ...flags(port, settings)], () =>
        isReady(data, home.pid),
      );
    const port = await startOnFreePort(home, start);
    const stop = async () => {
      try {
        // What a crash left in shared memory only the next start takes away.
        if (existsSync(data) && !home.isRunning) await start(port);
      } finally {
        await home.remove();
      }
    };
    return {
      url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
      version,
      async restart() {
        await home.end('SIGINT');
        await start(port);
      },
      kill9: () => crash(home),
      start: () => start(port),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** The folder of the programs, or a copy where the server's user cannot read them. */
function openPrograms(home: Home, bin: string): string {
  if (canRead(home.user, join(bin, 'postgres'))) return bin;
  const copy = join(home.folder, 'programs');
  cpSync(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, 'bin');
}

async function initialise(home: Home, bin: string, data: string, password: string): Promise<void> {
  const passwordFile = join(home.folder, 'password');
  writeFileSync(passwordFile, password);
  const args = [
    ['--pgdata', data, '--username', 'postgres', '--pwfile', passwordFile],
    ['--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C'],
    // Only the fresh files: the server itself syncs as always.
    ['--no-sync', '--no-instructions'],
  ];
  await promisify(execFile)(join(bin, 'initdb'), args.flat(), {
    ...spawnIds(home.user),
    cwd: home.folder,
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
  });
}

function flags(port: number, settings: PostgresOptions['settings']): string[] {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    ...settings,
  };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** The server's own file says how far it is; after a crash the old one is still there for a moment. */
function isReady(data: string, pid: number | undefined): boolean {
  const path = join(data, 'postmaster.pid');
  if (!existsSync(path)) return false;
  const lines = readFileSync(path, 'utf8').split('\n');
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

async function crash(home: Home): Promise<void> {
  const { pid } = home;
  if (pid === undefined) return;
  // Stopped first, so that it starts no process that would be missed.
  process.kill(pid, 'SIGSTOP');
  const children = childrenOf(pid);
  for (const child of children) process.kill(child, 'SIGKILL');
  await home.end('SIGKILL');
  // The next start is refused while one of them still has the shared memory.
  while (children.some(isThere)) await setTimeout(10);
}

function isThere(pid: number): boolean {
  return (
    existsSync(`/proc/${pid}/stat`) &&
    !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  );
}
