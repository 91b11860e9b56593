import {
  type ClaimAnswer,
  type ClaimRequest,
  ConfigError,
  type IdempotencyEntry,
  type IdempotencyStore,
  type NewRecord,
  type Outcome,
} from 'redrive';
import {
  checkedUrl,
  CONNECT_TIMEOUT_MS,
  faultOf,
  isUnknownScript,
  type Link,
  linkOf,
  MAX_WAITING,
  reconnectPauseMs,
  type Script,
} from '../link.ts';
import { checkNames } from 'redrive/internal';
import { scripts } from './scripts.ts';

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
  checkNames('The options of redisIdempotency', options, ['prefix']);
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
const COMMANDS = 'EVALSHA, EVAL, EXISTS, HGET, HMGET, HSET, DEL, PEXPIRE and TIME';

function lentClient(client: RedisScripts): Link<RedisScripts> {
  if (typeof client?.evalSha !== 'function' || typeof client?.eval !== 'function') {
    throw new ConfigError(
      'INVALID_CONFIG',
      'The first argument of redisIdempotency is neither a URL such as redis://host:6379 nor a client of @redis/client.',
    );
  }
  return { run: (command) => command(client), close: () => Promise.resolve() };
}

function ownClient(url: string): Link<RedisScripts> {
  checkedUrl(url);
  return linkOf(({ createClient }) => {
    let wasReady = false;
    return createClient({
      url,
      // A command that waits for a connection would take effect long after its caller has given up.
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_WAITING,
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        // The first connection is tried again by the next call, later ones by the client.
        reconnectStrategy: (retries) => wasReady && reconnectPauseMs(retries),
      },
    })
      .on('ready', () => (wasReady = true))
      .on('error', () => undefined);
  });
}

class RedisIdempotency implements IdempotencyStore {
  readonly #link: Link<RedisScripts>;
  readonly #prefix: string;

  constructor(link: Link<RedisScripts>, prefix: string) {
    this.#link = link;
    this.#prefix = prefix;
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, owner, fingerprint, leaseMs, takeOver } = request;
    const lease = String(Math.ceil(leaseMs));
    const answer = await this.#run(
      scripts.claim,
      key,
      owner,
      fingerprint,
      lease,
      takeOver ? '1' : '0',
    );
    const [state, token, claims] = answer as string[];
    if (state !== 'claimed') return entryOf(answer) as IdempotencyEntry;
    return { state, fencingToken: Number(token), claims: Number(claims) };
  }

  async renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return isDone(await this.#run(scripts.renew, key, owner, String(Math.ceil(leaseMs))));
  }

  async record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const { outcome, metadata = '', expiresInMs } = record;
    const expiry = expiresInMs === undefined ? '' : String(Math.ceil(expiresInMs));
    const { kind, text } = outcome;
    return isDone(await this.#run(scripts.record, key, owner, kind, text, metadata, expiry));
  }

  async read(key: string): Promise<IdempotencyEntry | undefined> {
    return entryOf(await this.#run(scripts.read, key));
  }

  async release(key: string, owner?: string): Promise<boolean> {
    return isDone(
      owner === undefined
        ? await this.#run(scripts.clear, key)
        : await this.#run(scripts.release, key, owner),
    );
  }

  /** The server deletes what has expired by itself. */
  async prune(): Promise<number> {
    return 0;
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  async #run(script: Script, key: string, ...args: string[]): Promise<unknown> {
    const options = { keys: [this.#prefix + key], arguments: args };
    try {
      return await this.#link.run(async (client) => {
        try {
          return await client.evalSha(script.hash, options);
        } catch (error) {
          // The server was restarted, or a replica took over: the text brings its hash along.
          if (!isUnknownScript(error)) throw error;
          return await client.eval(script.text, options);
        }
      });
    } catch (error) {
      throw faultOf(error, COMMANDS);
    }
  }
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
