/** RabbitMQ servers of one's own, one node each, which no epmd knows of. */
import { execFile } from 'node:child_process';
import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { install, wayOut } from './debian.ts';
import { startFakeEpmd } from './epmd.ts';
import { Home } from './home.ts';
import { startOnFreePort } from './port.ts';
import { missing, need, type Service, type SharedServer } from './service.ts';
import { spawnIds } from './user.ts';

export interface RabbitmqOptions {
  /** Of rabbitmq.conf, over the server's own defaults. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface RabbitmqServer extends SharedServer, AsyncDisposable {
  /** Shuts down in order and starts again on the same port and data. */
  restart(): Promise<void>;
  /** Kills the server, as a crash of the machine would. */
  kill9(): Promise<void>;
  /** After `kill9`: recovers, on the same port and data. */
  start(): Promise<void>;
  /** Runs rabbitmqctl and answers what it printed. */
  ctl(...args: string[]): Promise<string>;
  /** Raises the memory alarm, which blocks whoever publishes, or ends it. */
  setMemoryAlarm(isOn: boolean): Promise<void>;
  /** Ends every connection from the server's side. */
  closeConnections(): Promise<void>;
}

const DEBIAN = ['rabbitmq-server'];
/** The scripts themselves: what Debian puts on the PATH switches the user. */
const FOLDERS = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/opt/rabbitmq/sbin'];

export const rabbitmq: Service<'RabbitMQ'> = {
  name: 'RabbitMQ',
  neededBy: 'tests and benchmarks',
  find() {
    for (const folder of FOLDERS) {
      const path = join(folder, 'rabbitmq-server');
      const version = existsSync(path) ? versionOf(path) : undefined;
      if (version !== undefined) return { state: 'found', path, version };
    }
    return missing('no rabbitmq-server on this machine', wayOut(DEBIAN));
  },
  get: (kit) => install(DEBIAN, kit),
  share: () => startRabbitmq(),
};

export async function startRabbitmq({ settings }: RabbitmqOptions = {}): Promise<RabbitmqServer> {
  const { path } = need(rabbitmq);
  // In order, since a node that was killed leaves its helpers to notice by themselves.
  const home = new Home('rabbitmq', 'SIGTERM');
  try {
    writeFileSync(join(home.folder, 'plugins'), '[].\n');
    writeFileSync(join(home.folder, 'rabbitmq.conf'), configuration(settings));
    // Nothing is started here: it is only a port that is free.
    const distPort = await startOnFreePort(home, async () => undefined);
    const start = async (port: number) => {
      const epmd = await startFakeEpmd();
      try {
        const env = environment(home.folder, { port, distPort, epmdPort: epmd.port });
        // `env` hands the variables over and becomes the server.
        await home.run('/usr/bin/env', [...assignments(env), path], () => answers(port));
      } finally {
        await epmd.stop();
      }
    };
    const port = await startOnFreePort(home, start);
    const ctl = async (...args: string[]) => {
      const env = environment(home.folder, { port, distPort, epmdPort: distPort });
      const { stdout } = await promisify(execFile)(
        join(dirname(path), 'rabbitmqctl'),
        ['--quiet', ...args],
        { ...spawnIds(home.user), cwd: home.folder, env },
      );
      return stdout;
    };
    return {
      url: `amqp://guest:guest@127.0.0.1:${port}`,
      async restart() {
        await home.end('SIGTERM');
        await start(port);
      },
      kill9: () => home.end('SIGKILL'),
      start: () => start(port),
      ctl,
      async setMemoryAlarm(isOn) {
        await ctl('set_vm_memory_high_watermark', isOn ? '0' : '0.6');
      },
      async closeConnections() {
        await ctl('close_all_connections', 'closed by a test');
      },
      stop: () => home.remove(),
      [Symbol.asyncDispose]: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** By its folder: the program itself would start a server if it were asked. */
function versionOf(path: string): string | undefined {
  return /rabbitmq(?:_server-|\/)(\d+(?:\.\d+)+)\//.exec(realpathSync(path))?.[1];
}

function configuration(settings: RabbitmqOptions['settings']): string {
  return Object.entries({ 'log.console.level': 'warning', ...settings })
    .map(([name, value]) => `${name} = ${value}\n`)
    .join('');
}

function environment(
  folder: string,
  { port, distPort, epmdPort }: Readonly<Record<'port' | 'distPort' | 'epmdPort', number>>,
): Record<string, string> {
  return {
    PATH: [process.env['PATH'], '/usr/sbin'].join(delimiter),
    // Of the cookie that lets rabbitmqctl in.
    HOME: folder,
    LC_ALL: 'C.UTF-8',
    // Runs in the foreground as the very process that was started.
    detached: 'true',
    RABBITMQ_NODENAME: `redrive-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distPort),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
    RABBITMQ_CONF_ENV_FILE: join(folder, 'no-environment'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    // A daemon for all nodes of the machine would outlive them: each is told where its other is.
    ERL_FLAGS: '-start_epmd false',
    ERL_EPMD_PORT: String(epmdPort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `-erl_epmd_port ${distPort} -kernel inet_dist_use_interface {127,0,0,1}`,
    RABBITMQ_CTL_ERL_ARGS: `-dist_listen false -erl_epmd_port ${distPort}`,
  };
}

function assignments(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

/** It has said its part of the protocol's first exchange. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('AMQP\0\0\u0009\u0001'));
    let hasAnswered = false;
    socket.once('data', () => {
      hasAnswered = true;
      socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.setTimeout(5000, () => socket.destroy());
    socket.on('close', () => resolve(hasAnswered));
  });
}
