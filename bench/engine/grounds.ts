import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type PostgresServer,
  type RedisServer,
  type ServiceName,
  startPostgres,
  startRedis,
} from '@redrive/services';
import { Redis } from 'ioredis';
import pg from 'pg';
import { requireServer } from '../missing.ts';
import { parentOf } from './cpu.ts';
import { until } from './tally.ts';

export type Ground = 'postgres' | 'redis' | 'file';

/** What has to be there for it; a file needs nothing. */
export const serverOf: Readonly<Record<Ground, ServiceName | undefined>> = {
  postgres: 'PostgreSQL 15',
  redis: 'Redis',
  file: undefined,
};

/** An empty place for one turn. */
export interface Place {
  address: string;
  /** The server's process; a file has none. */
  serverPid?: number | undefined;
  /** Everything written, and statistics of what is stored: the same state for everybody who goes on from here. */
  rest(): Promise<void>;
  remove(): Promise<void>;
}

/**
 * The real servers, and empty places on them. PostgreSQL 15 as installed: fsync and synchronous_commit are on. Redis 7
 * without persistence, which would make it slower.
 */
export class Grounds implements AsyncDisposable {
  #postgres: { server: PostgresServer; pid: number | undefined } | undefined;
  #redis: { server: RedisServer; pid: number } | undefined;
  #folder: string | undefined;
  #places = 0;

  async place(ground: Ground): Promise<Place> {
    const server = serverOf[ground];
    if (server !== undefined) requireServer(server);
    switch (ground) {
      case 'postgres':
        return this.#database();
      case 'redis': {
        this.#redis ??= await redisServer();
        const { url } = this.#redis.server;
        return { address: url, serverPid: this.#redis.pid, rest: noWork, remove: noWork };
      }
      case 'file': {
        this.#folder ??= temporaryFolder();
        const folder = join(this.#folder, String(++this.#places));
        const remove = () => Promise.resolve(rmSync(folder, { recursive: true }));
        return { address: join(folder, 'tasks.db'), rest: noWork, remove };
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
    await this.#redis?.server.stop();
    await this.#postgres?.server.stop();
  }

  async #database(): Promise<Place> {
    this.#postgres ??= await postgresServer();
    const { server, pid } = this.#postgres;
    const name = `place_${++this.#places}`;
    const url = new URL(server.url);
    url.pathname = name;
    await run(server.url, `CREATE DATABASE ${name}`, 'CHECKPOINT');
    return {
      address: url.href,
      serverPid: pid,
      rest: async () => void (await run(url.href, 'VACUUM ANALYZE', 'CHECKPOINT')),
      remove: async () => {
        // Some clients say that they are closed before their connections are, and take offence at being cut off.
        const sql = `SELECT FROM pg_stat_activity WHERE datname = '${name}'`;
        await until(async () => (await run(server.url, sql)).length === 0);
        await run(server.url, `DROP DATABASE ${name}`);
      },
    };
  }
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
  // Also after a case that broke off.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function postgresServer() {
  const server = await startPostgres({ version: 15 });
  const sql = `SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'`;
  const [row] = await run(server.url, sql);
  return { server, pid: parentOf(Number(row?.['pid'])) };
}

async function redisServer() {
  const server = await startRedis();
  const client = new Redis(server.url);
  const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
  client.disconnect();
  return { server, pid };
}

/** The rows of the last statement. */
async function run(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  let rows: Record<string, unknown>[] = [];
  for (const statement of statements) {
    ({ rows } = await client.query<Record<string, unknown>>(statement));
  }
  await client.end();
  return rows;
}

function noWork(): Promise<void> {
  return Promise.resolve();
}
