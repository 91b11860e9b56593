import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { seededRandom } from 'redrive/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ActResult, ItemAction, JobHold } from '../../../ports/inbox.ts';
import type { Store } from '../../../ports/store.ts';
import type { NewTask } from '../../../model/task.ts';
import {
  claimDue,
  inLane,
  inLine,
  newTask,
  put,
  rawItem,
  row,
  settlements,
} from '../../../testing/fixtures.ts';
import { postgres } from '../index.ts';

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  /** Sees who waits, also while the other one is in a transaction. */
  let watcher: pg.Client;
  let stores: [Store, Store];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    watcher = new pg.Client(database.url);
    await watcher.connect();
    // On a busy machine those who act at once wait long for each other.
    const limits = { maxConnections: 6, lockTimeoutMs: 25_000 };
    const open = async () => {
      const store = postgres({ url: database.url, listen: false, ...limits });
      await store.open();
      return store;
    };
    stores = [await open(), await open()];
  });
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await watcher.end();
    await database.drop();
  });

  /** So many open items in lane a. */
  async function failed(count: number, of = (): Parameters<typeof inLane>[1] => ({})) {
    const [store] = stores;
    await store.insert(Array.from({ length: count }, () => inLane('a', of())));
    const { tasks } = await claimDue(store, [{ lane: 'a', limit: count }]);
    expect(await store.settle(tasks.map(settlements.failed))).not.toContain('lost');
    return openItems();
  }

  async function openItems(): Promise<number[]> {
    const { items } = await stores[0].items({ state: 'open', limit: 10_000 });
    return items.map(({ id }) => id);
  }

  /** Until so many wait for a lock. */
  const waiting = (count: number) =>
    vi.waitFor(
      async () => {
        const { rows } = await watcher.query(`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`);
        expect(rows).toHaveLength(count);
      },
      { timeout: 10_000 },
    );

  const hold = (version: number): JobHold<ActResult[]> => ({
    job: 1,
    version,
    next: (results) => ({ done: results.filter((one) => one === 'done').length }),
  });

  test('does everything once, whoever acts on the same items at once', async () => {
    const random = seededRandom(5);
    const ids = await failed(300);
    const actions: ItemAction[] = [
      { type: 'replay', job: 1 },
      { type: 'replay' },
      { type: 'discard' },
      { type: 'replay', edit: { headers: { 'x-by': 'me' } } },
      { type: 'resolve' },
      { type: 'replay', edit: { destination: { kind: 'queue', address: 'elsewhere' } } },
    ];
    const batches = actions.map((action) => ({
      action,
      ids: ids.filter(() => random() < 0.7).sort(() => random() - 0.5),
    }));
    const results = await Promise.all(
      batches.map((batch, i) => stores[i % 2]!.act(batch.ids, batch.action)),
    );
    const done = new Map<number, ItemAction[]>();
    for (const [i, batch] of batches.entries()) {
      for (const [k, id] of batch.ids.entries()) {
        expect(['done', 'closed']).toContain(results[i]![k]);
        if (results[i]![k] === 'done') done.set(id, [...(done.get(id) ?? []), batch.action]);
      }
    }
    expect([...done.values()].every((list) => list.length === 1)).toBe(true);
    expect(await openItems()).toHaveLength(300 - done.size);
    for (const [id, [action]] of done) {
      const item = await stores[0].item(id);
      const task = await row(stores[0], item!.taskId!);
      const isSent = action!.type === 'replay' && !action!.edit?.destination;
      const generation = action!.type === 'replay' ? 1 : 0;
      expect([task.status, task.generation]).toEqual([
        isSent ? 'pending' : 'cancelled',
        generation,
      ]);
    }
    const { items } = await stores[0].items({ state: 'replayed', limit: 1000 });
    const elsewhere = items.filter(({ edit }) => edit?.destination).length;
    const { rows } = await admin.query(
      `SELECT count(*)::int AS n FROM retry_queue WHERE original_queue = 'elsewhere'`,
    );
    expect(rows).toEqual([{ n: elsewhere }]);
  });

  test('closes each unreadable message once, whoever acts on the same ones at once', async () => {
    const [store, other] = stores;
    await store.append(Array.from({ length: 100 }, (_, i) => rawItem(`${i}`)));
    const ids = await openItems();
    const messageId = (await store.item(ids[40]!))!.messageId;
    const [one, two, , erased] = await Promise.all([
      store.act(ids, { type: 'discard' }),
      other.act(ids.toReversed(), { type: 'resolve' }),
      other.append(Array.from({ length: 50 }, (_, i) => rawItem(`${i}`))),
      store.erase(messageId),
    ]);
    const done = [...one, ...two].filter((result) => result === 'done');
    expect(erased).toBe('erased');
    expect(done.length).toBeGreaterThanOrEqual(99);
    expect(done.length).toBeLessThanOrEqual(100);
    const states = await Promise.all(ids.map(async (id) => (await store.item(id))!.state));
    expect(states.filter((state) => state === 'open')).toEqual([]);
    expect(states[40]).toBe('erased');
  });

  describe('a step of a job', () => {
    const replay: ItemAction = { type: 'replay', job: 1 };

    test('shares items with others that act at once: each is replayed once, by one of them', async () => {
      const ids = await failed(200);
      for (const job of [1, 2]) await stores[0].writeState(`job:${job}`, {}, 0);
      const [one, two, alone] = await Promise.all([
        stores[0].act(ids, replay, hold(1)),
        stores[1].act(ids.toReversed(), { type: 'replay', job: 2 }, { ...hold(1), job: 2 }),
        stores[1].act(ids.slice(50, 150), { type: 'discard' }),
      ]);
      const isDone = (result: ActResult) => result === 'done';
      const counts = [one!, two!, alone].map((all) => all.filter(isDone).length);
      expect(counts.reduce((a, b) => a + b)).toBe(200);
      const { documents } = await stores[0].readState('job:');
      expect(documents.map(({ value }) => value)).toEqual([
        { done: counts[0] },
        { done: counts[1] },
      ]);
      const pending = await stores[0].list({ status: 'pending', limit: 1000 });
      expect(pending).toHaveLength(counts[0]! + counts[1]!);
      expect(new Set(pending.map(({ generation }) => generation))).toEqual(new Set([1]));
    });

    test('waits for whoever holds a task, and looks at it where that has changed it', async () => {
      const ids = await failed(20);
      await stores[0].writeState('job:1', {}, 0);
      const item = (await stores[0].item(ids[3]!))!;
      await admin.query('BEGIN');
      await admin.query(`UPDATE retry_queue SET generation = generation + 1 WHERE id = $1`, [
        item.taskId,
      ]);
      const acting = stores[0].act(ids, replay, hold(1));
      await waiting(1);
      await admin.query('COMMIT');
      const acted = await acting;
      expect(acted!.filter((result) => result === 'done')).toHaveLength(20);
      expect((await stores[0].readState('job:1')).documents[0]).toMatchObject({ version: 2 });
    });

    test('gives up on a lock as every other action does, and nothing is done', async () => {
      const ids = await failed(5);
      await stores[0].writeState('job:1', {}, 0);
      const hasty = postgres({ url: database.url, listen: false, lockTimeoutMs: 50 });
      await hasty.open();
      await admin.query('BEGIN; SELECT FROM retry_queue FOR UPDATE');
      await expect(hasty.act(ids, replay, hold(1))).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('lock timeout'),
      });
      await admin.query('ROLLBACK');
      expect(await openItems()).toHaveLength(5);
      expect(await hasty.act(ids, replay, hold(1))).toEqual(ids.map(() => 'done'));
      await hasty.close();
    });
  });

  test('lets one of two runners act that hold the same version', async () => {
    const ids = await failed(50);
    await stores[0].writeState('job:1', {}, 0);
    const answers = await Promise.all(
      stores.map((store) => store.act(ids, { type: 'replay', job: 1 }, hold(1))),
    );
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
    expect(answers.flatMap((answer) => answer ?? [])).toEqual(ids.map(() => 'done'));
    const { documents } = await stores[0].readState('job:1');
    expect(documents).toEqual([{ key: 'job:1', version: 2, value: { done: 50 } }]);
    expect((await stores[1].tally(1, 100)).underway).toBe(50);
  });

  test('does nothing once somebody has paused the job, however close', async () => {
    const ids = await failed(20);
    await stores[0].writeState('job:1', {}, 0);
    const [isPaused, answer] = await Promise.all([
      stores[1].writeState('job:1', { paused: true }, 1),
      stores[0].act(ids, { type: 'replay', job: 1 }, hold(1)),
    ]);
    expect(isPaused).toBe(answer === undefined);
    expect(await openItems()).toHaveLength(isPaused ? 20 : 0);
  });

  test('sends what an operator has just changed as it is now', async () => {
    const [id] = await failed(1);
    await admin.query('BEGIN; SELECT FROM retry_queue FOR UPDATE');
    await admin.query(`UPDATE redrive_inbox SET edit = '{"headers":{"x-by":"me"}}'`);
    await admin.query('UPDATE redrive_open SET edited = true');
    const acting = stores[0].act([id!], { type: 'replay' });
    await waiting(1);
    await admin.query('COMMIT');
    expect(await acting).toEqual(['done']);
    const { taskId, edit } = (await stores[0].item(id!))!;
    expect(edit).toEqual({ headers: { 'x-by': 'me' } });
    expect((await row(stores[0], taskId!)).context?.headers).toEqual({ 'x-by': 'me' });
  });

  test.each(['erase', 'resolve'] as const)(
    'opens another item for a message that comes during its %s, and writes nothing into the old one',
    async (what) => {
      const [store, other] = stores;
      const raw = rawItem('x');
      await store.append([raw]);
      const { id, failure } = (await store.items({ limit: 1 })).items[0]!;
      await admin.query('BEGIN; SELECT FROM redrive_inbox FOR UPDATE');
      const closing =
        what === 'erase' ? store.erase(raw.messageId) : store.act([id], { type: 'resolve' });
      await waiting(1);
      const appending = other.append([{ ...raw, failure: { ...failure, message: 'secret' } }]);
      await waiting(2);
      await admin.query('COMMIT');
      await Promise.all([closing, appending]);
      const { items } = await store.items({ limit: 10 });
      expect(items).toMatchObject([
        { state: 'open', occurrences: 1, failure: { message: 'secret' } },
        { id, state: what === 'erase' ? 'erased' : 'resolved', occurrences: 1 },
      ]);
      expect(JSON.stringify(items[1]!.failure)).not.toContain('secret');
    },
  );

  test('acts on items of lines while those are claimed and settled, and forgets no turn', async () => {
    const [store, other] = stores;
    const keys = ['k', 'l', 'm'];
    await store.insert(
      Array.from({ length: 60 }, (_, i) => inLine(keys[i % 3]!, { onDead: 'release' })),
    );
    let isOver = false;
    const work = async () => {
      for (let misses = 0; misses < 5;) {
        const { tasks } = await claimDue(other, 'a');
        misses = tasks.length === 0 && isOver ? misses + 1 : 0;
        for (const task of tasks) {
          const how = task.generation < 2 && task.id % 2 === 0 ? 'failed' : 'done';
          while ((await other.settle([settlements[how](task)]))[0] === 'busy');
        }
      }
    };
    const operate = async () => {
      for (let i = 0; i < 40; i++) await store.act(await openItems(), { type: 'replay' });
      isOver = true;
    };
    await Promise.all([work(), work(), operate()]);
    await store.act(await openItems(), { type: 'discard' });
    await work();
    expect(await store.list({ status: 'pending', limit: 100 })).toEqual([]);
  });

  test('fails with what the server says of one that it cannot write, and does nothing', async () => {
    const [store] = stores;
    const [bad, good] = (await failed(2)) as [number, number];
    const destination = { kind: 'queue', address: 'a \0 queue' };
    expect(await store.act([bad], { type: 'edit', edit: { destination } })).toEqual(['done']);
    await expect(store.act([good, bad], { type: 'replay' })).rejects.toThrow('byte sequence');
    for (const id of [bad, good]) expect((await store.item(id))?.state).toBe('open');
  });

  test('opens one of two unreadable messages that are the same', async () => {
    const [store, other] = stores;
    const raw = rawItem('what');
    for (let i = 0; i < 2; i++) {
      await store.append([raw]);
      await store.act(await openItems(), { type: 'discard' });
    }
    const { items } = await store.items({ messageId: raw.messageId, limit: 10 });
    const results = await Promise.all(
      items.map(({ id }, i) => [store, other][i]!.act([id], { type: 'restore' })),
    );
    expect(results.flat().toSorted()).toEqual(['done', 'gone']);
  });

  test('erases or acts, whichever comes first, and never half of both', async () => {
    const [store, other] = stores;
    for (let i = 0; i < 10; i++) {
      const { messageId, id } = await put(store, inLane('a'));
      const { tasks } = await claimDue(store, 'a');
      await store.settle(tasks.map(settlements.failed));
      const [item] = await openItems();
      const [acted, erased] = await Promise.all([
        store.act([item!], { type: 'replay' }),
        other.erase(messageId),
      ]);
      const { status, payload } = await row(store, id);
      const erasure = ['closed', 'erased', 'cancelled', false];
      const replay = ['done', 'busy', 'pending', true];
      expect([erasure, replay]).toContainEqual([...acted, erased, status, payload.length > 0]);
      await store.settle((await claimDue(store, 'a')).tasks.map(settlements.done));
    }
  });

  describe('an erase that waits for', () => {
    /** Acts, held up by somebody who puts the same message where it goes; meanwhile it is erased. */
    async function eraseDuring(item: number, action: ItemAction, blocking: NewTask) {
      const [store, other] = stores;
      const { messageId } = blocking;
      await admin.query('BEGIN');
      await store.insert([blocking], admin);
      const acting = store.act([item], action);
      await waiting(1);
      const erasing = other.erase(messageId);
      await waiting(2);
      await admin.query('ROLLBACK');
      return [(await acting)[0], await erasing];
    }

    test('a redirect leaves it alone: it is on its way', async () => {
      const [item] = await failed(1);
      const { messageId } = (await stores[0].item(item!))!;
      const destination = { kind: 'handler', address: 'b' };
      const blocking = newTask({ messageId, destination, lane: 'handler:b' });
      const action = { type: 'replay', edit: { destination } } as const;
      expect(await eraseDuring(item!, action, blocking)).toEqual(['done', 'busy']);
    });

    test('a restore takes along the task that this has made', async () => {
      const [store] = stores;
      const [item] = await failed(1, () => ({ orderingKey: 'k' }));
      const before = (await store.item(item!))!;
      await store.act([item!], { type: 'discard' });
      await store.prune({ olderThanMs: { done: 0, retried: 0, cancelled: 0 }, limit: 10 });
      const blocking = inLane('a', {
        messageId: before.messageId,
        destination: before.destination,
      });
      const action = { type: 'restore' } as const;
      expect(await eraseDuring(item!, action, blocking)).toEqual(['done', 'erased']);
      const tasks = await store.list({ messageId: before.messageId, limit: 10 });
      expect(tasks.map(({ status, payload }) => [status, payload.length])).toEqual([
        ['cancelled', 0],
      ]);
      expect((await admin.query('SELECT FROM redrive_lines')).rows).toEqual([]);
    });
  });
});
