/** Does one effect under an idempotency key, and is killed at the point that it is told. */
import { appendFileSync } from 'node:fs';
import pg from 'pg';
import { type IdempotencyStore, idempotent } from 'redrive';
import { jetstreamIdempotency } from '@redrive/engine/nats';
import { postgresIdempotency } from '@redrive/engine/postgres';
import { redisIdempotency } from '@redrive/engine/redis';
import { sqliteIdempotency } from '@redrive/engine/sqlite';
import type { Job, Point } from './job.ts';

const job = JSON.parse(process.argv[2]!) as Job;

function at(point: Point): void {
  if (job.dieAt === point) process.kill(process.pid, 'SIGKILL');
}

/** The store, with a crash before and after its two writes. */
function dying(store: IdempotencyStore): IdempotencyStore {
  return {
    ...(store.transactional ? { transactional: true } : {}),
    claim: async (request) => {
      at('before claim');
      const answer = await store.claim(request);
      at('after claim');
      return answer;
    },
    record: async (key, owner, record) => {
      at('before record');
      const isMine = await store.record(key, owner, record);
      at('after record');
      return isMine;
    },
    renew: (...args) => store.renew(...args),
    read: (key) => store.read(key),
    release: (...args) => store.release(...args),
    prune: (limit) => store.prune(limit),
  };
}

const options = { lease: job.leaseMs, afterCrash: job.afterCrash, maxWait: '20s' } as const;

/** The effect outside of the store: a line in a file. */
async function outside(store: IdempotencyStore): Promise<unknown> {
  const result = await idempotent(
    dying(store),
    job.key,
    () => {
      at('before effect');
      appendFileSync(job.effects, 'x');
      at('after effect');
      return 'paid';
    },
    options,
  );
  at('after all');
  await store.close?.();
  return result;
}

/** The effect within the transaction of the record. */
async function inside(url: string): Promise<unknown> {
  const pool = new pg.Pool({ connectionString: url });
  const store = postgresIdempotency(pool);
  const client = await pool.connect();
  await client.query('BEGIN');
  const result = await idempotent(
    dying(store.within(client)),
    job.key,
    async () => {
      at('before effect');
      await client.query('INSERT INTO effects VALUES ($1)', [job.key]);
      at('after effect');
      return 'paid';
    },
    options,
  );
  at('before commit');
  await client.query('COMMIT');
  at('after all');
  client.release();
  await pool.end();
  return result;
}

const { store } = job;
const result = await (store.kind === 'sqlite'
  ? outside(sqliteIdempotency(store.file))
  : store.kind === 'redis'
    ? outside(redisIdempotency(store.url))
    : store.kind === 'nats'
      ? outside(jetstreamIdempotency(store.url))
      : store.kind === 'postgres'
        ? outside(postgresIdempotency(store.url))
        : inside(store.url));
console.log(JSON.stringify(result));
