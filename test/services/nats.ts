/** NATS servers of one's own, with JetStream: one, or three that form a cluster. */
import { randomBytes } from 'node:crypto';
import { cpSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { install, wayOut as debianWayOut } from './debian.ts';
import { findProgram } from './find.ts';
import { build, wayOut as goWayOut } from './go.ts';
import { Home } from './home.ts';
import { freePort, startOnFreePort } from './port.ts';
import { missing, need, type Service, type SharedServer } from './service.ts';
import { canRead } from './user.ts';

/** `2.9` is what Debian has. */
export type NatsVersion = '2.9' | '2.15';

export interface NatsOptions {
  readonly version?: NatsVersion;
  /** Lines of the server's configuration, such as `max_payload: 65536`. */
  readonly settings?: readonly string[];
  /** False leaves JetStream off. */
  readonly jetStream?: boolean;
}

export interface NatsServer extends SharedServer, AsyncDisposable {
  /** Of its process; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Ends the server at once. */
  kill(): Promise<void>;
  /** Ends it as SIGTERM does: with care for its data. */
  end(): Promise<void>;
  /** Starts it again, on the same port and with the same data. */
  start(): Promise<void>;
}

export interface NatsCluster extends AsyncDisposable {
  /** Of all servers, for one client. */
  readonly urls: readonly string[];
  readonly servers: readonly NatsServer[];
  stop(): Promise<void>;
}

const DEBIAN = ['nats-server'];
const NEWEST = '2.15.2';
const MODULE = `github.com/nats-io/nats-server/v2@v${NEWEST}`;

export const nats29: Service<'NATS 2.9'> = {
  name: 'NATS 2.9',
  neededBy: 'tests of NATS',
  find() {
    const program = findProgram('nats-server', ['/usr/sbin', '/usr/bin'], (version) =>
      version.startsWith('2.9.'),
    );
    if (!program) return missing('no nats-server 2.9 on this machine', debianWayOut(DEBIAN));
    return { state: 'found', ...program };
  },
  get: (kit) => install(DEBIAN, kit),
  share: () => startNats({ version: '2.9' }),
};

export const nats215: Service<'NATS 2.15'> = {
  name: 'NATS 2.15',
  neededBy: 'tests of NATS',
  find() {
    const folder = builtIn(cacheFolder(process.env, process.platform));
    const program = findProgram('nats-server', [folder], (version) => version.startsWith('2.15.'));
    if (!program) return missing(`no nats-server ${NEWEST} on this machine`, goWayOut(MODULE));
    return { state: 'found', ...program };
  },
  get: (kit) => build(MODULE, builtIn(kit.cacheFolder), kit),
  share: () => startNats({ version: '2.15' }),
};

function builtIn(cache: string): string {
  return join(cache, `nats-${NEWEST}`);
}

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const { version = '2.15' } = options;
  return runNats(need(version === '2.9' ? nats29 : nats215).path, options, '');
}

/** Three servers. Streams with three replicas outlive the end of one. */
export async function startNatsCluster(options: NatsOptions = {}): Promise<NatsCluster> {
  const { version = '2.15' } = options;
  const { path } = need(version === '2.9' ? nats29 : nats215);
  const ports = [await freePort(), await freePort(), await freePort()];
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(', ');
  const servers: NatsServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (const port of ports) {
      const cluster = `cluster { name: redrive, listen: "127.0.0.1:${port}", routes: [${routes}] }`;
      servers.push(await runNats(path, options, cluster));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { urls: servers.map(({ url }) => url), servers, stop, [Symbol.asyncDispose]: stop };
}

/** All servers of a cluster have the same password: a client has one for all of them. */
const password = randomBytes(16).toString('hex');

async function runNats(path: string, options: NatsOptions, cluster: string): Promise<NatsServer> {
  const home = new Home('nats', 'SIGKILL');
  try {
    const program = readable(home, path);
    const config = join(home.folder, 'nats.conf');
    const launch = (port: number) => home.run(program, ['-c', config], () => answers(port));
    const port = await startOnFreePort(home, async (candidate) => {
      writeFileSync(config, configuration(home, candidate, options, cluster));
      await launch(candidate);
    });
    return {
      url: `nats://redrive:${password}@127.0.0.1:${port}`,
      get pid() {
        return home.pid;
      },
      kill: () => home.end('SIGKILL'),
      end: () => home.end('SIGTERM'),
      start: () => launch(port),
      stop: () => home.remove(),
      [Symbol.asyncDispose]: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** The program, or a copy where the server's user cannot read it. */
function readable(home: Home, path: string): string {
  if (canRead(home.user, path)) return path;
  const copy = join(home.folder, 'nats-server');
  cpSync(path, copy);
  return copy;
}

function configuration(
  home: Home,
  port: number,
  { settings = [], jetStream = true }: NatsOptions,
  cluster: string,
): string {
  const lines = [
    `server_name: "server-${port}"`,
    `listen: "127.0.0.1:${port}"`,
    `authorization { user: redrive, password: "${password}" }`,
    jetStream ? `jetstream { store_dir: "${join(home.folder, 'store')}" }` : '',
    cluster,
    ...settings,
  ];
  return lines.filter((line) => line !== '').join('\n') + '\n';
}

/** A server greets a client as soon as it can serve it. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let isReady = false;
    socket.once('data', (bytes) => {
      isReady = bytes.toString('latin1').startsWith('INFO ');
      socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('close', () => resolve(isReady));
  });
}
