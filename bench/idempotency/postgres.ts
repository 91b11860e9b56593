import { postgresIdempotency } from '@redrive/engine/postgres';
import { startPostgres } from '@redrive/services';
import pg from 'pg';
import { requireServer } from '../missing.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, judged, redriveOn } from './crowd.ts';

const CONNECTIONS = 8;

export const postgresCase: Case = {
  name: 'postgres',
  about: 'the same in PostgreSQL, 8 connections',
  async run(effort) {
    requireServer('PostgreSQL 18');
    await using server = await startPostgres({ version: 18 });
    const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS });
    const store = postgresIdempotency({ url: server.url, maxConnections: CONNECTIONS });
    await pool.query('CREATE TABLE keys (key text PRIMARY KEY, result text)');
    try {
      const result = await race(
        [
          crowd('redrive', redriveOn(store), { waits: true }),
          crowd(
            'bare',
            async (key) => {
              await pool.query('INSERT INTO keys (key) VALUES ($1) ON CONFLICT DO NOTHING', [key]);
              const done = await effect();
              await pool.query('UPDATE keys SET result = $2 WHERE key = $1', [key, done]);
              return done;
            },
            { waits: true },
          ),
        ],
        effort,
      );
      return { ...judged(result, 0.6), notes: ['bare: INSERT and UPDATE, each its own commit'] };
    } finally {
      await store.close();
      await pool.end();
    }
  },
};
