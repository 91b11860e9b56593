import { connect, createServer, type Socket } from 'node:net';
import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Hint } from '../../../ports/schedule.ts';
import type { Store } from '../../../ports/store.ts';
import { HOUR_MS, inLane, newTask } from '../../../testing/fixtures.ts';
import { postgres, type PostgresOptions } from '../index.ts';

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
    await Promise.all(stores.map((store) => store.close()));
    await admin.end();
    await database.drop();
  });

  async function open(options: PostgresOptions = {}): Promise<Store> {
    const store = postgres({ url: database.url, maxConnections: 2, ...options });
    stores.push(store);
    await store.open();
    return store;
  }

  function hintsOf(store: Store): Hint[] {
    const hints: Hint[] = [];
    store.watch((hint) => hints.push(hint));
    return hints;
  }

  async function listening(count: number): Promise<number[]> {
    const text = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'`;
    let pids: number[] = [];
    await vi.waitFor(
      async () => {
        const { rows } = await admin.query<{ pid: number }>(text);
        pids = rows.map(({ pid }) => pid);
        expect(pids).toHaveLength(count);
      },
      { timeout: 20_000, interval: 20 },
    );
    return pids;
  }

  const soon = { timeout: 20_000, interval: 10 };

  test('tells other instances what is new and how soon it is due', async () => {
    const [one, two] = [await open(), await open()];
    const hints = hintsOf(two);
    await listening(2);
    await one.insert([inLane('a', { due: { inMs: HOUR_MS } }), inLane('b')]);
    await vi.waitFor(() => expect(hints).toContainEqual({ lanes: ['a', 'b'], inMs: 0 }), soon);
  });

  test('tells its own watchers once, without the way through the server', async () => {
    const store = await open();
    await listening(1);
    const hints = hintsOf(store);
    await store.insert([inLane('a')]);
    expect(hints).toEqual([{ lanes: ['a'], inMs: 0 }]);
    const other = hintsOf(await open());
    await listening(2);
    await store.writeState('lane:a', {}, 0);
    await vi.waitFor(() => expect(other).toContainEqual({ state: true }), soon);
    expect(hints).toEqual([{ lanes: ['a'], inMs: 0 }, { state: true }]);
  });

  test('sends a flood of news as few notifications', async () => {
    const store = await open({ listen: false });
    let received = 0;
    admin.on('notification', () => {
      received += 1;
    });
    await admin.query('LISTEN "redrive:public"');
    for (let i = 0; i < 200; i++) await store.insert([inLane('a')]);
    await store.close();
    await admin.query('SELECT 1');
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(100);
  });

  test('sends what it has to tell before it closes', async () => {
    const one = await open();
    const hints = hintsOf(await open());
    await listening(2);
    await one.insert([inLane('first')]);
    await one.insert([inLane('last')]);
    await one.close();
    await vi.waitFor(
      () => expect(hints.flatMap(({ lanes = [] }) => lanes)).toContain('last'),
      soon,
    );
  });

  test('names no lanes where there are too many', async () => {
    const one = await open();
    const hints = hintsOf(await open());
    await listening(2);
    await one.insert(Array.from({ length: 50 }, (_, i) => inLane(`lane ${i}`)));
    await vi.waitFor(() => expect(hints).toContainEqual({ inMs: 0 }), soon);
  });

  test('hears of the document’s own INSERT', async () => {
    const hints = hintsOf(await open());
    await listening(1);
    await admin.query(`INSERT INTO retry_queue (message_id, original_payload, original_queue, next_retry_at)
      VALUES ('${crypto.randomUUID()}', '', 'orders', now())`);
    await vi.waitFor(() => expect(hints).toContainEqual({ lanes: ['queue:orders'] }), soon);
  });

  test('takes what it cannot read for news', async () => {
    const hints = hintsOf(await open());
    await listening(1);
    await admin.query(`SELECT pg_notify('redrive:public', 'nonsense')`);
    await vi.waitFor(() => expect(hints).toEqual([{}]), soon);
  });

  test('listens again when its connection was cut, and says that something may have been missed', async () => {
    const faults: string[] = [];
    const store = await open({ onFault: (what) => faults.push(what) });
    const hints = hintsOf(store);
    const [pid] = await listening(1);
    await admin.query('SELECT pg_terminate_backend($1)', [pid]);
    await vi.waitFor(() => expect(hints).toContainEqual({}), soon);
    expect(faults).toHaveLength(1);
    const [after] = await listening(1);
    expect(after).not.toBe(pid);
    await (await open({ listen: false })).insert([inLane('after')]);
    await vi.waitFor(
      () => expect(hints.flatMap(({ lanes = [] }) => lanes)).toContain('after'),
      soon,
    );
  });

  test('notices a connection that has died without a word', async () => {
    const faults: string[] = [];
    await using proxy = await freezingProxy(database.url);
    const store = await open({
      listenUrl: proxy.url,
      listenCheckMs: 50,
      statementTimeoutMs: 1000,
      onFault: (what) => faults.push(what),
    });
    const hints = hintsOf(store);
    await listening(1);
    await vi.waitFor(async () => {
      await (await open({ listen: false })).insert([inLane('before')]);
      expect(hints.flatMap(({ lanes = [] }) => lanes)).toContain('before');
    }, soon);
    proxy.freezeAll();
    // Nothing comes any more, and nothing says so: the next look finds out, and a new connection is made.
    await vi.waitFor(() => expect(hints).toContainEqual({}), soon);
    expect(faults).toHaveLength(1);
  });

  test('reaches others in a schema with the longest of names, too', async () => {
    const schema = 's'.repeat(63);
    const one = await open({ schema });
    const hints = hintsOf(await open({ schema }));
    await listening(2);
    await one.insert([inLane('a')]);
    await vi.waitFor(() => expect(hints).toContainEqual({ lanes: ['a'], inMs: 0 }), soon);
  });

  test('needs no connection for it where it is told not to listen', async () => {
    const store = await open({ listen: false });
    const hints = hintsOf(store);
    await store.insert([newTask()]);
    expect(hints).toHaveLength(1);
    const { rows } =
      await admin.query(`SELECT FROM pg_stat_activity WHERE datname = current_database()
      AND pid <> pg_backend_pid() AND query LIKE '%LISTEN%'`);
    expect(rows).toEqual([]);
  });

  test('keeps other watchers from one that throws', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue();
    const store = await open({ listen: false });
    const stop = store.watch(() => {
      throw new Error('a bad watcher');
    });
    const hints = hintsOf(store);
    await store.insert([newTask()]);
    expect(hints).toHaveLength(1);
    expect(error).toHaveBeenCalledOnce();
    stop();
    await store.insert([newTask()]);
    expect(error).toHaveBeenCalledOnce();
    error.mockRestore();
  });
});

/** Passes everything on; connections that are frozen stay open and silent. */
async function freezingProxy(upstreamUrl: string) {
  const upstream = new URL(upstreamUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const toServer = connect(Number(upstream.port), upstream.hostname);
    for (const socket of [client, toServer]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    client.pipe(toServer);
    toServer.pipe(client);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = new URL(upstreamUrl);
  url.port = `${(server.address() as { port: number }).port}`;
  return {
    url: url.href,
    freezeAll() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
