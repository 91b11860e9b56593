/** Redis servers of one's own, without persistence. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { install, wayOut } from './debian.ts';
import { findProgram } from './find.ts';
import { Home } from './home.ts';
import { startOnFreePort } from './port.ts';
import { missing, need, type Service, type SharedServer } from './service.ts';

export interface RedisOptions {
  /** Of redis.conf, over the server's own defaults without persistence. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface RedisServer extends SharedServer, AsyncDisposable {
  /** Ends the server at once. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and with what it kept on disk. */
  start(): Promise<void>;
}

const DEBIAN = ['redis-server'];

export const redis: Service<'Redis'> = {
  name: 'Redis',
  neededBy: 'tests of sessions and keys, and benchmarks',
  find() {
    const program = findProgram('redis-server', ['/usr/bin', '/opt/homebrew/bin']);
    if (!program) return missing('no redis-server on this machine', wayOut(DEBIAN));
    return { state: 'found', ...program };
  },
  get: (kit) => install(DEBIAN, kit),
  share: () => startRedis(),
};

export async function startRedis({ settings }: RedisOptions = {}): Promise<RedisServer> {
  const { path } = need(redis);
  const home = new Home('redis', 'SIGKILL');
  try {
    const password = randomBytes(16).toString('hex');
    const config = join(home.folder, 'redis.conf');
    const start = (port: number) => home.run(path, [config], () => answers(port, password));
    const port = await startOnFreePort(home, async (candidate) => {
      writeFileSync(config, configuration(home, candidate, password, settings));
      await start(candidate);
    });
    return {
      url: `redis://:${password}@127.0.0.1:${port}`,
      kill: () => home.end('SIGKILL'),
      start: () => start(port),
      stop: () => home.remove(),
      [Symbol.asyncDispose]: () => home.remove(),
    };
  } catch (error) {
    await home.remove();
    throw error;
  }
}

/** The content of redis.conf. */
export function configuration(
  home: Home,
  port: number,
  password: string,
  settings: RedisOptions['settings'],
): string {
  const all = {
    bind: '127.0.0.1',
    port: String(port),
    dir: home.folder,
    // Whoever reaches a Redis may write files as its user.
    requirepass: password,
    save: '""',
    appendonly: 'no',
    ...settings,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name} ${value}\n`)
    .join('');
}

async function answers(port: number, password: string): Promise<boolean> {
  return (await say(port, password, 'PING')).includes('+PONG');
}

/** What the server answers to one command, as it comes over the wire; nothing where it does not answer. */
export function say(port: number, password: string, command: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`AUTH ${password}\r\n${command}\r\nQUIT\r\n`);
    });
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => (answer += text));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('close', () => resolve(answer.replace(/^\+OK\r\n/, '')));
  });
}
