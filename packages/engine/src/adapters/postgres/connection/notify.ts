import { reportFault } from 'redrive/internal';
import type { Hint } from '../../../ports/schedule.ts';
import type { Database, Session } from './database.ts';

/** At most one notification per instance in this time: every NOTIFY takes a lock that all of the server's share. */
const QUIET_MS = 50;
/** A message holds 8000 bytes. With more lanes than this, others look for themselves. */
const MAX_LANES = 20;
const MAX_PAYLOAD_BYTES = 7000;

/** Tells the watchers of this process at once, and other instances soon, what is new. */
export class Notifier {
  readonly #database: Database;
  readonly #channel: string;
  readonly #instance: string;
  readonly #listeners = new Set<{ call: (hint: Hint) => void }>();
  #waiting: Hint | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(database: Database, channel: string, instance: string) {
    this.#database = database;
    this.#channel = channel;
    this.#instance = instance;
  }

  watch(call: (hint: Hint) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** For this process alone. */
  tellHere(hint: Hint): void {
    for (const { call } of this.#listeners) {
      try {
        call(hint);
      } catch (error) {
        reportFault('a watcher of the store threw', error);
      }
    }
  }

  /** After the commit, and outside of it: a lost notification costs others at most their polling interval. */
  tell(hint: Hint): void {
    this.tellHere(hint);
    this.#waiting = this.#waiting ? both(this.#waiting, hint) : hint;
    if (this.#timer) return;
    void this.flush();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.flush();
    }, QUIET_MS);
    this.#timer.unref();
  }

  /** With the caller's transaction: it is sent when that commits, and comes back to this process the same way. */
  async tellIn(session: Session, hint: Hint): Promise<void> {
    await session.query('SELECT pg_notify($1, $2)', [this.#channel, payloadOf(hint)]);
  }

  async flush(): Promise<void> {
    const hint = this.#waiting;
    if (!hint) return;
    this.#waiting = undefined;
    try {
      await this.send(this.#channel, payloadOf({ ...hint, from: this.#instance }));
    } catch {
      // A database that is away has just said so to whoever stores something; and everybody polls.
    }
  }

  async send(channel: string, payload: string): Promise<void> {
    // Nobody waits for this to reach the disk.
    await this.#database.query(
      `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`,
      [channel, payload],
    );
  }
}

function both(a: Hint, b: Hint): Hint {
  const lanes = a.lanes && b.lanes ? [...new Set([...a.lanes, ...b.lanes])] : (a.lanes ?? b.lanes);
  const inMs = Math.min(a.inMs ?? Infinity, b.inMs ?? Infinity);
  return {
    ...(lanes ? { lanes } : {}),
    ...(inMs < Infinity ? { inMs } : {}),
    ...(a.state || b.state ? { state: true } : {}),
  };
}

function payloadOf(hint: Hint & { from?: string }): string {
  const { lanes, state: _, ...rest } = hint;
  if (!lanes) return JSON.stringify(hint);
  const payload = lanes.length > MAX_LANES ? '' : JSON.stringify(hint);
  // Too many to name: look for yourself. The state is read then too, and named alone it would be all that is read.
  const isShort = payload !== '' && Buffer.byteLength(payload) <= MAX_PAYLOAD_BYTES;
  return isShort ? payload : JSON.stringify(rest);
}
