import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../../ports/store.ts';
import { broken, claimDue, inLane, rawItem, settlements } from '../../../testing/fixtures.ts';
import { postgres } from '../index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: [Store, Store];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    const open = async () => {
      const store = postgres({ url: database.url, listen: false, maxConnections: 6 });
      await store.open();
      return store;
    };
    stores = [await open(), await open()];
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  async function fail(store: Store, count: number, lane = 'a'): Promise<void> {
    await store.insert(Array.from({ length: count }, () => inLane(lane)));
    const { tasks } = await claimDue(store, [{ lane, limit: count }]);
    await store.settle(tasks.map(settlements.failed));
  }

  async function counted(): Promise<Record<string, number>> {
    const { rows } = await admin.query<{ fingerprint: string; n: number }>(
      `SELECT fingerprint, count(*)::int AS n FROM redrive_open GROUP BY 1`,
    );
    return Object.fromEntries(rows.map(({ fingerprint, n }) => [fingerprint, n]));
  }

  async function told(store: Store = stores[0]): Promise<Record<string, number>> {
    const groups = await store.groups({ limit: 100 });
    return Object.fromEntries(groups.map(({ fingerprint, open }) => [fingerprint, open]));
  }

  test('counts exactly while many write, close, reopen and read', async () => {
    const [store, other] = stores;
    const writers = { areDone: false };
    const write = async (one: Store, lane: string) => {
      for (let i = 0; i < 10; i++) await fail(one, 7, lane);
    };
    const close = async () => {
      for (let i = 0; i < 10; i++) {
        const { items } = await other.items({ state: 'open', limit: 20 });
        const ids = items.map(({ id }) => id);
        await other.act(ids, { type: i % 2 ? 'discard' : 'replay' });
        await other.act(ids.slice(0, 5), { type: 'restore' });
        await store.append([rawItem('one'), rawItem('two')]);
      }
    };
    const read = async (one: Store) => {
      while (!writers.areDone)
        for (const open of Object.values(await told(one))) expect(open).toBeGreaterThan(0);
    };
    const writing = Promise.all([write(store, 'a'), write(other, 'b'), close()]).then(
      () => (writers.areDone = true),
    );
    await Promise.all([writing, read(store), read(other)]);
    expect(await told()).toEqual(await counted());
    expect(Object.values(await told()).reduce((a, b) => a + b)).toBeGreaterThan(0);
  });

  test('holds up no settle where somebody has locked the group', async () => {
    const [store] = stores;
    await fail(store, 3);
    expect(Object.values(await told())).toEqual([3]);
    await admin.query('BEGIN; SELECT FROM redrive_groups FOR UPDATE');
    await fail(store, 4);
    const { rows } = await admin.query('SELECT count(*)::int AS n FROM redrive_inbox');
    expect(rows).toEqual([{ n: 7 }]);
    await admin.query('COMMIT');
    expect(Object.values(await told())).toEqual([7]);
  });

  test('counts what a hand in the database does', async () => {
    const [store] = stores;
    await fail(store, 10);
    await admin.query(`WITH gone AS (DELETE FROM redrive_open WHERE id % 5 = 0 RETURNING id)
      INSERT INTO redrive_closed (id, state, closed_at) SELECT id, 'resolved', now() FROM gone`);
    await admin.query(`DELETE FROM redrive_inbox WHERE id % 5 = 1`);
    expect(Object.values(await told())).toEqual([6]);
    const { rows } = await admin.query(`SELECT (SELECT count(*)::int FROM redrive_inbox) AS items,
      (SELECT count(*)::int FROM redrive_open) AS open, (SELECT count(*)::int FROM redrive_closed) AS closed`);
    expect(rows).toEqual([{ items: 8, open: 6, closed: 2 }]);
    await store.pruneItems({ closedForMs: -1000, limit: 10 });
    expect(await store.count({})).toBe(6);
  });

  test('counts a task that fails again while its item is open as one more occurrence of that', async () => {
    const [store] = stores;
    await fail(store, 1);
    await admin.query(`UPDATE retry_queue SET status = 'pending', claims = 0, finished_at = NULL,
      visible_at = now()`);
    const { tasks } = await claimDue(store, 'a');
    const again = settlements.failed(tasks[0]!);
    if (again.to !== 'failed') throw new Error('it must fail');
    const item = { ...again.item, reason: 'PERMANENT' as const };
    expect(await store.settle([{ ...again, item }])).toEqual(['settled']);
    const { items } = await store.items({ limit: 10 });
    expect(items).toMatchObject([{ state: 'open', occurrences: 2, reason: 'EXHAUSTED' }]);
    expect(Object.values(await told())).toEqual([1]);
    expect((await store.census()).open).toEqual({ EXHAUSTED: 1 });
  });

  test('opens one item where several meet the same unknown message at once', async () => {
    const raw = rawItem('same');
    await Promise.all(Array.from({ length: 20 }, (_, i) => stores[i % 2]!.append([raw])));
    const { items } = await stores[0].items({ limit: 10 });
    expect(items).toMatchObject([{ occurrences: 20, state: 'open' }]);
    expect(Object.values(await told())).toEqual([1]);
  });

  test('counts an item that is changed and stays open once', async () => {
    const [store] = stores;
    await fail(store, 2);
    const { items } = await store.items({ limit: 1 });
    const edit = { headers: { 'x-by': 'me' } };
    expect(await store.act([items[0]!.id], { type: 'edit', edit })).toEqual(['done']);
    expect(Object.values(await told())).toEqual([2]);
  });

  test('counts in housekeeping what nobody reads', async () => {
    const [store] = stores;
    await fail(store, 5);
    await store.pruneItems({ closedForMs: 1e12, limit: 10 });
    expect((await admin.query('SELECT FROM redrive_group_deltas')).rowCount).toBe(0);
    const { rows } = await admin.query('SELECT open FROM redrive_groups');
    expect(rows).toEqual([{ open: 5 }]);
  });

  test('forgets a group that lost its note after its items', async () => {
    const [store] = stores;
    await fail(store, 1);
    const [group] = await store.groups({ limit: 1 });
    await store.annotate(group!.fingerprint, { note: 'known' });
    const { items } = await store.items({ limit: 1 });
    await store.act([items[0]!.id], { type: 'discard' });
    expect(await store.pruneItems({ closedForMs: 0, limit: 10 })).toBe(1);
    expect(await store.groups({ all: true, limit: 10 })).toHaveLength(1);
    await store.annotate(group!.fingerprint, { note: '' });
    expect(await store.pruneItems({ closedForMs: 0, limit: 10 })).toBe(0);
    expect(await store.groups({ all: true, limit: 10 })).toEqual([]);
  });

  test('leaves no text of an erased message in what is not counted yet', async () => {
    const [store] = stores;
    const [id] = await store.insert([inLane('a')]);
    await store.settle((await claimDue(store, 'a')).tasks.map(settlements.failed));
    const task = await store.get({ id: id! });
    expect(
      (await admin.query('SELECT FROM redrive_group_deltas WHERE failure IS NOT NULL')).rowCount,
    ).toBe(1);
    expect(await store.erase(task!.messageId)).toBe('erased');
    const { rows } = await admin.query<{ dump: string }>(
      `SELECT string_agg(failure::text, ' ') AS dump FROM (
         SELECT failure FROM redrive_group_deltas UNION ALL SELECT failure FROM redrive_groups
       ) AS sample`,
    );
    expect(rows[0]!.dump).toContain(broken.code);
    expect(rows[0]!.dump).not.toContain(broken.message);
  });
});
