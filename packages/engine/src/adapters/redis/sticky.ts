/** Sticky sessions in Redis, which deletes them when they expire. */
import { createClient } from '@redis/client';
import { delayFor, type StickySession } from 'redrive';
import { EngineError } from '../../errors.ts';
import { sessionId, type SharedStickyOptions, type SharedStickyStore } from '../../ports/sticky.ts';

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
  const {
    url,
    prefix = 'redrive:sticky:',
    now = Date.now,
    onFault = () => undefined,
  } = typeof given === 'string' ? { url: given } : given;
  let why: string | undefined;
  let isClosed = false;
  const client = createClient({
    url,
    // A call that waits for a server that is away would come too late.
    disableOfflineQueue: true,
    commandsQueueMaxLength: 10_000,
    socket: {
      connectTimeout: CONNECT_MS,
      reconnectStrategy: (retries) =>
        isClosed ? false : delayFor(pauses, { attempt: retries + 1, random: Math.random() }),
    },
  });
  client.on('error', (error: Error) => {
    if (why === undefined && !isClosed) onFault('the connection to Redis was lost', error);
    why = reasonOf(error);
  });
  client.on('ready', () => {
    if (why !== undefined) onFault('Redis is connected again', undefined);
    why = undefined;
  });
  const connected = client.connect().then(
    () => undefined,
    () => undefined,
  );
  const { promise: wasTried, resolve: giveUp } = Promise.withResolvers<void>();
  setTimeout(giveUp, FIRST_MS).unref();
  const first = Promise.race([connected, wasTried]);

  /** Whether the server can be asked now. */
  async function isReady(): Promise<boolean> {
    if (isClosed) throw new EngineError('STORE_UNAVAILABLE', 'The store of sessions was closed.');
    if (!client.isReady) await first;
    return client.isReady;
  }

  return {
    get state() {
      if (client.isReady) return { connected: true };
      return { connected: false, why: why ?? 'It has not answered yet.' };
    },
    async get(key) {
      if (!(await isReady())) return undefined;
      const session = sessionIn(await client.get(prefix + sessionId(key)));
      return session && session.expires_at_ms > now() ? session : undefined;
    },
    async set(key, { provider, expires_at_ms }) {
      if (!(await isReady())) return;
      const name = prefix + sessionId(key);
      const leftMs = Math.floor(expires_at_ms - now());
      const expiration = { type: 'PX', value: leftMs } as const;
      const value = JSON.stringify({ provider, expires_at_ms });
      if (leftMs > 0) await client.set(name, value, { expiration });
      else await client.del(name);
    },
    async delete(key) {
      if (await isReady()) await client.del(prefix + sessionId(key));
    },
    async close() {
      isClosed = true;
      client.destroy();
      await connected;
    },
  };
}

/** Somebody else may have written there. */
function sessionIn(text: string | null): StickySession | undefined {
  if (text === null) return undefined;
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
