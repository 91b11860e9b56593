/** Benchmarks on a machine without Redis: a case runs with the peers that are there, and names the others. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeService } from '@redrive/services/vitest';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const main = join(import.meta.dirname, '..', '..', 'bench', 'main.ts');

async function bench(...words: string[]): Promise<unknown[]> {
  const env = { ...process.env, REDRIVE_SKIP_SERVICES: 'Redis' };
  const { stdout } = await run(process.execPath, [main, ...words, '--quick', '--json'], { env });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

const why = expect.stringContaining('Redis is missing: REDRIVE_SKIP_SERVICES leaves it out');

it('names the case that cannot be run', async () => {
  expect(await bench('idempotency', '--case', 'redis')).toEqual([
    { suite: 'idempotency', case: 'redis', notRun: why },
  ]);
});

describeService('PostgreSQL 15', () => {
  it('runs a case with those who are there', { timeout: 180_000 }, async () => {
    expect(await bench('engine', '--case', 'schedule-postgres')).toMatchObject([
      {
        suite: 'engine',
        case: 'schedule-postgres',
        redrive: expect.any(Number),
        peers: { 'pg-boss': expect.any(Number), 'graphile-worker': expect.any(Number) },
        missing: { bullmq: why },
      },
    ]);
  });
});
