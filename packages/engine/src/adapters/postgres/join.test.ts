import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createEngine } from '../../engine.ts';
import { postgres } from './index.ts';
import { join } from './join.ts';

const nothing = () => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

test.each<[string, (query: unknown) => unknown, string]>([
  ['a pool', (query) => Object.assign(new pg.Pool(), { query }), 'is a pool'],
  ['something else', () => ({}), 'is no client'],
  ['nothing', () => null, 'is no client'],
])('says that %s is no transaction, and asks it nothing', async (_, of, said) => {
  const query = vi.fn();
  await expect(join(of(query))).rejects.toMatchObject({
    code: 'NOT_IN_TRANSACTION',
    message: expect.stringContaining(said) as string,
  });
  expect(query).not.toHaveBeenCalled();
});

test('passes on what a connection says that is gone', async () => {
  const gone = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const tx = { query: () => Promise.reject(gone) };
  await expect(join(tx)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let client: pg.Client;

  beforeEach(async () => {
    database = await freshDatabase();
    client = new pg.Client(database.url);
    await client.connect();
  });
  afterEach(async () => {
    await client.end();
    await database.drop();
  });

  test('a key that was used for another payload is refused, and the transaction goes on', async () => {
    const store = postgres({ url: database.url, listen: false });
    const engine = createEngine({ store, log: silent });
    const submit = (payload: number, dedupeKey: string) =>
      engine.submit('work', payload, { tx: client, dedupeKey });
    await engine.submit('work', 1, { dedupeKey: 'known' });
    await client.query('BEGIN');
    await submit(1, 'mine');
    const mismatch = { code: 'IDEMPOTENCY_MISMATCH' };
    // Of a task that is committed, and of one of this very transaction.
    await expect(submit(2, 'known')).rejects.toMatchObject(mismatch);
    await expect(submit(2, 'mine')).rejects.toMatchObject(mismatch);
    expect(await submit(1, 'known')).toMatchObject({ status: 'duplicate' });
    const many = { to: 'work', dedupeKey: 'known' };
    expect(
      await engine.submitMany(
        [
          { ...many, payload: 3 },
          { to: 'work', payload: 4 },
        ],
        { tx: client },
      ),
    ).toMatchObject([{ status: 'rejected', ...mismatch }, { status: 'accepted' }]);
    await client.query('COMMIT');
    const tasks = await engine.list({ limit: 9 });
    const payloads = tasks.map(({ payload }) => Number(Buffer.from(payload).toString()));
    expect(payloads.toSorted((a, b) => a - b)).toEqual([1, 1, 4]);
    await engine.stop();
  });

  // `redrive` is a name that a caller may use as well.
  test.each(['mine', 'redrive'])(
    'a submit in a transaction leaves the savepoint %s where the caller put it',
    async (name) => {
      const store = postgres({ url: database.url, listen: false });
      const engine = createEngine({ store }).handle('work', (_order: number) => undefined);
      await engine.list({ limit: 1 });
      await client.query('CREATE TABLE orders (id int)');
      await client.query('BEGIN');
      await engine.submit('work', 1, { tx: client });
      await client.query(`INSERT INTO orders VALUES (1); SAVEPOINT ${name}`);
      await client.query('INSERT INTO orders VALUES (2)');
      await engine.submit('work', 2, { tx: client });
      await client.query('INSERT INTO orders VALUES (3)');
      await client.query(`ROLLBACK TO SAVEPOINT ${name}`);
      await engine.submit('work', 4, { tx: client });
      await client.query(`INSERT INTO orders VALUES (4); RELEASE SAVEPOINT ${name}`);
      await client.query('COMMIT');
      const { rows } = await client.query<{ id: number }>('SELECT id FROM orders ORDER BY id');
      expect(rows.map(({ id }) => id)).toEqual([1, 4]);
      const tasks = await engine.list({ limit: 10 });
      expect(tasks.map(({ payload }) => Buffer.from(payload).toString()).toSorted()).toEqual([
        '1',
        '4',
      ]);
      await engine.stop();
    },
  );
});
