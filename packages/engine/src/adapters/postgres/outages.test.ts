import { connect, createServer, type Server, type Socket } from 'node:net';
import { startPostgres } from '@redrive/services';
import {
  type Database,
  describePostgres,
  describeService,
  everyPostgres,
} from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEngine } from '../../engine.ts';
import { accept } from '../../model/moves.ts';
import type { Settlement } from '../../ports/schedule.ts';
import type { Store } from '../../ports/store.ts';
import {
  arrivalOf,
  claimDue,
  inLane,
  newTask,
  put,
  putClaimed,
  row,
  settlements,
  token,
} from '../../testing/fixtures.ts';
import { postgres, type PostgresOptions } from './index.ts';

const unavailable = { code: 'STORE_UNAVAILABLE' };

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Client;
  let stores: Store[];

  beforeEach(async () => {
    database = await freshDatabase();
    admin = new pg.Client(database.url);
    await admin.connect();
    stores = [];
  });
  afterEach(async () => {
    await admin.query('ROLLBACK');
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  async function open(options: PostgresOptions = {}): Promise<Store> {
    const url = options.pool ? {} : { url: database.url };
    const store = postgres({ ...url, maxConnections: 2, listen: false, ...options });
    stores.push(store);
    await store.open();
    return store;
  }

  /** Ends every connection but our own, in the middle of whatever it does. */
  function cutAll() {
    return admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`);
  }

  async function blocked(): Promise<void> {
    await expect
      .poll(
        async () => {
          const { rows } = await admin.query(`SELECT FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`);
          return rows.length;
        },
        { timeout: 20_000, interval: 5 },
      )
      .toBe(1);
  }

  test('a database or a role that does not exist is no outage, and is named', async () => {
    const missing = new URL(database.url);
    missing.pathname = '/nope';
    const stranger = new URL(database.url);
    stranger.username = 'nobody_here';
    for (const [url, said] of [
      [missing, /has no such database \(database "nope" does not exist\).* in the URL/],
      [stranger, /does not let this program in \(.*nobody_here.*\)\. Check the role/],
    ] as const) {
      const store = postgres({ url: url.href });
      stores.push(store);
      const error: unknown = await store.open().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'STORE_DENIED', message: expect.stringMatching(said) });
    }
  });

  test('a stop waits for the call that opens the store', async () => {
    const make = () => createEngine({ store: postgres({ url: database.url }) });
    const calls: ((engine: ReturnType<typeof make>) => Promise<unknown>)[] = [
      (engine) => engine.submit('mail', 1),
      (engine) => engine.list({ limit: 9 }),
      (engine) => engine.lanes(),
      (engine) => engine.inbox.items(),
    ];
    for (const call of calls) {
      const engine = make();
      const called = call(engine);
      await Promise.all([engine.stop(), called]);
    }
    expect(await (await open()).list({ limit: 9 })).toHaveLength(1);
  });

  test('reads on when idle connections have died', async () => {
    const store = await open();
    const { id } = await put(store);
    await cutAll();
    expect((await row(store, id)).id).toBe(id);
  });

  test('says so when a connection is cut in the middle of an insert, and takes it again', async () => {
    const store = await open();
    const task = newTask();
    // Somebody stores the same task and has not committed.
    await admin.query('BEGIN');
    await store.insert([task], admin);
    const inserting = store.insert([task]).catch((error: unknown) => error);
    await blocked();
    await cutAll();
    expect(await inserting).toMatchObject(unavailable);
    await admin.query('ROLLBACK');
    expect(await store.insert([task])).not.toContain(undefined);
  });

  test('says so when a connection is cut in the middle of a change, and nothing of it is left', async () => {
    const store = await open();
    const [one, two] = [await put(store), await put(store)];
    await admin.query(`BEGIN; UPDATE retry_queue SET uncounted = 1 WHERE id = ${two.id}`);
    const change = () =>
      store.change([one, two], (task) => ({ result: 1, task: { ...task!, attempt: 3 } }));
    const changing = change().catch((error: unknown) => error);
    await blocked();
    await cutAll();
    expect(await changing).toMatchObject(unavailable);
    await admin.query('COMMIT');
    expect((await row(store, one.id)).attempt).toBe(0);
    await change();
    expect(await row(store, two.id)).toMatchObject({ attempt: 3, uncounted: 1 });
  });

  test('does not wait longer than it is told for a row that somebody has locked', async () => {
    const store = await open({ lockTimeoutMs: 100 });
    const { id } = await put(store);
    await admin.query(`BEGIN; UPDATE retry_queue SET uncounted = 1 WHERE id = ${id}`);
    const change = () => store.change([{ id }], (task) => ({ result: task?.uncounted }));
    await expect(change()).rejects.toMatchObject(unavailable);
    await admin.query('COMMIT');
    expect(await change()).toEqual([1]);
  });

  test('stores the others when somebody is just storing one of a batch', async () => {
    const store = await open({ lockTimeoutMs: 100 });
    const [held, ...others] = Array.from({ length: 8 }, () => newTask());
    await admin.query('BEGIN');
    await store.insert([held!], admin);
    const [locked, ...stored] = await store.insert([held!, ...others]);
    expect([locked, stored.every((id) => id !== undefined)]).toEqual([undefined, true]);
    const again = store.change([held!], () => ({ result: 1, task: held! }));
    await expect(again).rejects.toMatchObject(unavailable);
    await admin.query('COMMIT');
    const ids = await store.insert([held!, ...others]);
    expect(ids.every((id) => id === undefined)).toBe(true);
  });

  test('answers those who submit beside one whose key is held by a transaction', async () => {
    const store = await open({ lockTimeoutMs: 100 });
    const engine = createEngine({ store }).handle('work', (_n: number) => undefined);
    await admin.query('BEGIN');
    await engine.submit('work', 1, { orderingKey: 'held', tx: admin });
    const [waiting, other] = await Promise.allSettled([
      engine.submit('work', 2, { orderingKey: 'held' }),
      engine.submit('work', 3, { orderingKey: 'free' }),
    ]);
    expect(waiting).toMatchObject({ status: 'rejected', reason: unavailable });
    expect(other).toMatchObject({ status: 'fulfilled', value: { status: 'accepted' } });
    await admin.query('COMMIT');
    expect(await engine.list({ limit: 10 })).toHaveLength(2);
    await engine.stop();
  });

  test.each(['url', 'pool'] as const)('ends a statement that takes too long, by %s', async (by) => {
    const pool = new pg.Pool({ connectionString: database.url });
    pool.on('error', () => undefined);
    const store = await open({ statementTimeoutMs: 200, ...(by === 'pool' ? { pool } : {}) });
    const task = newTask();
    await admin.query('BEGIN; LOCK TABLE retry_queue IN ACCESS EXCLUSIVE MODE');
    await expect(store.insert([task])).rejects.toMatchObject(unavailable);
    await expect(store.get(task)).rejects.toMatchObject(unavailable);
    await admin.query('ROLLBACK');
    await store.insert([task]);
    expect(await store.get(task)).toBeDefined();
    await store.close();
    await pool.end();
  });

  test('uses a pool of the user’s own and leaves it open', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    const store = await open({ pool, listen: true });
    const { id } = await put(store);
    await store.close();
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM retry_queue');
    expect(rows).toEqual([{ id: `${id}` }]);
    await pool.end();
  });

  test('names a database that takes no writes', async () => {
    const store = await open();
    await admin.query(`DO $$ BEGIN EXECUTE format(
      'ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`);
    await cutAll();
    // The connection that is cut is one thing, what the next one says another.
    await store.readState('');
    await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'STORE_READ_ONLY' });
  });

  test('names tables that are gone', async () => {
    const store = await open();
    await admin.query('DROP TABLE retry_queue');
    await expect(store.insert([newTask()])).rejects.toMatchObject({ code: 'SCHEMA_MISSING' });
  });

  test('cannot be opened where there is nobody, and opens when there is', async () => {
    const url = new URL(database.url);
    url.password = 'wrong';
    await expect(open({ url: url.href })).rejects.toMatchObject({ code: 'STORE_DENIED' });
    url.port = '1';
    await expect(open({ url: url.href })).rejects.toMatchObject(unavailable);
  });

  test('takes no calls when it is closed, and opens again', async () => {
    const store = await open();
    await store.close();
    await store.close();
    await expect(store.get({ id: 1 })).rejects.toMatchObject(unavailable);
    await store.open();
    await expect(store.get({ id: 1 })).resolves.toBeUndefined();
  });

  test('keeps a bad task of a batch out, stores the others, and says which it was', async () => {
    const store = await open();
    const tasks = Array.from({ length: 5 }, () => newTask());
    tasks[1]!.lane = 'a \0 lane';
    tasks[3]!.messageId = 'not a UUID';
    await expect(store.insert(tasks)).rejects.toMatchObject({
      code: 'INVALID_TASK',
      faults: [
        { path: '1', code: 'INVALID_TASK' },
        { path: '3', code: 'INVALID_ID' },
      ],
    });
    const stored = await Promise.all(
      tasks.map(async (task) => (await store.get(task)) !== undefined),
    );
    expect(stored).toEqual([true, false, true, false, true]);
  });

  test('settles whatever the error and the answer say', async () => {
    const store = await open();
    const task = await putClaimed(store, inLane('a'));
    const failure = { class: 'unknown' as const, message: 'a \0 b \ud800', code: 'c\0d' };
    const record = { attempt: 1, failure, durationMs: 1, answer: '\0\0' };
    const settlement = { ...settlements.pending(task), record } as Settlement;
    expect(await store.settle([settlement])).toEqual(['settled']);
    expect((await row(store, task.id)).failure).toMatchObject({
      message: 'a \ufffd b \ufffd',
      code: 'c\0d',
    });
    expect(await store.attempts(task.id)).toMatchObject([{ answer: '\ufffd\ufffd' }]);
  });

  test('takes numbers without end for the largest that it can keep', async () => {
    const store = await open();
    const endless = newTask({
      maxAttempts: Infinity,
      due: { inMs: Infinity },
      expiresAtMs: Infinity,
    });
    const [far] = await store.insert([endless]);
    expect((await row(store, far!)).dueAtMs).toBeGreaterThan(Date.UTC(200_000, 0));
    const task = await putClaimed(store, inLane('a'), { leaseMs: Infinity, maxBytes: Infinity });
    const later = { ...settlements.pending(task), delayMs: Infinity } as Settlement;
    expect(await store.settle([later])).toEqual(['settled']);
    expect(await store.list({ limit: Infinity })).toHaveLength(2);
    const never = { done: Infinity, retried: Infinity, cancelled: Infinity };
    expect(await store.prune({ olderThanMs: never, limit: Infinity })).toBe(0);
  });

  test('refuses a transaction that is none', async () => {
    const store = await open();
    await expect(store.insert([newTask()], {})).rejects.toMatchObject({
      code: 'NOT_IN_TRANSACTION',
    });
  });

  /** What the server did, but nobody heard of. */
  test('is safe to ask again when an answer is lost', async () => {
    await using proxy = await LossyProxy.before(database.url);
    const store = await open({ url: proxy.url });
    const lose = (call: Promise<unknown>) => expect(call).rejects.toMatchObject(unavailable);

    const task = inLane('a');
    proxy.loseNextAnswer();
    await lose(store.insert([task]));
    expect(await store.insert([task])).toEqual([undefined]);

    const lease = token();
    proxy.loseNextAnswer();
    await lose(claimDue(store, 'a', { lease }));
    expect((await claimDue(store, 'a')).tasks).toEqual([]);
    await store.abandon(lease);
    const [claimed] = (await claimDue(store, 'a')).tasks;
    expect(claimed).toMatchObject({ claims: 1 });

    proxy.loseNextAnswer();
    await lose(store.settle([settlements.failed(claimed!)]));
    expect(await store.settle([settlements.failed(claimed!)])).toEqual(['lost']);
    expect((await store.items({ limit: 10 })).items).toHaveLength(1);
    expect(await store.attempts(claimed!.id)).toHaveLength(1);
    expect(await store.takeOutbox(10, 1000)).toHaveLength(1);
  });

  test('writes an arrival once, though its answer was lost', async () => {
    await using proxy = await LossyProxy.before(database.url);
    const store = await open({ url: proxy.url });
    const task = await putClaimed(store);
    const arrival = arrivalOf(task);
    arrival.task.arrival = token();
    const arrive = () => store.change([task], (now, nowMs) => accept(arrival, now, nowMs, 0));
    proxy.loseNextAnswer('COMMIT');
    await expect(arrive()).rejects.toMatchObject(unavailable);
    expect(await arrive()).toEqual(['accepted']);
    expect(await store.attempts(task.id)).toHaveLength(1);
    expect((await row(store, task.id)).attempt).toBe(1);
  });
}, everyPostgres);

describeService('PostgreSQL 15', () => {
  test('goes on with all that was stored after the server was killed', async () => {
    await using server = await startPostgres({ version: 15 });
    const faults: string[] = [];
    const store = postgres({ url: server.url, onFault: (what) => faults.push(what) });
    await store.open();
    const claimed = await putClaimed(store, inLane('claimed'));
    const waiting = await put(store, inLane('waiting'));
    await server.kill9();
    await expect(store.insert([newTask()])).rejects.toMatchObject(unavailable);
    await expect(claimDue(store, 'waiting')).rejects.toMatchObject(unavailable);
    await server.start();
    expect(await store.settle([settlements.done(claimed)])).toEqual(['settled']);
    expect((await claimDue(store, 'waiting')).tasks.map(({ id }) => id)).toEqual([waiting.id]);
    await server.restart();
    expect((await row(store, claimed.id)).status).toBe('done');
    await store.close();
    expect(faults.length).toBeGreaterThan(0);
  });
});

/** Passes everything on, until it is told to cut the connection instead of passing on an answer. */
class LossyProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly url: string;
  #losing: string | undefined;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async before(upstreamUrl: string): Promise<LossyProxy> {
    const upstream = new URL(upstreamUrl);
    const server = createServer((client) => proxy.#pass(client, upstream));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const url = new URL(upstreamUrl);
    url.port = `${(server.address() as { port: number }).port}`;
    const proxy = new LossyProxy(server, url.href);
    return proxy;
  }

  /** Of the next statement that has these words in it. */
  loseNextAnswer(words = ''): void {
    this.#losing = words;
  }

  #pass(client: Socket, upstream: URL): void {
    const server = connect(Number(upstream.port), upstream.hostname);
    let isLost = false;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        server.destroy();
      });
    }
    client.on('data', (data) => {
      if (this.#losing !== undefined && data.includes(this.#losing)) {
        isLost = true;
        this.#losing = undefined;
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (isLost) client.destroy();
      else client.write(data);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
