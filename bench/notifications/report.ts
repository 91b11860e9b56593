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
import type { Case, Result } from '../result.ts';
import { barePostgres } from './bare-postgres.ts';
import { bareSqlite } from './bare-sqlite.ts';
import { type BareWrites, report, REPORTS, rowMaker, startReports } from './reported.ts';

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
  // A record was created, and written once.
  let version = 1;
  const redrive = metered('redrive', () => report(service, ++attempt));
  const limit = metered('bare', () => writes.write(rowsOf(++version)));
  try {
    const result = await race([redrive.contestant, limit.contestant], effort);
    const share = result.peers['bare']! / result.redrive;
    const cpu = [redrive, limit].map((one) => one.cpuUs()) as [number, number];
    return {
      ...result,
      verdicts: [
        {
          target: `at least ${TARGET * 100} % of the bare writes`,
          measured: `${Math.round(share * 100)} %`,
          met: share >= TARGET,
        },
      ],
      notes: [
        'bare: the same rows in the same tables, in three commits per batch, without reading or deciding',
        `time of the processor for a report, in this process: redrive ${cpu[0].toFixed(1)} µs, bare ${cpu[1].toFixed(1)} µs`,
      ],
    };
  } finally {
    await service.stop();
    await store.close();
    await writes.close();
  }
}

/** Counts the time of the processor too: on a busy machine it tells more than the clock on the wall. */
function metered(name: string, call: () => Promise<boolean>) {
  let us = 0;
  let reports = 0;
  const contestant: Contestant = {
    name,
    async call() {
      const before = process.cpuUsage();
      const done = await call();
      const { user, system } = process.cpuUsage(before);
      us += user + system;
      reports += REPORTS;
      return done;
    },
    expected: true,
    opsPerCall: REPORTS,
    waits: true,
  };
  return { contestant, cpuUs: () => us / reports };
}
