/** One connection to Redis that is opened when it is needed, and given up when it does not answer. */
import { createHash } from 'node:crypto';
import type * as Redis from '@redis/client';
import { ConfigError } from 'redrive';
import { EngineError, isEngineError } from '../../errors.ts';
import { loadPeer } from '../../peer.ts';
import { tlsFault } from '../../tls-faults.ts';

export const CONNECT_TIMEOUT_MS = 5000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2000;
/** A connection on which a command got no answer for so long is given up, and the next command opens another. */
const SILENCE_MS = 10_000;
/** Commands that wait for a server that does not answer. */
export const MAX_WAITING = 10_000;
const CLOSE_TIMEOUT_MS = 2000;

export interface Link<Client> {
  /** Calls with the client, once it is connected. */
  run<T>(command: (client: Client) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A client of `@redis/client`: one connection, or a cluster. */
interface Connectable {
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  destroy(): void;
}

/** Pauses between tries at a connection that was there once. */
export function reconnectPauseMs(retries: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(retries, 10), MAX_PAUSE_MS);
}

export function checkedUrl(url: string): string {
  const fault = urlFault(url);
  if (fault === undefined) return url;
  throw new ConfigError('INVALID_CONFIG', `The URL of Redis ${fault}`);
}

/**
 * What is wrong with a URL; undefined: nothing. The client would say the same of one that it cannot read as of a server that is
 * away, and with the password beside it.
 */
export function urlFault(url: unknown): string | undefined {
  if (typeof url !== 'string' || !/^rediss?:\/\//.test(url))
    return 'must begin with redis:// or rediss://.';
  if (isReadable(url)) return undefined;
  return 'cannot be read. Write redis://user:password@host:6379, and special characters of the password as %2F, %40, %25 and so on.';
}

function isReadable(url: string): boolean {
  try {
    const { username, password } = new URL(url);
    return [username, password].every((part) => decodeURIComponent(part) !== undefined);
  } catch {
    return false;
  }
}

/** The client library, for whoever connects by a URL. */
export async function loadRedis(): Promise<typeof Redis> {
  return (library ??= await loadPeer(
    'The connection to Redis by a URL',
    '@redis/client',
    () => import('@redis/client'),
  ));
}

let library: typeof Redis | undefined;

export function linkOf<Client extends Connectable>(
  create: (library: typeof Redis) => Client,
): Link<Client> {
  type Opened = { client?: Client; ready: Promise<Client>; isDropped?: true };
  let opened: Opened | undefined;

  function open(): Opened {
    const opening = {} as Opened;
    opening.ready = connect();
    return opening;

    async function connect(): Promise<Client> {
      try {
        const loaded = library ?? (await loadRedis());
        if (opening.isDropped)
          throw new Error('the connection was given up while its client was loaded');
        const client = create(loaded);
        opening.client = client;
        await client.connect();
        return client;
      } catch (error) {
        drop(opening);
        throw error;
      }
    }
  }

  /** What was sent and not answered is rejected. */
  function drop(dropped: Opened): void {
    if (opened === dropped) opened = undefined;
    dropped.isDropped = true;
    dropped.client?.destroy();
  }

  /** Drops the connection where the answer takes longer. A client that is dropped while it connects says nothing. */
  function within<T>(ms: number, used: Opened, answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        drop(used);
        reject(new Error(`no answer within ${ms} ms`));
      }, ms);
      void answer.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  return {
    run(command) {
      const used = (opened ??= open());
      return within(SILENCE_MS, used, used.ready.then(command));
    },
    async close() {
      const closing = opened;
      if (!closing) return;
      opened = undefined;
      // What was sent is answered first, but a server that does not answer is not waited for.
      const closed = closing.ready.then((client) => client.close());
      await within(CLOSE_TIMEOUT_MS, closing, closed).catch(() => drop(closing));
    },
  };
}

/** Sent by its hash, or whole to a server that does not know it. */
export interface Script {
  readonly text: string;
  readonly hash: string;
}

export function scriptOf(text: string): Script {
  return { text, hash: createHash('sha1').update(text).digest('hex') };
}

/** The server was restarted, or a replica took over: it has to be sent the script itself. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** What a failed command means. `commands` are those that the user needs to be allowed. */
export function faultOf(error: unknown, commands: string): EngineError {
  if (isEngineError(error)) return error;
  const said = error instanceof Error ? error.message || error.name : String(error);
  if (/^(READONLY|NOPERM)/.test(said)) {
    return new EngineError(
      'STORE_READ_ONLY',
      `Redis takes no writes from this program (${said}). Point the URL at the primary, and let its user run ${commands}.`,
      { cause: error },
    );
  }
  const denied = whyDenied(error, said);
  if (denied !== undefined) return new EngineError('STORE_DENIED', denied, { cause: error });
  if (said.startsWith('OOM')) {
    return new EngineError(
      'STORE_FULL',
      `Redis has no memory left (${said}). Raise maxmemory, or let less wait there. Keep maxmemory-policy at noeviction.`,
      { cause: error },
    );
  }
  return new EngineError(
    'STORE_UNAVAILABLE',
    `Redis did not answer (${said}). Trying again is safe.`,
    { cause: error },
  );
}

/** Never contains a password. */
function whyDenied(error: unknown, said: string): string | undefined {
  const fault = tlsFault(error, 'socket.ca of the client (NODE_EXTRA_CA_CERTS)');
  if (fault !== undefined) return `The connection to Redis failed. ${fault}`;
  if (!/^(WRONGPASS|NOAUTH|ERR AUTH)/.test(said)) return undefined;
  return `Redis refuses the user or the password (${said}). Correct them in the URL (REDIS_URL).`;
}
