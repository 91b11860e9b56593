import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describePostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type HandlerJob, type HandlerPoint, handlerPoints } from './idempotency/job.ts';

/** Short, since each second process waits for the end of it. */
const LEASE_MS = 600;

async function run(job: HandlerJob): Promise<{ code: number | null; signal: string | null }> {
  const child = new URL('./idempotency/handler-child.ts', import.meta.url).pathname;
  const process_ = spawn(process.execPath, [child, JSON.stringify(job)]);
  const [error, [code, signal]] = await Promise.all([
    text(process_.stderr),
    once(process_, 'exit') as Promise<[number | null, string | null]>,
  ]);
  if (code !== 0 && signal === null) throw new Error(error);
  return { code, signal };
}

/** Points where the effect has happened and nobody has written that down: outside of a transaction it happens again. */
const twice: readonly HandlerPoint[] = ['after effect', 'before record'];
const outside = handlerPoints.filter((point) => !point.endsWith('commit'));

/** Kills the first process at the point; the second one finishes the task, and a third one finds nothing to do. */
async function killed(job: HandlerJob, dieAt: HandlerPoint): Promise<void> {
  expect(await run({ ...job, dieAt })).toMatchObject({ signal: 'SIGKILL' });
  expect(await run(job)).toMatchObject({ code: 0 });
  expect(await run(job)).toMatchObject({ code: 0 });
}

function outsideOf(store: () => HandlerJob['store']): void {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-handlers-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(outside.map((dieAt) => ({ dieAt, expected: twice.includes(dieAt) ? 2 : 1 })))(
    'killed $dieAt: the effect happens $expected times',
    async ({ dieAt, expected }) => {
      const id = randomUUID();
      const effects = join(folder, id);
      writeFileSync(effects, '');
      const job = { store: store(), id, effects, isInside: false, leaseMs: LEASE_MS };
      await killed(job, dieAt);
      expect(readFileSync(effects, 'utf8')).toHaveLength(expected);
    },
  );
}

describe('an idempotent handler on SQLite', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-handlers-db-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  outsideOf(() => ({ kind: 'sqlite', file: join(folder, 'tasks.db') }));
});

describePostgres(({ freshDatabase }) => {
  let url: string;
  let pool: pg.Pool;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const database = await freshDatabase();
    url = database.url;
    drop = () => database.drop();
    pool = new pg.Pool({ connectionString: url });
    await pool.query('CREATE TABLE effects (id text)');
  });
  afterAll(async () => {
    await pool.end();
    await drop();
  });

  describe('an idempotent handler whose effect is elsewhere', () => {
    outsideOf(() => ({ kind: 'postgres', url }));
  });

  describe('an idempotent handler whose effect is in its tx', () => {
    test.each(handlerPoints)('killed %s: the effect happens exactly once', async (dieAt) => {
      const id = randomUUID();
      const store = { kind: 'postgres', url } as const;
      const job = { store, id, effects: '', isInside: true, leaseMs: LEASE_MS };
      await killed(job, dieAt);
      const { rows } = await pool.query('SELECT FROM effects WHERE id = $1', [id]);
      expect(rows).toHaveLength(1);
    });
  });
});
