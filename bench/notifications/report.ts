import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgres } from '@redrive/engine/postgres';
import type { Store } from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';
import type { NotificationRepository } from '@redrive/notifications';
import { postgresNotifications } from '@redrive/notifications/postgres';
import { sqliteNotifications } from '@redrive/notifications/sqlite';
import { startPostgres } from '@redrive/services';
import pg from 'pg';
import type { Contestant, Effort } from '../harness.ts';
import { requireServer } from '../missing.ts';
import { race } from '../race.ts';
import type { Case, Result, Verdict } from '../result.ts';
import { barePostgres } from './bare-postgres.ts';
import { bareSqlite } from './bare-sqlite.ts';
import { type BareWrites, report, REPORTS, reportsOf, rowMaker, startReports } from './reported.ts';

const TARGET = 0.5;

export const reportCase: Case = {
  name: 'report',
  about: 'failures reported in batches of 100: attempt, record and wake-up on the disk, in SQLite',
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    try {
      return await compare(effort, {
        open: (name) => {
          const file = join(folder, `${name}.db`);
          return { store: sqlite(file), repository: sqliteNotifications(file) };
        },
        bare: (name) => bareSqlite(join(folder, `${name}.db`)),
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

export const reportPostgresCase: Case = {
  name: 'report-postgres',
  about: 'the same in PostgreSQL',
  async run(effort) {
    requireServer('PostgreSQL 18');
    await using server = await startPostgres({ version: 18 });
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    for (const name of ['redrive', 'bare']) await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    const urlOf = (name: string) => Object.assign(new URL(server.url), { pathname: name }).href;
    return await compare(effort, {
      open: (name) => {
        const url = urlOf(name);
        return { store: postgres({ url }), repository: postgresNotifications({ url }) };
      },
      bare: (name) => barePostgres(urlOf(name)),
    });
  },
};

interface Ground {
  open: (name: 'redrive' | 'bare') => { store: Store; repository: NotificationRepository };
  bare: (name: 'bare') => BareWrites;
}

/** Failures reported, decided, recorded and scheduled, against the writes that this comes to. */
async function compare(effort: Effort, { open, bare }: Ground): Promise<Result> {
  // The bare side begins with the same tables and rows.
  const before = open('bare');
  const made = await startReports(before.store, before.repository);
  const rowsOf = await rowMaker(made);
  await made.stop();
  await before.store.close();

  const { store, repository } = open('redrive');
  const service = await startReports(store, repository);
  const writes = bare('bare');
  let attempt = 1;
  let written = 1;
  const sides: Contestant[] = [
    { name: 'redrive', call: () => report(service, ++attempt), expected: true },
    { name: 'bare', call: () => writes.write(rowsOf(reportsOf(++written))), expected: true },
  ].map((side) => ({ ...side, opsPerCall: REPORTS }));
  try {
    const byClock = await race(
      sides.map((side) => ({ ...side, waits: true })),
      effort,
    );
    // On a busy machine it tells more than the clock on the wall.
    const byProcessor = await race(sides, effort);
    return { ...byClock, verdicts: [verdict(byClock)], notes: [about, shareNote(byProcessor)] };
  } finally {
    await service.stop();
    await store.close();
    await writes.close();
  }
}

const about =
  'bare: the same rows in the same tables, in two commits per batch, without reading or deciding';

function verdict({ redrive, peers }: Result): Verdict {
  const measured = Number(peers['bare']) / redrive;
  return {
    target: `at least ${TARGET * 100} % of the bare writes`,
    measured: `${Math.round(measured * 100)} %`,
    met: measured >= TARGET,
  };
}

function shareNote({ redrive, peers }: Result): string {
  const bare = Number(peers['bare']);
  const us = (ns: number) => `${(ns / 1000).toFixed(1)} µs`;
  return `time of the processor for a report, of this thread alone: redrive ${us(redrive)}, bare ${us(bare)} (${Math.round((100 * bare) / redrive)} %)`;
}
