/** Where the service keeps sticky sessions: in Redis where there is one, else beside its own data. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { SharedStickyStore } from '@redrive/engine';
import type { Clock, StickyStore } from 'redrive';
import type { Settings } from '../settings/settings.ts';

/** Beside the SQLite file of the service, since sessions may be lost and tasks may not. */
const SESSIONS_FILE = 'sessions.db';
/** A store that is away is said to be so once in this time. */
const SAID_FOR_MS = 60_000;

export interface Sessions extends StickyStore {
  /** What keeps sessions from being found; undefined: nothing does. */
  readonly trouble: string | undefined;
  close(): Promise<void>;
}

interface Opened {
  store: SharedStickyStore;
  /** What the store itself knows of its connection. */
  why: () => string | undefined;
}

type SessionSettings = Pick<Settings, 'redisUrl' | 'databaseUrl' | 'dataDir'>;

/** Nothing is waited for: sessions are missing until their store is there. */
export async function openSessions(
  settings: SessionSettings,
  clock: Clock,
  log: Pick<Logger, 'warn' | 'info'>,
): Promise<Sessions> {
  const { store, why } = await storeOf(settings, clock, log);
  return observed(store, why, clock, log);
}

async function storeOf(
  { redisUrl, databaseUrl, dataDir }: SessionSettings,
  clock: Clock,
  log: Pick<Logger, 'warn' | 'info'>,
): Promise<Opened> {
  const now = () => clock.now();
  if (redisUrl !== undefined) {
    const { redisSticky } = await import('@redrive/engine/redis');
    const store = redisSticky({
      url: redisUrl,
      now,
      onFault: (what, err) => (err === undefined ? log.info(what) : log.warn({ err }, what)),
    });
    const why = () =>
      store.state.connected
        ? undefined
        : `Redis is not connected, so there are no sticky sessions: ${store.state.why}`;
    return { store, why };
  }
  const why = () => undefined;
  if (databaseUrl !== undefined) {
    const { postgresSticky } = await import('@redrive/engine/postgres');
    return { store: postgresSticky({ url: databaseUrl, now }), why };
  }
  const { sqliteSticky } = await import('@redrive/engine/sqlite');
  return { store: sqliteSticky(join(dataDir, SESSIONS_FILE), { now }), why };
}

/** A store that fails has no session. It is said in the log, not with every request, and in the health. */
function observed(
  store: SharedStickyStore,
  why: () => string | undefined,
  clock: Clock,
  log: Pick<Logger, 'warn'>,
): Sessions {
  let failed: string | undefined;
  let saidAt = -Infinity;
  async function attempt<T>(ask: () => PromiseLike<T> | T): Promise<T | undefined> {
    try {
      const answer = await ask();
      failed = undefined;
      return answer;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      failed = `Sticky sessions cannot be read or written: ${reason}`;
      if (clock.monotonic() - saidAt < SAID_FOR_MS) return undefined;
      saidAt = clock.monotonic();
      log.warn({ err: error }, 'the store of sticky sessions failed: requests go on without');
      return undefined;
    }
  }
  return {
    get trouble() {
      return why() ?? failed;
    },
    get: (key) => attempt(() => store.get(key)),
    set: (key, session) => attempt(() => store.set(key, session)),
    delete: (key) => attempt(() => store.delete(key)),
    close: () => store.close(),
  };
}
