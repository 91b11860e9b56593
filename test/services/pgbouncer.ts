/** PgBouncer in front of a PostgreSQL server. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { install, wayOut } from './debian.ts';
import { findProgram } from './find.ts';
import { Home } from './home.ts';
import { startOnFreePort } from './port.ts';
import { missing, need, type Service, type SharedServer } from './service.ts';

export interface PgBouncerOptions {
  /** Of the server behind; its user and password open PgBouncer too. */
  readonly upstreamUrl: string;
  readonly poolMode: 'session' | 'transaction' | 'statement';
  /** Of the section `pgbouncer`, over these and its own defaults. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** The url is the upstream's, database included, with the port of PgBouncer. */
export interface PgBouncerServer extends SharedServer, AsyncDisposable {}

const DEBIAN = ['pgbouncer'];

export const pgBouncer: Service<'PgBouncer'> = {
  name: 'PgBouncer',
  neededBy: 'tests',
  find() {
    const program = findProgram('pgbouncer', ['/usr/sbin', '/opt/homebrew/bin']);
    if (!program) return missing('no pgbouncer on this machine', wayOut(DEBIAN));
    return { state: 'found', ...program };
  },
  get: (kit) => install(DEBIAN, kit),
};

export async function startPgBouncer(options: PgBouncerOptions): Promise<PgBouncerServer> {
  const { path } = need(pgBouncer);
  const upstream = new URL(options.upstreamUrl);
  const home = new Home('pgbouncer', 'SIGKILL');
  try {
    const users = join(home.folder, 'users.txt');
    const config = join(home.folder, 'pgbouncer.ini');
    writeFileSync(users, `"${decoded(upstream.username)}" "${decoded(upstream.password)}"\n`);
    const port = await startOnFreePort(home, async (candidate) => {
      writeFileSync(config, configuration(options, upstream, candidate, users));
      await home.run(path, [config], () => accepts(candidate));
    });
    const url = new URL(upstream);
    url.port = String(port);
    return {
      url: url.href,
      stop: () => home.remove(),
      [Symbol.asyncDispose]: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

function configuration(
  { poolMode, settings }: PgBouncerOptions,
  upstream: URL,
  port: number,
  users: string,
): string {
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    pool_mode: poolMode,
    max_client_conn: '500',
    ...settings,
  };
  return [
    '[databases]',
    `* = host=${upstream.hostname} port=${upstream.port || '5432'}`,
    '[pgbouncer]',
    ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
    '',
  ].join('\n');
}

function decoded(text: string): string {
  return decodeURIComponent(text).replaceAll('"', '""');
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
