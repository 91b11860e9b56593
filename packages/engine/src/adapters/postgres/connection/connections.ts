import type pg from 'pg';
import { loadPeer } from '../../../peer.ts';
import type { DatabaseLimits, PostgresClient, PostgresPool } from './database.ts';
import { within } from './database.ts';
import { unreachable } from './faults.ts';

let library: typeof pg | undefined;

async function load(): Promise<typeof pg> {
  const { default: loaded } = await loadPeer(
    'The connection to PostgreSQL by a URL',
    'pg',
    () => import('pg'),
  );
  return (library = loaded);
}

/** A connection for one purpose, outside the pool's coming and going. */
export interface Dedicated {
  client: Pick<pg.Client, 'query' | 'on'>;
  end(): Promise<void>;
}

/** Where connections come from. */
export interface Connections extends PostgresPool {
  /** One of its own: to listen on, or to migrate with. */
  dedicated(): Promise<Dedicated>;
  /** After `end` none is given until this is called. */
  begin(): void;
  end(): Promise<void>;
}

/** Of the user's pool, or our own. */
export function connectionsOf(
  source: { url: string } | { pool: PostgresPool },
  limits: DatabaseLimits,
  maxConnections: number,
  directUrl?: string,
): Connections {
  return 'pool' in source
    ? new LentConnections(source.pool, directUrl, limits)
    : new OwnConnections(source.url, directUrl, maxConnections, limits);
}

/** Connections of our own, by URL. `directUrl` leads around a pooler, for what needs a session. */
class OwnConnections implements Connections {
  readonly #url: string;
  readonly #directUrl: string;
  readonly #maxConnections: number;
  readonly #limits: DatabaseLimits;
  #pool: pg.Pool | undefined;
  #isBegun = false;
  #hasServerTimeout = true;

  constructor(
    url: string,
    directUrl: string | undefined,
    maxConnections: number,
    limits: DatabaseLimits,
  ) {
    this.#url = url;
    this.#directUrl = directUrl ?? url;
    this.#maxConnections = maxConnections;
    this.#limits = limits;
  }

  begin(): void {
    this.#isBegun = true;
  }

  async connect(): Promise<PostgresClient> {
    const { Pool } = library ?? (await load());
    if (!this.#isBegun) throw new Error('the store is not open');
    const pool = (this.#pool ??= this.#create(Pool));
    try {
      return await pool.connect();
    } catch (error) {
      // PgBouncer takes no such setting. Then only our own timer ends a statement.
      if (!isRefusedSetting(error) || (pool === this.#pool && !this.#hasServerTimeout)) throw error;
      if (pool === this.#pool) {
        this.#hasServerTimeout = false;
        this.#pool = this.#create(Pool);
        await pool.end();
      }
      return this.connect();
    }
  }

  async dedicated(): Promise<Dedicated> {
    const { Client } = library ?? (await load());
    const client = new Client({
      ...connectionTo(this.#directUrl),
      connectionTimeoutMillis: this.#limits.connectTimeoutMs,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
    } catch (error) {
      throw unreachable(error);
    }
    return { client, end: () => client.end() };
  }

  async end(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    this.#isBegun = false;
    await pool?.end();
  }

  #create(Pool: typeof pg.Pool): pg.Pool {
    const { statementTimeoutMs, connectTimeoutMs } = this.#limits;
    const pool = new Pool({
      ...connectionTo(this.#url),
      max: this.#maxConnections,
      connectionTimeoutMillis: connectTimeoutMs,
      idleTimeoutMillis: 30_000,
      ...(this.#hasServerTimeout ? { statement_timeout: statementTimeoutMs } : {}),
    });
    // A connection that breaks while it is idle is replaced when the next one is wanted.
    pool.on('error', () => undefined);
    // One that is cut the moment it is ready says so before anybody could listen, and would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined));
    return pool;
  }
}

/** Connections of the user's own pool, which stays the user's to end. */
class LentConnections implements Connections {
  readonly #pool: PostgresPool;
  readonly #directUrl: string | undefined;
  readonly #limits: DatabaseLimits;

  constructor(pool: PostgresPool, directUrl: string | undefined, limits: DatabaseLimits) {
    this.#pool = pool;
    this.#directUrl = directUrl;
    this.#limits = limits;
  }

  begin(): void {}

  connect(): Promise<PostgresClient> {
    return this.#pool.connect();
  }

  async dedicated(): Promise<Dedicated> {
    if (this.#directUrl !== undefined) {
      return new OwnConnections(this.#directUrl, undefined, 1, this.#limits).dedicated();
    }
    const client = await within(this.#limits.connectTimeoutMs, this.#pool.connect()).catch(
      (error: unknown) => {
        throw unreachable(error);
      },
    );
    return {
      client: client as unknown as Dedicated['client'],
      end: async () => client.release(true),
    };
  }

  async end(): Promise<void> {}
}

function connectionTo(url: string): pg.ClientConfig {
  return { connectionString: url, keepAlive: true, fallback_application_name: 'redrive' };
}

function isRefusedSetting(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/.test(error.message);
}
