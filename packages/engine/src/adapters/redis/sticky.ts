/** Sticky sessions in Redis, which deletes them when they expire. */
import type { createClient } from '@redis/client';
import { delayFor, type StickySession } from 'redrive';
import { EngineError } from '../../errors.ts';
import { sessionId, type SharedStickyOptions, type SharedStickyStore } from '../../ports/sticky.ts';
import { checkNames } from 'redrive/internal';
import { checkedUrl, loadRedis } from './link.ts';

export interface RedisStickyOptions extends SharedStickyOptions {
  /** Where the server is: `redis://user:password@host:6379/0`, or `rediss://` with TLS. */
  url: string;
  /** What the names of the keys begin with (`redrive:sticky:`). */
  prefix?: string | undefined;
  /** Hears when the connection is lost, once for each time, and when it is back, without an error. */
  onFault?: ((what: string, error: unknown) => void) | undefined;
}

export interface RedisSticky extends SharedStickyStore {
  /** `why`: what keeps it from being connected. */
  readonly state: { connected: boolean; why?: string };
}

/** A server that is there is connected within this. Until then calls wait; after it they are answered at once. */
const FIRST_MS = 1000;
const CONNECT_MS = 2000;
const pauses = { base: 100, cap: 5000, multiplier: 2, jitter: 'equal' } as const;

/**
 * Connects in the background and for ever. While the server is away there are no sessions, and no call waits for one.
 */
export function redisSticky(given: string | RedisStickyOptions): RedisSticky {
  // Nothing at all is a missing URL.
  const options = typeof given === 'string' ? { url: given } : (given ?? {});
  checkNames('The options of redisSticky', options, ['url', 'prefix', 'now', 'onFault']);
  const { url, prefix = 'redrive:sticky:', now = Date.now, onFault = () => undefined } = options;
  checkedUrl(url);
  let why: string | undefined;
  let isClosed = false;
  let client: ReturnType<typeof createClient> | undefined;
  const clientOptions = {
    url,
    // A call that waits for a server that is away would come too late.
    disableOfflineQueue: true,
    commandsQueueMaxLength: 10_000,
    socket: {
      connectTimeout: CONNECT_MS,
      reconnectStrategy: (retries: number) =>
        isClosed ? false : delayFor(pauses, { attempt: retries + 1, random: Math.random() }),
    },
  };
  const lost = (error: Error) => {
    if (why === undefined && !isClosed) onFault('the connection to Redis was lost', error);
    why = reasonOf(error);
  };
  const connected = connect();

  async function connect(): Promise<void> {
    try {
      const library = await loadRedis();
      if (isClosed) return;
      client = library.createClient(clientOptions);
      client.on('error', lost);
      client.on('ready', () => {
        if (why !== undefined) onFault('Redis is connected again', undefined);
        why = undefined;
      });
    } catch (error) {
      lost(error as Error);
      return;
    }
    // It goes on by itself where this fails, and says so.
    await client.connect().catch(() => undefined);
  }
  const { promise: wasTried, resolve: giveUp } = Promise.withResolvers<void>();
  setTimeout(giveUp, FIRST_MS).unref();
  const first = Promise.race([connected, wasTried]);

  /** The client, where the server can be asked now. */
  async function ready(): Promise<ReturnType<typeof createClient> | undefined> {
    if (isClosed) throw new EngineError('STORE_UNAVAILABLE', 'The store of sessions was closed.');
    if (!client?.isReady) await first;
    return client?.isReady ? client : undefined;
  }

  return {
    get state() {
      if (client?.isReady) return { connected: true };
      return { connected: false, why: why ?? 'It has not answered yet.' };
    },
    async get(key) {
      const session = sessionIn(await (await ready())?.get(prefix + sessionId(key)));
      return session && session.expires_at_ms > now() ? session : undefined;
    },
    async set(key, { provider, expires_at_ms }) {
      const asked = await ready();
      if (!asked) return;
      const name = prefix + sessionId(key);
      const leftMs = Math.floor(expires_at_ms - now());
      const expiration = { type: 'PX', value: leftMs } as const;
      const value = JSON.stringify({ provider, expires_at_ms });
      if (leftMs > 0) await asked.set(name, value, { expiration });
      else await asked.del(name);
    },
    async delete(key) {
      await (await ready())?.del(prefix + sessionId(key));
    },
    async close() {
      isClosed = true;
      client?.destroy();
      await connected;
    },
  };
}

/** Somebody else may have written there. */
function sessionIn(text: string | null | undefined): StickySession | undefined {
  if (text == null) return undefined;
  try {
    const { provider, expires_at_ms } = Object(JSON.parse(text)) as Partial<StickySession>;
    if (typeof provider !== 'string' || typeof expires_at_ms !== 'number') return undefined;
    return { provider, expires_at_ms };
  } catch {
    return undefined;
  }
}

function reasonOf(error: Error & { code?: string }): string {
  // A refused connection of several addresses has no message.
  return error.message || error.code || 'It cannot be reached.';
}
