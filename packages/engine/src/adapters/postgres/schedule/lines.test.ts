import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { seededRandom } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { accept, cancel } from '../../../model/moves.ts';
import type { Store } from '../../../ports/store.ts';
import type { Task } from '../../../model/task.ts';
import { arrivalOf, claimDue, inLine, put, row, settlements } from '../../../testing/fixtures.ts';
import { postgres } from '../index.ts';

const NEVER = { done: 1e12, retried: 1e12, cancelled: 1e12 };

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let callers: pg.Client[];
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase();
    stores = [];
    callers = [];
    for (let i = 0; i < 2; i++) {
      const store = postgres({ url: database.url, listen: false, maxConnections: 6 });
      stores.push(store);
      await store.open();
    }
    admin = await connect();
  });
  afterEach(async () => {
    await Promise.all(callers.map((caller) => caller.end()));
    await Promise.all(stores.map((store) => store.close()));
    await database.drop();
  });

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client(database.url);
    callers.push(client);
    await client.connect();
    return client;
  }

  async function turns(): Promise<number[]> {
    const tasks = await stores[0]!.list({ status: 'pending', limit: 1000 });
    return tasks.filter(({ blocked }) => !blocked).map(({ id }) => id);
  }

  /** Settles until it is not busy any more. */
  async function settle(store: Store, task: Task, how: 'done' | 'retried' | 'failed' = 'done') {
    for (;;) {
      const [answer] = await store.settle([settlements[how](task)]);
      if (answer !== 'busy') return answer;
    }
  }

  test('gives each line its order however many insert, settle and change at once', async () => {
    const random = seededRandom(3);
    const keys = ['k', 'l', 'm', 'n'];
    const total = 240;
    const delivered: Task[] = [];
    const writers = { areDone: false };
    const insert = async (store: Store, calls: number) => {
      for (let i = 0; i < calls; i++) {
        await store.insert(
          Array.from({ length: 5 }, () => inLine(keys[Math.floor(random() * keys.length)]!)),
        );
      }
    };
    const deliver = async (store: Store) => {
      while (!writers.areDone || delivered.length < total) {
        const { tasks } = await claimDue(store, [{ lane: 'a', limit: 3 }]);
        for (const task of tasks) {
          // Nobody else of its line is in delivery meanwhile.
          delivered.push(task);
          expect(await settle(store, task)).toBe('settled');
        }
      }
    };
    const inserting = Promise.all(
      Array.from({ length: 8 }, (_, i) => insert(stores[i % 2]!, total / 40)),
    ).then(() => (writers.areDone = true));
    await Promise.all([inserting, ...[0, 1, 2].map((i) => deliver(stores[i % 2]!))]);
    expect(delivered).toHaveLength(total);
    for (const key of keys) {
      const order = delivered.filter(({ orderingKey }) => orderingKey === key);
      expect(order.map(({ id }) => id)).toEqual(
        order.map(({ id }) => id).toSorted((a, b) => a - b),
      );
    }
    // Asked for after the connections are closed: only then has every one of them counted.
    await Promise.all(stores.map((store) => store.close()));
    const { rows } = await admin.query(
      `SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`,
    );
    expect(rows).toEqual([{ deadlocks: 0 }]);
  });

  test('leaves one of a line its turn whatever claims, settles and arrivals meet', async () => {
    const [store, other] = stores as [Store, Store];
    const first = await put(store, inLine('k'));
    for (let i = 0; i < 4; i++) await put(store, inLine('k'));
    for (let round = 0; round < 8; round++) {
      // The first was taken over and comes back at the moment in which the second is claimed.
      const [head] = (await claimDue(store, 'a')).tasks;
      expect(head?.id).toBe(first.id);
      await settle(store, head!, 'retried');
      const now = { ...arrivalOf(first).task, due: { inMs: 0 } };
      const arrival = { ...arrivalOf(first), task: { ...now, attempt: 0 } };
      const [claim] = await Promise.all([
        claimDue(other, 'a'),
        store.change([first], (task, nowMs) => {
          const { task: back, ...rest } = accept(arrival, task, nowMs, 0);
          return { ...rest, task: { ...(back as Task), dueAtMs: nowMs, visibleAtMs: nowMs } };
        }),
      ]);
      const active = await turns();
      expect(active).toHaveLength(1);
      for (const task of claim.tasks) {
        expect(active).toEqual([task.id]);
        expect(await other.settle([settlements.released(task)])).toEqual(['settled']);
      }
      expect(await turns()).toEqual([first.id]);
    }
  });

  test('is busy, not lost, while a caller has a line, and only in that line', async () => {
    const [store] = stores;
    await store!.insert([inLine('k'), inLine('l'), inLine('k'), inLine('l')]);
    const { tasks } = await claimDue(store!, 'a');
    const caller = await connect();
    await caller.query('BEGIN');
    await store!.insert([inLine('k')], caller);
    expect(await store!.settle(tasks.map(settlements.done))).toEqual(['busy', 'settled']);
    await caller.query('COMMIT');
    expect(await store!.settle(tasks.map(settlements.done))).toEqual(['settled', 'lost']);
    expect((await claimDue(store!, 'a')).tasks.map(({ orderingKey }) => orderingKey)).toEqual([
      'k',
      'l',
    ]);
  });

  test('settles the other lines where somebody has locked a row by hand', async () => {
    const [store] = stores;
    const [, , follower] = await store!.insert([inLine('k'), inLine('l'), inLine('k')]);
    const { tasks } = await claimDue(store!, 'a');
    const caller = await connect();
    await caller.query('BEGIN');
    await caller.query('SELECT FROM retry_queue WHERE id = $1 FOR UPDATE', [follower]);
    expect(await store!.settle(tasks.map(settlements.done))).toEqual(['busy', 'settled']);
    await caller.query('ROLLBACK');
    expect(await store!.settle(tasks.map(settlements.done))).toEqual(['settled', 'lost']);
    expect(await turns()).toEqual([follower]);
  });

  test('settles in a line that has lost its row, also where others are locked', async () => {
    const [store] = stores;
    await store!.insert([inLine('k'), inLine('l'), inLine('k'), inLine('l')]);
    const { tasks } = await claimDue(store!, 'a');
    const caller = await connect();
    await caller.query('BEGIN');
    await store!.insert([inLine('k')], caller);
    await admin.query(`DELETE FROM redrive_lines WHERE ordering_key = 'l'`);
    expect(await store!.settle(tasks.map(settlements.done))).toEqual(['busy', 'settled']);
    await caller.query('ROLLBACK');
  });

  test('has ids in the order of commits, line by line', async () => {
    const [store, other] = stores;
    const caller = await connect();
    await caller.query('BEGIN');
    const [early] = await store!.insert([inLine('k')], caller);
    const waiting = other!.insert([inLine('k')]);
    await caller.query('COMMIT');
    const [late] = await waiting;
    expect(late).toBeGreaterThan(early!);
    expect(await turns()).toEqual([early]);
  });

  test('stores other lines where a caller has one for too long', async () => {
    const patient = postgres({ url: database.url, listen: false, lockTimeoutMs: 100 });
    stores.push(patient);
    await patient.open();
    const caller = await connect();
    await caller.query('BEGIN');
    await stores[0]!.insert([inLine('k')], caller);
    const batch = [inLine('k'), inLine('l'), inLine('k'), inLine('m')];
    const stored = await patient.insert(batch);
    expect(stored.map((id) => id !== undefined)).toEqual([false, true, false, true]);
    await caller.query('ROLLBACK');
    await patient.change([batch[0]!, batch[2]!], (_, __, i) => ({
      result: i,
      task: batch[2 * i]!,
    }));
    const order = (await stores[0]!.list({ limit: 10 })).toReversed();
    expect(order.map(({ messageId }) => messageId)).toEqual(
      [1, 3, 0, 2].map((i) => batch[i]!.messageId),
    );
  });

  test('undoes the turn with the transaction of its caller', async () => {
    const [store] = stores;
    const [first, second] = await store!.insert([inLine('k'), inLine('k')]);
    const caller = await connect();
    await caller.query('BEGIN');
    await store!.change([{ id: first! }], cancel, caller);
    await caller.query('ROLLBACK');
    expect(await turns()).toEqual([first]);
    await caller.query('BEGIN');
    await store!.change([{ id: first! }], cancel, caller);
    await caller.query('COMMIT');
    expect(await turns()).toEqual([second]);
  });

  test.each([
    ['there', false],
    ['deleted meanwhile', true],
  ])(
    'never gives a second turn by an old snapshot, the row of the line %s',
    async (_, isDeleted) => {
      const [store, other] = stores;
      const old = await put(other!, inLine('k'));
      const caller = await connect();
      await caller.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await caller.query('SELECT count(*) FROM retry_queue');
      const [held] = (await claimDue(other!, 'a')).tasks;
      expect(await settle(other!, held!)).toBe('settled');
      if (isDeleted) {
        await admin.query(`UPDATE redrive_lines SET touched_at = now() - INTERVAL '2 days'`);
        await other!.prune({ olderThanMs: NEVER, limit: 10 });
      } else {
        await put(other!, inLine('k'));
      }
      const { rowCount } = await admin.query('SELECT FROM redrive_lines');
      expect(rowCount).toBe(isDeleted ? 0 : 1);
      await expect(store!.insert([inLine('k')], caller)).rejects.toMatchObject({
        cause: { code: '40001' },
      });
      await caller.query('ROLLBACK');
      expect((await turns()).length).toBe(isDeleted ? 0 : 1);
      expect((await row(store!, old.id)).status).toBe('done');
    },
  );

  test('keeps the lines that somebody holds, and those that were touched today', async () => {
    const [store] = stores;
    await store!.insert([inLine('held'), inLine('over'), inLine('today')]);
    for (const task of (await claimDue(store!, 'a')).tasks) {
      if (task.orderingKey !== 'held') await settle(store!, task);
    }
    await admin.query(
      `UPDATE redrive_lines SET touched_at = now() - INTERVAL '2 days' WHERE ordering_key <> 'today'`,
    );
    await store!.prune({ olderThanMs: NEVER, limit: 10 });
    const { rows } = await admin.query('SELECT ordering_key FROM redrive_lines ORDER BY 1');
    expect(rows).toEqual([{ ordering_key: 'held' }, { ordering_key: 'today' }]);
  });

  test('lets a line go on whose turn was forgotten, and tells of it', async () => {
    const [store] = stores;
    const [first] = await store!.insert([inLine('k'), inLine('k')]);
    await admin.query('UPDATE retry_queue SET blocked = true');
    const lanes: unknown[] = [];
    const stop = store!.watch((hint) => lanes.push(...(hint.lanes ?? [])));
    await store!.prune({ olderThanMs: NEVER, limit: 10 });
    stop();
    expect(await turns()).toEqual([first]);
    expect(lanes).toEqual(['a']);
  });

  test('blocks all but the first where somebody else wrote several', async () => {
    const [store] = stores;
    const [first, second, third] = await store!.insert([inLine('k'), inLine('k'), inLine('k')]);
    await admin.query('UPDATE retry_queue SET blocked = false');
    const { tasks } = await claimDue(store!, [{ lane: 'a', limit: 2 }]);
    expect(tasks.map(({ id }) => id)).toEqual([first, second]);
    expect(await settle(store!, tasks[0]!)).toBe('settled');
    expect(await turns()).toEqual([second]);
    expect(await settle(store!, tasks[1]!)).toBe('settled');
    expect(await turns()).toEqual([third]);
  });
});
