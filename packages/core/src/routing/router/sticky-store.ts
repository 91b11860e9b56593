import { systemClock } from '../../system.ts';
import type { StickySession } from '../route-context.ts';
import { checkOptions } from '../../options/check-options.ts';
import type { Fields } from '../../options/fields.ts';

/** Where sticky sessions are kept. A store that fails or is late costs the session, never the call. */
export interface StickyStore {
  /** The session under this key, where it has not expired. */
  get(key: string): MaybePromise<StickySession | null | undefined>;
  set(key: string, session: StickySession): MaybePromise<void>;
  delete(key: string): MaybePromise<void>;
}

export type MaybePromise<T> = T | PromiseLike<T>;

export interface MemoryStickyOptions {
  /** The sessions that are kept at most (10 000). The one that was used least recently goes first. */
  maxSessions?: number | undefined;
  /** The wall clock in ms. */
  now?: (() => number) | undefined;
}

const fields = {
  maxSessions: { kind: 'integer', min: 1, max: 100_000_000, default: 10_000 },
} as const satisfies Fields;
/** Expired sessions that one `set` removes from the old end. */
const MAX_SWEPT = 8;

/** Sticky sessions in the memory of this process. */
export function memorySticky(options: MemoryStickyOptions = {}): StickyStore {
  const checked = checkOptions('The options of memorySticky', options, fields, ['now']);
  const maxSessions = checked['maxSessions'] as number;
  const { now = () => systemClock.now() } = options;
  // In the order of use: the first is the one that was used least recently.
  const sessions = new Map<string, StickySession>();
  return {
    get(key) {
      const session = sessions.get(key);
      if (!session) return undefined;
      sessions.delete(key);
      if (session.expires_at_ms <= now()) return undefined;
      sessions.set(key, session);
      return session;
    },
    set(key, session) {
      sessions.delete(key);
      sessions.set(key, session);
      let swept = 0;
      for (const [oldest, { expires_at_ms: until }] of sessions) {
        if (sessions.size <= maxSessions && (until > now() || ++swept > MAX_SWEPT)) return;
        sessions.delete(oldest);
      }
    },
    delete(key) {
      sessions.delete(key);
    },
  };
}
