import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { seededRandom } from 'redrive/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { accept, cancel } from '../../model/moves.ts';
import type { Store } from '../../ports/store.ts';
import type { Task } from '../../model/task.ts';
import {
  arrivalOf,
  at,
  claimDue,
  HOUR_MS,
  inLane,
  newTask,
  settlements,
  token,
} from '../../testing/fixtures.ts';
import { postgres } from './index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    stores = [];
    for (let i = 0; i < 2; i++) {
      const store = postgres({ url: database.url, listen: false, maxConnections: 6 });
      stores.push(store);
      await store.open();
    }
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  /** Asked for after the connections are closed: only then has every one of them counted. */
  async function deadlocks(): Promise<number> {
    await Promise.all(stores.map((store) => store.close()));
    const { rows } = await admin.query<{ deadlocks: string }>(
      `SELECT pg_stat_clear_snapshot(), deadlocks FROM pg_stat_database WHERE datname = current_database()`,
    );
    return Number(rows[0]!.deadlocks);
  }

  test('lets claims share out what is due, each task to one', async () => {
    const tasks = Array.from({ length: 600 }, (_, i) => inLane(`lane ${i % 3}`));
    await stores[0]!.insert(tasks);
    const lanes = ['lane 0', 'lane 1', 'lane 2'].map((lane) => ({ lane, limit: 25 }));
    const claimed: number[] = [];
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        for (let misses = 0; misses < 3;) {
          const claim = await claimDue(stores[i % 2]!, lanes);
          claimed.push(...claim.tasks.map(({ id }) => id));
          misses = claim.tasks.length === 0 ? misses + 1 : 0;
        }
      }),
    );
    expect(claimed).toHaveLength(600);
    expect(new Set(claimed).size).toBe(600);
  });

  test('claims answer the earliest first, in whatever order a plan finds them', async () => {
    const name = new URL(database.url).pathname.slice(1);
    // The rows are then read in the order in which they lie in the table.
    for (const way of ['nestloop', 'tidscan', 'mergejoin', 'sort']) {
      await admin.query(`ALTER DATABASE "${name}" SET enable_${way} = off`);
    }
    const store = postgres({ url: database.url, listen: false });
    stores.push(store);
    await store.open();
    const made = (await store.insert(Array.from({ length: 50 }, () => inLane('a')))) as number[];
    await admin.query(`UPDATE retry_queue SET next_retry_at = next_retry_at - id * interval '1 s',
      visible_at = visible_at - id * interval '1 s'`);
    const { tasks } = await claimDue(store, [{ lane: 'a', limit: 50 }]);
    expect(tasks.map(({ id }) => id)).toEqual(made.toReversed());
  });

  test('loses no arrival whatever settles, renewals and cancellations come at the same moment', async () => {
    const random = seededRandom(7);
    await stores[0]!.insert(Array.from({ length: 300 }, () => inLane('a')));
    const { tasks } = await claimDue(stores[0]!, [{ lane: 'a', limit: 300 }]);
    const pickFrom = (list: readonly Task[]) => shuffled(list, random).slice(0, 120);

    const settled = async (store: Store, batch: readonly Task[]) => {
      for (let left = batch; left.length > 0;) {
        const results = await store.settle(left.map(settlements.done));
        left = left.filter((_, i) => results[i] === 'busy');
      }
    };
    const arrived = (store: Store, batch: readonly Task[]) =>
      store.change(batch, (task, nowMs, i) => accept(arrivalOf(batch[i]!), task, nowMs, 0));
    const halves = [tasks.slice(0, 150), tasks.slice(150)];
    await Promise.all([
      ...halves.map((half, i) => settled(stores[i]!, shuffled(half, random))),
      ...[0, 1, 2, 3].map((i) => arrived(stores[i % 2]!, pickFrom(tasks))),
      arrived(stores[0]!, shuffled(tasks, random)),
      ...[0, 1, 2].map((i) => stores[i % 2]!.renew(pickFrom(tasks).map(at), HOUR_MS)),
      ...[0, 1].map((i) =>
        stores[i]!.change(pickFrom(tasks).slice(0, 5), (task) => ({ result: task?.id })),
      ),
    ]);

    for (const task of await stores[1]!.list({ limit: 1000 })) {
      expect(task).toMatchObject({ status: 'pending', arrived: false, claims: 0 });
      expect(task.lease).toBeUndefined();
      expect(task.attempt).toBeGreaterThanOrEqual(1);
    }
    expect(await deadlocks()).toBe(0);
  });

  test('changes and stores overlapping keys at once, each key in sequence', async () => {
    const random = seededRandom(11);
    const tasks = Array.from({ length: 60 }, () => newTask());
    const count = (batch: readonly (typeof tasks)[number][], store: Store) =>
      store.change(batch, (task, _, i) =>
        task
          ? { result: task.attempt + 1, task: { ...task, attempt: task.attempt + 1 } }
          : { result: 0, task: batch[i]! },
      );
    const batches = Array.from({ length: 12 }, () => shuffled(tasks, random).slice(0, 40));
    const all = await Promise.all(batches.map((batch, i) => count(batch, stores[i % 2]!)));
    const expected = new Map<string, number>();
    for (const { messageId } of batches.flat()) {
      expected.set(messageId, (expected.get(messageId) ?? -1) + 1);
    }
    for (const task of await stores[0]!.list({ limit: 1000 })) {
      expect(task.attempt).toBe(expected.get(task.messageId));
    }
    expect(all.flat().filter((result) => result === 0)).toHaveLength(expected.size);
    expect(await deadlocks()).toBe(0);
  });

  test('takes one key twice in a batch, by id and by name, one after the other', async () => {
    const [store] = stores;
    const task = newTask();
    const [id] = await store!.insert([task]);
    const other = newTask();
    const add = (now: Task | undefined) =>
      now
        ? { result: now.attempt, task: { ...now, attempt: now.attempt + 1 } }
        : { result: -1, task: other };
    const keys = [{ id: id! }, task, other, { id: id! }, other, task];
    expect(await store!.change(keys, add)).toEqual([0, 1, -1, 2, 0, 3]);
  });

  test('sees what arrived while a settlement was on its way', async () => {
    const [store] = stores;
    await store!.insert([inLane('a'), inLane('a')]);
    const { tasks } = await claimDue(store!, 'a');
    const [one, two] = tasks as [Task, Task];
    await admin.query('BEGIN');
    const arrival = arrivalOf(one);
    await store!.change([one], (task, nowMs) => accept(arrival, task, nowMs, 0), admin);
    await store!.change([two], cancel, admin);
    const both = [settlements.done(one), settlements.pending(two)];
    expect(await store!.settle(both)).toEqual(['busy', 'busy']);
    expect(await store!.renew(tasks.map(at), HOUR_MS)).toEqual(['busy', 'busy']);
    await admin.query('COMMIT');
    expect(await store!.renew(tasks.map(at), HOUR_MS)).toEqual(['arrived', 'held']);
    expect(await store!.settle(both)).toEqual(['rearmed', 'cancelled']);
    expect((await store!.get(two))?.status).toBe('cancelled');
  });

  test('gives back by its token what a lost claim had taken, and nothing else', async () => {
    const [store, other] = stores;
    await store!.insert(Array.from({ length: 10 }, () => inLane('a')));
    const lease = token();
    await claimDue(store!, [{ lane: 'a', limit: 4 }], { lease });
    const kept = await claimDue(other!, [{ lane: 'a', limit: 4 }]);
    await other!.abandon(lease);
    expect((await claimDue(store!, 'a')).tasks).toHaveLength(6);
    expect(await other!.settle(kept.tasks.map(settlements.done))).not.toContain('lost');
  });
});

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  return list
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
