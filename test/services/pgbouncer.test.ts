import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PgBouncerServer, startPgBouncer } from './index.ts';
import { type Database, describeService, freshDatabase } from './vitest.ts';

describeService(['PgBouncer', 'PostgreSQL 15'], () => {
  let database: Database;
  let bouncer: PgBouncerServer;
  beforeAll(async () => {
    database = await freshDatabase(15);
    bouncer = await startPgBouncer({
      upstreamUrl: database.url,
      poolMode: 'transaction',
      settings: { default_pool_size: '1' },
    });
  });
  afterAll(async () => {
    await bouncer.stop();
    await database.drop();
  });

  it('hands one connection of the server to many clients, one transaction after the other', async () => {
    const clients = [1, 2, 3].map(() => new pg.Client({ connectionString: bouncer.url }));
    await Promise.all(clients.map((client) => client.connect()));
    const answers = await Promise.all(
      clients.map((client) => client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')),
    );
    await Promise.all(clients.map((client) => client.end()));
    expect(new Set(answers.map(({ rows }) => rows[0]?.pid)).size).toBe(1);
  });

  it('leads to the database of the address behind', async () => {
    const client = new pg.Client({ connectionString: bouncer.url });
    await client.connect();
    const { rows } = await client.query('SELECT current_database() AS name');
    await client.end();
    expect(rows).toEqual([{ name: new URL(database.url).pathname.slice(1) }]);
  });
});
