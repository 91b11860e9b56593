/** The keys of requests, in the database of the service, and the deletion of those that have expired. */
import type { Logger } from 'pino';
import type { Clock, IdempotencyStore } from 'redrive';
import { databaseFile } from '../settings/data-dir.ts';
import type { Settings } from '../settings/settings.ts';

/** A request with a key holds a connection for moments only. */
const MAX_CONNECTIONS = 4;

/** Nothing of it is open before its first use. */
export async function idempotencyOf(
  settings: Pick<Settings, 'databaseUrl' | 'dataDir'>,
  onFault: (what: string, error: unknown) => void = () => undefined,
): Promise<IdempotencyStore> {
  const { databaseUrl } = settings;
  if (databaseUrl === undefined) {
    const { sqliteIdempotency } = await import('@redrive/engine/sqlite');
    return sqliteIdempotency(databaseFile(settings), { onFault });
  }
  const { postgresIdempotency } = await import('@redrive/engine/postgres');
  return postgresIdempotency({ url: databaseUrl, maxConnections: MAX_CONNECTIONS });
}

const EVERY_MS = 600_000;
const AT_ONCE = 1000;

interface KeyPrunerOptions {
  store: IdempotencyStore;
  clock: Clock;
  log: Logger;
}

/** Deletes expired keys from time to time, a few at once. */
export class KeyPruner {
  readonly #options: KeyPrunerOptions;
  #timer: unknown;
  #pruning: Promise<void> | undefined;

  constructor(options: KeyPrunerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.setTimer(() => this.start(), EVERY_MS, true);
    this.#pruning ??= this.#prune().finally(() => {
      this.#pruning = undefined;
    });
  }

  /** After this nobody uses the store any more. */
  async stop(): Promise<void> {
    this.#options.clock.clearTimer(this.#timer);
    await this.#pruning;
    await this.#options.store.close?.();
  }

  async #prune(): Promise<void> {
    const { store, log } = this.#options;
    try {
      while ((await store.prune(AT_ONCE)) === AT_ONCE);
    } catch (err) {
      log.warn({ err }, 'expired idempotency keys could not be deleted, trying again later');
    }
  }
}
