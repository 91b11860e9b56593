import { type Database, describePostgres, everyPostgres } from '@redrive/services/vitest';
import pg from 'pg';
import type { Clock } from 'redrive';
import { afterAll, beforeAll, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import type { ScheduleCapabilities } from '../../ports/schedule.ts';
import {
  type AuditSetup,
  auditSuite,
  type CallerTransaction,
  inboxSuite,
  modelSuite,
  type Outside,
  scheduleSuite,
  type StoreSetup,
} from '../../testing/index.ts';
import { memory } from '../memory/index.ts';
import { migratePostgres, postgres } from './index.ts';

const capabilities: ScheduleCapabilities = {
  shared: true,
  durable: true,
  listing: true,
  changing: true,
  ordering: true,
  transactions: true,
};

/** The inbox before what counts its items. */
const tables = [
  'retry_queue',
  ...[
    'lines',
    'inbox',
    'open',
    'closed',
    'group_deltas',
    'groups',
    'members',
    'attempts',
    'outbox',
    'state',
    'audit',
    'erased',
  ].map((name) => `redrive_${name}`),
];

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let admin: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    admin = new pg.Pool({ connectionString: database.url });
    await migratePostgres(database.url);
  });
  afterAll(async () => {
    await admin.end();
    await database.drop();
  });

  const open = async () => {
    const store = postgres({ url: database.url, maxConnections: 4 });
    await store.open();
    return { store, close: () => store.close() };
  };
  const setup: StoreSetup = {
    capabilities,
    async open() {
      await admin.query(tables.map((table) => `DELETE FROM ${table}`).join('; '));
      return {
        ...(await open()),
        second: open,
        begin: () => begin(database.url),
        outside: () => outside(database.url),
      };
    },
  };

  const model = { ...setup, model: (clock: Clock) => memory({ clock }), runs: 3, steps: 80 };
  const audit: AuditSetup = {
    pruning: true,
    reading: true,
    erasing: true,
    async open() {
      const { store, close } = await setup.open();
      return {
        sink: store.audit!,
        close,
        async written() {
          const { rows } = await admin.query('SELECT event FROM redrive_audit ORDER BY id');
          return rows.map(({ event }: { event: AuditEvent }) => event);
        },
      };
    },
  };
  const suites = [scheduleSuite(setup), inboxSuite(setup), auditSuite(audit), modelSuite(model)];
  for (const { name, skip, run: assertCase } of suites.flat()) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
}, everyPostgres);

/** A transaction of somebody who uses `pg` by himself. */
async function begin(url: string): Promise<CallerTransaction> {
  const tx = new pg.Client(url);
  await tx.connect();
  await tx.query('BEGIN');
  const end = async (how: string) => {
    await tx.query(how);
    await tx.end();
  };
  return { tx, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') };
}

async function outside(connectionString: string): Promise<Outside> {
  const pool = new pg.Pool({ connectionString, max: 4 });
  const [idle, over, failed] = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  await over.query('BEGIN');
  await over.query('ROLLBACK');
  await failed.query('BEGIN');
  await failed.query('SELECT 1 / 0').catch(() => undefined);
  return {
    txs: {
      'a pool': pool,
      'what stands for a pool': { query: pool.query.bind(pool) },
      'a client without BEGIN': idle,
      'a client whose transaction is over': over,
      'a client whose transaction has failed': failed,
    },
    async close() {
      for (const client of [idle, over, failed]) client.release(true);
      await pool.end();
    },
  };
}
