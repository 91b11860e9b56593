import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache';
import { Idempotency } from '@node-idempotency/core';
import { createClient } from '@redis/client';
import { redisIdempotency } from '@redrive/engine/redis';
import { startRedis } from '@redrive/services';
import { requireServer } from '../missing.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, EFFECT, judged, redriveOn } from './crowd.ts';

export const redisCase: Case = {
  name: 'redis',
  about: 'the same in Redis without persistence, one connection',
  async run(effort) {
    requireServer('Redis');
    await using server = await startRedis();
    const client = await connected(server.url);
    const connection = await connected(server.url);
    try {
      const result = await race(
        [
          crowd('redrive', redriveOn(redisIdempotency(connection)), { waits: true }),
          crowd(
            'bare',
            async (key) => {
              await client.set(key, 'claimed', { condition: 'NX' });
              const done = await effect();
              await client.set(key, done);
              return done;
            },
            { waits: true },
          ),
          crowd('powertools', powertools(client), { waits: true }),
          crowd('node-idempotency', nodeIdempotency(client), { waits: true }),
        ],
        effort,
      );
      return {
        ...judged(result, 0.6),
        notes: ['bare: SET NX and SET; every contestant on a client of @redis/client'],
      };
    } finally {
      await client.close();
      await connection.close();
    }
  },
};

/** What is left of a Lambda's time is its lease. */
const LEASE_MS = 30_000;

type Client = Awaited<ReturnType<typeof connected>>;

async function connected(url: string) {
  return createClient({ url }).connect();
}

function powertools(client: Client): (key: string) => Promise<unknown> {
  const persistenceStore = new CachePersistenceLayer({ client });
  const config = new IdempotencyConfig({});
  config.registerLambdaContext({ getRemainingTimeInMillis: () => LEASE_MS });
  const once = makeIdempotent((_key: string) => effect(), {
    persistenceStore,
    config,
  });
  return (key) => once(key);
}

function nodeIdempotency(client: Client): (key: string) => Promise<unknown> {
  const expiry = (ttl: number | undefined) =>
    ttl === undefined ? {} : { expiration: { type: 'PX', value: ttl } as const };
  const keys = new Idempotency({
    setIfNotExists: async (key, value, { ttl } = {}) =>
      (await client.set(key, value, { condition: 'NX', ...expiry(ttl) })) === 'OK',
    set: async (key, value, { ttl }) => void (await client.set(key, value, expiry(ttl))),
    get: async (key) => (await client.get(key)) ?? undefined,
  });
  return async (key) => {
    const request = { headers: { 'idempotency-key': key }, path: '/', method: 'POST', body: {} };
    const found = await keys.onRequest<string, unknown>(request);
    if (found) return found.body;
    const body = await effect();
    await keys.onResponse(request, { body });
    return EFFECT;
  };
}
