import { type Database, describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { recordResult } from 'redrive';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEngine, type Engine } from '../../../engine.ts';
import type { EngineOptions } from '../../../engine-options.ts';
import type { EngineEvent } from '../../../events.ts';
import { giveUp } from '../../../model/outcomes.ts';
import type { Transaction } from '../../../ports/idempotency.ts';
import { memory } from '../../memory/index.ts';
import { postgres, postgresIdempotency } from '../index.ts';

const ID = '018f2d3e-0000-7000-8000-000000000001';
const KEY = `handler:charge:${ID}`;
const silent = { debug() {}, info() {}, warn() {}, error() {} };

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let pool: pg.Pool;
  const stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    database = await freshDatabase();
    pool = new pg.Pool({ connectionString: database.url });
    await pool.query('CREATE TABLE effects (id text)');
    const store = postgres({ pool, listen: false });
    await store.open();
    await store.idempotency.prune(0);
    await store.close();
  });
  beforeEach(async () => {
    await pool.query('TRUNCATE effects, redrive_idempotency, retry_queue CASCADE');
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  /** An engine, and what happens in it. */
  function opened(options: Partial<EngineOptions> = {}) {
    const events: EngineEvent[] = [];
    const waiting = new Set<() => void>();
    const engine = createEngine({
      store: postgres({ url: database.url, listen: false, maxConnections: 4 }),
      policy: { maxAttempts: 3, base: 1, jitter: 'none' },
      log: silent,
      grace: 0,
      ...options,
      on: (event) => {
        events.push(event);
        for (const look of waiting) look();
      },
    }) as Engine<Record<string, unknown>, Transaction>;
    stops.push(() => engine.stop());
    const saw = (type: EngineEvent['type'], times = 1) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (events.filter((event) => event.type === type).length < times) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      });
    return { engine, events, saw };
  }

  const effect = (tx: Transaction) => tx.query('INSERT INTO effects VALUES ($1)', [ID]);

  async function effects(): Promise<number> {
    const { rows } = await pool.query<{ n: number }>('SELECT count(*)::int AS n FROM effects');
    return rows[0]!.n;
  }

  async function recorded(): Promise<boolean> {
    const { rows } = await pool.query<{ is: boolean }>(
      'SELECT outcome IS NOT NULL AS is FROM redrive_idempotency WHERE key = $1',
      [KEY],
    );
    return rows[0]?.is ?? false;
  }

  test('what a handler writes, what it submits, and its record commit together', async () => {
    const { engine, saw } = opened();
    const inside: unknown[] = [];
    const both = engine
      .handle('charge', { idempotent: true }, async (_: object, { tx }) => {
        await effect(tx);
        const { rows } = await tx.query<{ n: number }>({
          text: 'SELECT count(*)::int AS n FROM effects WHERE id = $1',
          values: [ID],
        });
        inside.push(rows, await effects(), await recorded());
        await both.submit('mail', 'paid', { tx });
      })
      .handle('mail', (_text: string) => undefined);
    await both.start();
    await both.submit('charge', {}, { id: ID });
    await saw('done', 2);
    expect(inside).toEqual([[{ n: 1 }], 0, false]);
    expect([await effects(), await recorded()]).toEqual([1, true]);
  });

  test('a failure and a wish roll back what was written, and free the key', async () => {
    const { engine, saw, events } = opened();
    let runs = 0;
    engine.handle('charge', { idempotent: true }, async (_: object, { tx }) => {
      await effect(tx);
      runs += 1;
      if (runs === 1) throw new Error('card refused');
      return giveUp('closed account');
    });
    await engine.start();
    await engine.submit('charge', {}, { id: ID });
    await saw('failed');
    expect(events).toContainEqual(expect.objectContaining({ type: 'retry', attempt: 1 }));
    expect([runs, await effects(), await recorded()]).toEqual([2, 0, false]);
  });

  test('a task whose record is there is done without running', async () => {
    const { engine, saw } = opened();
    engine.handle('charge', { idempotent: true }, (_: object, { tx }) => effect(tx));
    await recordResult(postgresIdempotency(pool), KEY, undefined);
    await engine.start();
    await engine.submit('charge', {}, { id: ID });
    await saw('done');
    expect(await effects()).toBe(0);
  });

  test('a pool of one connection is enough', async () => {
    const single = new pg.Pool({ connectionString: database.url, max: 1 });
    const { engine, saw } = opened({ store: postgres({ pool: single, listen: false }) });
    engine.handle('charge', { idempotent: true }, (_: object, { tx }) => effect(tx));
    await engine.start();
    for (let i = 0; i < 4; i++) await engine.submit('charge', {});
    await saw('done', 4);
    expect(await effects()).toBe(4);
    await engine.stop();
    await single.end();
  });

  test('a handler that hangs gives its connection back, and cannot write any more', async () => {
    const { engine, saw } = opened({ policy: { maxAttempts: 1 } });
    let late: Promise<unknown> | undefined;
    engine.handle('charge', { idempotent: true, timeout: 300 }, async (_: object, context) => {
      await effect(context.tx);
      await new Promise((resolve) => {
        context.signal.addEventListener('abort', resolve);
      });
      // One turn later, when the engine has heard of it too.
      await new Promise(setImmediate);
      late = effect(context.tx);
      await late;
    });
    await engine.start();
    await engine.submit('charge', {}, { id: ID });
    await saw('failed');
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_OVER' });
    expect([await effects(), await recorded()]).toEqual([0, false]);
    // The key is free at once: nothing holds it.
    expect(await recordResult(postgresIdempotency(pool), KEY, undefined)).toBe(true);
  });

  test('the server ends the transaction of a process that stands still', async () => {
    const { engine, saw } = opened();
    const limits: unknown[] = [];
    engine.handle('charge', { idempotent: true, timeout: 7000 }, async (_: object, { tx }) => {
      for (const name of ['idle_in_transaction_session_timeout', 'statement_timeout']) {
        const { rows } = await tx.query<{ ms: string }>(
          `SELECT setting AS ms FROM pg_settings WHERE name = '${name}'`,
        );
        limits.push(Number(rows[0]!.ms));
      }
    });
    await engine.start();
    await engine.submit('charge', {}, { id: ID });
    await saw('done');
    for (const ms of limits) {
      expect(ms).toBeLessThanOrEqual(8000);
      expect(ms).toBeGreaterThan(1000);
    }
    expect(limits).toHaveLength(2);
  });

  test.each(['COMMIT', ' rollback', 'BEGIN', 'end;', 'ABORT', 'Start Transaction'])(
    'the engine alone ends the transaction: %s is refused',
    async (text) => {
      const { engine, saw } = opened();
      const refused: unknown[] = [];
      engine.handle('charge', { idempotent: true }, async (_: object, { tx }) => {
        await tx.query('SAVEPOINT part');
        await effect(tx);
        await tx.query('ROLLBACK TO part');
        await effect(tx);
        await tx.query(text).catch((error: unknown) => refused.push(error));
      });
      await engine.start();
      await engine.submit('charge', {}, { id: ID });
      await saw('done');
      expect(refused).toMatchObject([{ code: 'TRANSACTION_CONTROL' }]);
      expect(await effects()).toBe(1);
    },
  );

  test('a statement that failed fails the execution, also where the handler ignores it', async () => {
    const { engine, saw, events } = opened();
    let runs = 0;
    engine.handle('charge', { idempotent: true }, async (_: object, { tx }) => {
      runs += 1;
      await effect(tx);
      if (runs === 1) await tx.query('SELECT 1 / 0').catch(() => undefined);
    });
    await engine.start();
    await engine.submit('charge', {}, { id: ID });
    await saw('done');
    expect(events).toContainEqual(expect.objectContaining({ type: 'retry', attempt: 1 }));
    expect([runs, await effects()]).toEqual([2, 1]);
  });

  test('an instance that lost its lease and one that took over have one effect together', async () => {
    const lease = { lease: 3000, heartbeat: 1000 };
    const first = opened(lease);
    const second = opened({ ...lease, poll: 200 });
    let go = () => {};
    const gone = new Promise<void>((resolve) => {
      go = resolve;
    });
    let runs = 0;
    let began = () => {};
    const running = new Promise<void>((resolve) => {
      began = resolve;
    });
    first.engine.handle('charge', { idempotent: true }, async (_: object, { tx }) => {
      runs += 1;
      await effect(tx);
      began();
      await gone;
    });
    second.engine.handle('charge', { idempotent: true }, (_: object, { tx }) => {
      runs += 1;
      return effect(tx);
    });
    await first.engine.start();
    await first.engine.submit('charge', {}, { id: ID });
    await running;
    // As if it had stood still: the lease is over, and somebody else claims the task.
    await pool.query(`UPDATE retry_queue SET visible_at = now()`);
    await second.engine.start();
    await second.saw('retry');
    go();
    await second.saw('done');
    expect(first.events.map(({ type }) => type)).not.toContain('done');
    expect([runs, await effects(), await recorded()]).toEqual([1, 1, true]);
    expect(await second.engine.get(ID)).toMatchObject({ status: 'done', attempt: 0 });
  });

  test('keys that are given beside another store give handlers a tx too', async () => {
    const idempotency = postgresIdempotency({ url: database.url, maxConnections: 2 });
    const { engine, saw } = opened({ store: memory(), idempotency });
    engine.handle('charge', { idempotent: true }, (_: object, { tx }) => effect(tx));
    await engine.start();
    for (let i = 0; i < 8; i++) await engine.submit('charge', {});
    await saw('done', 8);
    expect(await effects()).toBe(8);
    await engine.stop();
    // They stay the caller's.
    expect(await idempotency.read('nothing')).toBeUndefined();
    await idempotency.close();
  });
});
