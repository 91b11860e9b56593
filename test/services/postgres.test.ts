import { existsSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from './index.ts';
import { type Database, describePostgres, describeService } from './vitest.ts';

async function query(url: string, statement: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<unknown[]>({ text: statement, rowMode: 'array' });
    return rows;
  } finally {
    await client.end();
  }
}

/** Of a client that is cut off, which may emit more than one. */
function firstError(client: pg.Client): Promise<Error> {
  return new Promise((resolve) => {
    client.on('error', resolve);
  });
}

describePostgres(({ version, freshDatabase }) => {
  describe('a server of its own', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres({ version, settings: { work_mem: '5MB' } });
      await query(server.url, 'CREATE TABLE kept (n integer)');
    });
    afterAll(() => server.stop());

    it('has the version asked for, syncs to disk and takes 200 connections', async () => {
      const [[number, fsync, connections]] = (await query(
        server.url,
        `SELECT current_setting('server_version_num')::integer / 10000,
           current_setting('fsync'), current_setting('max_connections')`,
      )) as [[number, string, string]];
      expect([number, fsync, connections]).toEqual([version, 'on', '200']);
    });

    it('takes settings', async () => {
      expect(await query(server.url, 'SHOW work_mem')).toEqual([['5MB']]);
    });

    it('lets nobody in without the password', async () => {
      const url = new URL(server.url);
      url.password = 'wrong';
      await expect(query(url.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
    });

    it('keeps its data and its address over a restart', async () => {
      await query(server.url, 'INSERT INTO kept VALUES (1)');
      await server.restart();
      expect(await query(server.url, 'SELECT n FROM kept WHERE n = 1')).toEqual([[1]]);
    });

    it('cuts every connection in a crash, and recovers what was committed and nothing else', async () => {
      const client = new pg.Client({ connectionString: server.url });
      const cut = firstError(client);
      await client.connect();
      await client.query('INSERT INTO kept VALUES (2)');
      await client.query('BEGIN; INSERT INTO kept VALUES (3)');

      await server.kill9();
      await cut;
      await expect(query(server.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');

      await server.start();
      expect(await query(server.url, 'SELECT n FROM kept WHERE n > 1')).toEqual([[2]]);
    });
  });

  describe('databases of the shared server', () => {
    let one: Database;
    let two: Database;
    beforeAll(async () => {
      [one, two] = await Promise.all([freshDatabase(), freshDatabase()]);
    });
    afterAll(async () => {
      await Promise.all([one.drop(), two.drop()]);
    });

    it('are each on their own', async () => {
      await query(one.url, 'CREATE TABLE own ()');
      const tables = "SELECT to_regclass('own') IS NOT NULL";
      expect(await query(one.url, tables)).toEqual([[true]]);
      expect(await query(two.url, tables)).toEqual([[false]]);
    });

    it('are on one server', () => {
      expect(new URL(one.url).host).toBe(new URL(two.url).host);
    });

    it('go away with their connections', async () => {
      const gone = await freshDatabase();
      const client = new pg.Client({ connectionString: gone.url });
      const cut = firstError(client);
      await client.connect();
      await gone.drop();
      expect((await cut).message).toContain('terminating connection');
      await expect(query(gone.url, 'SELECT 1')).rejects.toThrow('does not exist');
    });
  });
});

describeService('PostgreSQL 18', () => {
  it('leaves no folder behind, also when it is stopped twice or after a crash', async () => {
    const server = await startPostgres({ version: 18 });
    const [[data]] = (await query(server.url, 'SHOW data_directory')) as [[string]];
    await server.kill9();
    await server.stop();
    await server.stop();
    expect(existsSync(data)).toBe(false);
  });

  it('says what the server said when it does not start', async () => {
    await expect(startPostgres({ version: 18, settings: { work_mem: 'plenty' } })).rejects.toThrow(
      /did not start: exit code 1[^]*invalid value for parameter "work_mem": "plenty"/,
    );
  });
});
