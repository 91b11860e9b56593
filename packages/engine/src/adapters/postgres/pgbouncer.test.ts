import { type PgBouncerServer, startPgBouncer } from '@redrive/services';
import { type Database, describeService, freshDatabase } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { accept } from '../../model/moves.ts';
import type { Hint } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import { arrivalOf, claimDue, inLane, put, settlements } from '../../testing/fixtures.ts';
import { postgres, type PostgresOptions } from './index.ts';

const soon = { timeout: 20_000, interval: 10 };

describeService(['PostgreSQL 15', 'PgBouncer'], () => {
  let database: Database;
  let bouncer: PgBouncerServer;
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase(15);
    bouncer = await startPgBouncer({
      upstreamUrl: database.url,
      poolMode: 'transaction',
      settings: { default_pool_size: '3' },
    });
    stores = [];
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await bouncer.stop();
    await database.drop();
  });

  async function open(options: PostgresOptions = {}): Promise<Store> {
    const store = postgres({ url: bouncer.url, maxConnections: 8, listen: false, ...options });
    stores.push(store);
    await store.open();
    return store;
  }

  /** As several instances would: everything at once, on fewer connections than there are callers. */
  async function work(store: Store, lane: string): Promise<string[]> {
    await store.insert(Array.from({ length: 50 }, () => inLane(lane)));
    const { tasks } = await claimDue(store, lane);
    const failing = tasks.slice(0, 10);
    await store.change(failing, (task, nowMs, i) => accept(arrivalOf(failing[i]!), task, nowMs, 0));
    return store.settle(tasks.map(settlements.done));
  }

  test('migrates and works where every transaction has another connection', async () => {
    const all = await Promise.all([open(), open(), open()]);
    const results = await Promise.all(all.map((store, i) => work(store, `lane ${i}`)));
    for (const settled of results) {
      expect(settled.filter((one) => one === 'settled')).toHaveLength(40);
      expect(settled.filter((one) => one === 'rearmed')).toHaveLength(10);
    }
  });

  test('leaves no setting behind in the connections that others use after it', async () => {
    const store = await open();
    await work(store, 'a');
    const client = new pg.Client(bouncer.url);
    await client.connect();
    const names = [
      'lock_timeout',
      'statement_timeout',
      'synchronous_commit',
      'transaction_isolation',
    ];
    const { rows } = await client.query(
      `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`,
    );
    await client.end();
    expect(rows).toEqual([
      {
        lock_timeout: '0',
        statement_timeout: '0',
        synchronous_commit: 'on',
        transaction_isolation: 'read committed',
      },
    ]);
  });

  test('joins a transaction, and refuses a client that is in none', async () => {
    const store = await open();
    const client = new pg.Client(bouncer.url);
    await client.connect();
    const [outside, inside] = [inLane('a'), inLane('a')];
    const refused = { code: 'NOT_IN_TRANSACTION' };
    await expect(store.insert([outside], client)).rejects.toMatchObject(refused);
    await client.query('BEGIN');
    await store.insert([inside], client);
    await client.query('COMMIT');
    await client.end();
    expect(await store.get(outside)).toBeUndefined();
    expect(await store.get(inside)).toMatchObject({ status: 'pending' });
  });

  test('listens around it by a URL of its own', async () => {
    const hints: Hint[] = [];
    const store = await open({ listen: true, listenUrl: database.url });
    store.watch((hint) => hints.push(hint));
    const other = await open();
    await vi.waitFor(async () => {
      await put(other, inLane('a'));
      expect(hints.flatMap(({ lanes = [] }) => lanes)).toContain('a');
    }, soon);
  });

  test('notices that notifications do not come through, says so once, and works on', async () => {
    const faults: string[] = [];
    const store = await open({
      listen: true,
      statementTimeoutMs: 500,
      onFault: (what) => faults.push(what),
    });
    await vi.waitFor(() => expect(faults).toEqual([expect.stringContaining('listenUrl')]), soon);
    expect(await work(store, 'a')).toHaveLength(50);
  });
});
