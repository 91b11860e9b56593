import { createClient } from '@redis/client';
import {
  type ClaimAnswer,
  type ClaimRequest,
  ConfigError,
  type IdempotencyEntry,
  type IdempotencyStore,
  type NewRecord,
  type Outcome,
} from 'redrive';
import { EngineError } from '../../../errors.ts';
import { script, scriptHash } from './script.ts';

/** What is needed of a client of `@redis/client` or `redis`: one connection, a pool, a sentinel or a cluster. */
export interface RedisScripts {
  evalSha(sha1: string, options: ScriptOptions): Promise<unknown>;
  eval(script: string, options: ScriptOptions): Promise<unknown>;
}

interface ScriptOptions {
  keys: string[];
  arguments: string[];
}

export interface RedisIdempotencyOptions {
  /** What the names of keys begin with (`redrive:idempotency:`). */
  prefix?: string | undefined;
}

/**
 * Idempotency keys in Redis 5 or later, which any number of processes may share. A URL, or a client that is connected and
 * stays yours to close. Redis keeps what its own settings keep: with its defaults a crash of the server loses results.
 */
export function redisIdempotency(
  given: string | RedisScripts,
  options: RedisIdempotencyOptions = {},
): IdempotencyStore {
  const { prefix = PREFIX } = options;
  if (typeof prefix !== 'string' || prefix.length > 200) {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The prefix of the Redis keys must be a text of at most 200 characters.',
    );
  }
  const link = typeof given === 'string' ? ownClient(given) : lentClient(given);
  return new RedisIdempotency(link, prefix);
}

const PREFIX = 'redrive:idempotency:';
const CONNECT_TIMEOUT_MS = 5000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2000;
/** A connection on which a command got no answer for so long is given up, and the next command opens another. */
const SILENCE_MS = 10_000;
/** Commands that wait for a server that does not answer. */
const MAX_WAITING = 10_000;
const CLOSE_TIMEOUT_MS = 2000;

interface Link {
  /** Calls with the client, once it is connected. */
  run<T>(command: (client: RedisScripts) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

function lentClient(client: RedisScripts): Link {
  if (typeof client?.evalSha !== 'function' || typeof client?.eval !== 'function') {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The first argument of redisIdempotency is neither a URL such as redis://host:6379 nor a client of @redis/client.',
    );
  }
  return { run: (command) => command(client), close: () => Promise.resolve() };
}

function ownClient(url: string): Link {
  if (!/^rediss?:\/\//.test(url)) {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The URL of Redis must begin with redis:// or rediss://.',
    );
  }
  const create = () => {
    let wasReady = false;
    return createClient({
      url,
      // A command that waits for a connection would take effect long after its caller has given up.
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_WAITING,
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        // The first connection is tried again by the next call, later ones by the client.
        reconnectStrategy: (retries) =>
          wasReady && Math.min(FIRST_PAUSE_MS * 2 ** retries, MAX_PAUSE_MS),
      },
    })
      .on('ready', () => (wasReady = true))
      .on('error', () => undefined);
  };
  type Opened = { client: ReturnType<typeof create>; ready: Promise<RedisScripts> };
  let opened: Opened | undefined;

  function open(): Opened {
    const client = create();
    const opening: Opened = {
      client,
      ready: client.connect().catch((error: unknown) => {
        drop(opening);
        throw error;
      }),
    };
    return opening;
  }

  /** What was sent and not answered is rejected. */
  function drop(dropped: Opened): void {
    if (opened === dropped) opened = undefined;
    dropped.client.destroy();
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
      const closed = closing.ready.then(() => closing.client.close());
      await within(CLOSE_TIMEOUT_MS, closing, closed).catch(() => drop(closing));
    },
  };
}

class RedisIdempotency implements IdempotencyStore {
  readonly #link: Link;
  readonly #prefix: string;

  constructor(link: Link, prefix: string) {
    this.#link = link;
    this.#prefix = prefix;
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, owner, fingerprint, leaseMs, takeOver } = request;
    const lease = String(Math.ceil(leaseMs));
    const answer = await this.#run(key, 'claim', owner, fingerprint, lease, takeOver ? '1' : '0');
    const [state, token, claims] = answer as string[];
    if (state !== 'claimed') return entryOf(answer) as IdempotencyEntry;
    return { state, fencingToken: Number(token), claims: Number(claims) };
  }

  async renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return isDone(await this.#run(key, 'renew', owner, String(Math.ceil(leaseMs))));
  }

  async record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const { outcome, metadata = '', expiresInMs } = record;
    const expiry = expiresInMs === undefined ? '' : String(Math.ceil(expiresInMs));
    const { kind, text } = outcome;
    return isDone(await this.#run(key, 'record', owner, kind, text, metadata, expiry));
  }

  async read(key: string): Promise<IdempotencyEntry | undefined> {
    return entryOf(await this.#run(key, 'read'));
  }

  async release(key: string, owner?: string): Promise<boolean> {
    return isDone(
      owner === undefined ? await this.#run(key, 'clear') : await this.#run(key, 'release', owner),
    );
  }

  /** The server deletes what has expired by itself. */
  async prune(): Promise<number> {
    return 0;
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  async #run(key: string, ...args: string[]): Promise<unknown> {
    const options = { keys: [this.#prefix + key], arguments: args };
    try {
      return await this.#link.run(async (client) => {
        try {
          return await client.evalSha(scriptHash, options);
        } catch (error) {
          // The server was restarted, or a replica took over: the text brings its hash along.
          if (!isUnknownScript(error)) throw error;
          return await client.eval(script, options);
        }
      });
    } catch (error) {
      throw faultOf(error);
    }
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

function faultOf(error: unknown): EngineError {
  const said = error instanceof Error ? error.message || error.name : String(error);
  if (/^(READONLY|NOPERM)/.test(said)) {
    return new EngineError(
      'STORE_READ_ONLY',
      `Redis takes no writes from this program (${said}). Point the URL at the primary, and let its user run EVALSHA, EVAL, HSET, HMGET, DEL and PEXPIRE.`,
      { cause: error },
    );
  }
  if (said.startsWith('OOM')) {
    return new EngineError(
      'STORE_FULL',
      `Redis has no memory left (${said}). Raise maxmemory, or give results an expiry. Keep maxmemory-policy at noeviction.`,
      { cause: error },
    );
  }
  return new EngineError(
    'STORE_UNAVAILABLE',
    `Redis did not answer (${said}). Trying again is safe.`,
    { cause: error },
  );
}

function isDone(answer: unknown): boolean {
  return Number(answer) === 1;
}

function entryOf(answer: unknown): IdempotencyEntry | undefined {
  const [state, fingerprint = '', ...rest] = answer as (string | null)[];
  switch (state) {
    case 'held':
      return { state, fingerprint: String(fingerprint), remainingMs: Number(rest[0]) };
    case 'abandoned':
      return { state, fingerprint: String(fingerprint) };
    case 'done': {
      const [kind, text, recordedAt, metadata] = rest;
      return {
        state,
        fingerprint: String(fingerprint),
        outcome: { kind, text } as Outcome,
        ...(metadata == null ? {} : { metadata }),
        recordedAtMs: Number(recordedAt),
      };
    }
    case null:
    case undefined:
    default:
      return undefined;
  }
}
