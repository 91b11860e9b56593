import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describePostgres, describeService, sharedServer } from '@redrive/services/vitest';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Job, Point } from './idempotency/job.ts';

/** Short, since each second process waits for the end of it. */
const LEASE_MS = 500;
let keys = 0;

interface Run {
  code: number | null;
  signal: string | null;
  output: string;
  error: string;
}

async function run(job: Job): Promise<Run> {
  const child = new URL('./idempotency/child.ts', import.meta.url).pathname;
  const process_ = spawn(process.execPath, [child, JSON.stringify(job)]);
  const [output, error, [code, signal]] = await Promise.all([
    text(process_.stdout),
    text(process_.stderr),
    once(process_, 'exit') as Promise<[number | null, string | null]>,
  ]);
  return { code, signal, output: output.trim(), error };
}

/** How often the effect happened after a process died at each point and another one came for the same key. */
const table: Record<
  Exclude<Point, 'before commit'>,
  { run: number; conflict: number | 'refused' }
> = {
  'before claim': { run: 1, conflict: 1 },
  'after claim': { run: 1, conflict: 'refused' },
  'before effect': { run: 1, conflict: 'refused' },
  // The one case that no store outside of the effect can decide: it happened, and nobody wrote that down.
  'after effect': { run: 2, conflict: 'refused' },
  'before record': { run: 2, conflict: 'refused' },
  'after record': { run: 1, conflict: 1 },
  'after all': { run: 1, conflict: 1 },
};

function killing(store: () => Job['store']): void {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-kills-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const cases = Object.entries(table).flatMap(([dieAt, outcome]) =>
    (['run', 'conflict'] as const).map((afterCrash) => ({
      dieAt: dieAt as Point,
      afterCrash,
      expected: outcome[afterCrash],
    })),
  );
  test.each(cases)(
    'killed $dieAt, afterCrash $afterCrash: $expected',
    async ({ dieAt, afterCrash, expected }) => {
      const key = `kill-${process.pid}-${++keys}`;
      const effects = join(folder, key);
      writeFileSync(effects, '');
      const job: Job = { store: store(), key, effects, leaseMs: LEASE_MS, afterCrash };
      expect(await run({ ...job, dieAt })).toMatchObject({ signal: 'SIGKILL' });
      const before = readFileSync(effects, 'utf8').length;
      const second = await run(job);
      const after = readFileSync(effects, 'utf8').length;
      const isRefused = second.code === 1 && second.error.includes('IDEMPOTENCY_ABANDONED');
      expect({ output: second.output, isRefused, after }, second.error).toEqual(
        expected === 'refused'
          ? { output: '', isRefused: true, after: before }
          : { output: '"paid"', isRefused: false, after: expected },
      );
    },
  );
}

describe('on SQLite', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-kills-db-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  killing(() => ({ kind: 'sqlite', file: join(folder, 'keys.db') }));
});

describeService('Redis', () => {
  let url: string;
  beforeAll(async () => {
    url = await sharedServer('Redis');
  });
  killing(() => ({ kind: 'redis', url }));
});

describeService('NATS 2.9', () => {
  let url: string;
  beforeAll(async () => {
    url = await sharedServer('NATS 2.9');
  });
  killing(() => ({ kind: 'nats', url }));
});

describePostgres(({ freshDatabase }) => {
  let url: string;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const database = await freshDatabase();
    url = database.url;
    drop = () => database.drop();
  });
  afterAll(() => drop());

  describe('with the effect elsewhere', () => {
    killing(() => ({ kind: 'postgres', url }));
  });

  describe('with the effect in the transaction of the record', () => {
    let pool: pg.Pool;
    beforeAll(async () => {
      pool = new pg.Pool({ connectionString: url });
      await pool.query('CREATE TABLE effects (key text)');
    });
    afterAll(() => pool.end());

    test.each<Point>([
      'before claim',
      'after claim',
      'before effect',
      'after effect',
      'before record',
      'after record',
      'before commit',
      'after all',
    ])('killed %s: the effect happens exactly once', async (dieAt) => {
      const key = `kill-${process.pid}-${++keys}`;
      const job: Job = {
        store: { kind: 'transaction', url },
        key,
        effects: '',
        leaseMs: LEASE_MS,
        afterCrash: 'conflict',
      };
      expect(await run({ ...job, dieAt })).toMatchObject({ signal: 'SIGKILL' });
      expect(await run(job)).toMatchObject({ code: 0, output: '"paid"' });
      expect(await run(job)).toMatchObject({ code: 0, output: '"paid"' });
      const { rows } = await pool.query('SELECT FROM effects WHERE key = $1', [key]);
      expect(rows).toHaveLength(1);
    });
  });
});
