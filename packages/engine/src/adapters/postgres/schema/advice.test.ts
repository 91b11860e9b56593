import { expect, test } from 'vitest';
import { adviceOn } from './advice.ts';
import type { Findings } from './findings.ts';

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;

const well: Findings = {
  server: { version: '18.0', number: 180_000, encoding: 'UTF8', isStandby: false },
  clock: { aheadMs: 3, uncertaintyMs: 2 },
  schema: { name: 'redrive', version: 2, oldest: 2, known: 2 },
  tables: [
    { name: 'retry_queue', rows: 1e6, deadRows: 1e5, tableBytes: 5e8, indexBytes: 2e8 },
    { name: 'redrive_inbox', rows: 10, deadRows: 15_000, tableBytes: 5e6, indexBytes: 2e6 },
  ],
  indexes: [
    { name: 'retry_queue_due', table: 'retry_queue', bytes: 100 * MIB, neededBytes: 50 * MIB },
    { name: 'retry_queue_place', table: 'retry_queue', bytes: 10 * MIB, neededBytes: MIB },
    { name: 'retry_queue_due', table: 'retry_queue', bytes: 500 * MIB },
  ],
  holders: [
    { kind: 'session', name: 'psql', pid: 17, state: 'active', ageMs: 1000, transactions: 5 },
  ],
  seesSessions: true,
  connections: { used: 40, max: 100, reserved: 3 },
  pooler: { isBetween: false, hasWayAround: false },
  settings: {
    autovacuum: 'on',
    default_transaction_read_only: 'off',
    fsync: 'on',
    full_page_writes: 'on',
    idle_in_transaction_session_timeout: '1min',
    statement_timeout: '0',
    synchronous_commit: 'on',
    track_counts: 'on',
  },
};

function adviceFor(changes: Partial<Findings>): string[] {
  return adviceOn({ ...well, ...changes }).map(({ level, text }) => `${level}: ${text}`);
}

function setting(name: keyof Findings['settings'], value: string): Partial<Findings> {
  return { settings: { ...well.settings, [name]: value } };
}

function holder(changes: Partial<Findings['holders'][number]>): Partial<Findings> {
  return { holders: [{ kind: 'session', name: 'app', pid: 7, transactions: 3, ...changes }] };
}

const idle = { state: 'idle in transaction', ageMs: 2.5 * HOUR_MS };

test('says nothing where all is well', () => {
  expect(adviceFor({})).toEqual([]);
});

test.each<[what: string, changes: Partial<Findings>, advice: RegExp]>([
  [
    'a server that is too old',
    { server: { ...well.server, version: '12.4', number: 120_004 } },
    /^problem: PostgreSQL 13 or later is needed; this is 12.4\.$/,
  ],
  [
    'another encoding',
    { server: { ...well.server, encoding: 'SQL_ASCII' } },
    /^problem: .*encoding SQL_ASCII/,
  ],
  ['a standby', { server: { ...well.server, isStandby: true } }, /^problem: .*primary/],
  ['no tables', { schema: { name: 'my "own"', known: 2 } }, /^problem: .*"my ""own""" has no/],
  [
    'a migration that was interrupted',
    { schema: { ...well.schema, version: 0, oldest: 0 } },
    /^problem: .*not finished/,
  ],
  [
    'older tables',
    { schema: { ...well.schema, version: 1, oldest: 1 } },
    /^problem: .*have schema 1; this program wants 2/,
  ],
  [
    'tables that are too new',
    { schema: { ...well.schema, version: 4, oldest: 3 } },
    /^problem: .*knows schema 3; this one knows 2/,
  ],
  ['no fsync', setting('fsync', 'off'), /^problem: fsync is off\. /],
  ['no full pages', setting('full_page_writes', 'off'), /^problem: full_page_writes is off\. /],
  [
    'commits that are not awaited',
    setting('synchronous_commit', 'off'),
    /^problem: synchronous_commit is off\. .*already accepted/,
  ],
  [
    'a role that may not write',
    setting('default_transaction_read_only', 'on'),
    /^problem: default_transaction_read_only is on\. /,
  ],
  ['no autovacuum', setting('autovacuum', 'off'), /^problem: autovacuum is off\. /],
  ['no counts', setting('track_counts', 'off'), /^problem: track_counts is off\. /],
  [
    'transactions that may be forgotten',
    setting('idle_in_transaction_session_timeout', '0'),
    /^hint: idle_in_transaction_session_timeout is 0\. /,
  ],
  [
    'a clock that is ahead',
    { clock: { aheadMs: 2300, uncertaintyMs: 2 } },
    /^hint: The server's clock is 2\.3 s ahead of this machine's/,
  ],
  [
    'a clock that is behind',
    { clock: { aheadMs: -90_000, uncertaintyMs: 2 } },
    /^hint: The server's clock is 1\.5 min behind this machine's/,
  ],
  [
    'connections that are used up',
    { connections: { used: 97, max: 100, reserved: 3 } },
    /^problem: All of the server's 100 connections/,
  ],
  [
    'connections that are nearly used up',
    { connections: { used: 77, max: 100, reserved: 3 } },
    /^hint: 77 of the server's 100 connections are in use, and 3 are reserved/,
  ],
  [
    'a session that forgot its transaction',
    holder(idle),
    /^hint: Session 7 of 'app' \(idle in transaction\) holds back vacuum for 2\.5 h.*pg_terminate_backend\(7\)/,
  ],
  [
    'a session that others came after',
    holder({ ageMs: 1000, transactions: 1_000_001, state: 'active' }),
    /^hint: Session 7 .* for 1 s/,
  ],
  [
    'a prepared transaction that was forgotten',
    holder({ ...idle, kind: 'prepared transaction', name: "it's" }),
    /^hint: The prepared transaction 'it''s' .*ROLLBACK PREPARED 'it''s'/,
  ],
  [
    'a slot that nobody reads',
    holder({ kind: 'replication slot', name: 'old', transactions: 5e6 }),
    /^hint: The replication slot 'old' .* for 5000000 transactions.*pg_drop_replication_slot\('old'\)/,
  ],
  [
    'a role that does not see others',
    { seesSessions: false },
    /^hint: This role does not see .*pg_read_all_stats/,
  ],
  [
    'a table of dead rows',
    { tables: [{ ...well.tables[0]!, deadRows: 600_000, autovacuumedAgoMs: 3 * 24 * HOUR_MS }] },
    /^hint: retry_queue has 600000 dead rows beside 1000000 others, and autovacuum was here 3 d ago/,
  ],
  [
    'a table where vacuum never was',
    { tables: [{ ...well.tables[0]!, deadRows: 600_000 }] },
    /^hint: .*autovacuum was never here/,
  ],
  [
    'a swollen index',
    { indexes: [{ ...well.indexes[0]!, neededBytes: 20.5 * MIB }] },
    /^hint: The index retry_queue_due has 100 MiB and would need about 21: REINDEX INDEX CONCURRENTLY "redrive"\.retry_queue_due\.$/,
  ],
])('has one piece of advice on %s', (_, changes, advice) => {
  expect(adviceFor(changes)).toEqual([expect.stringMatching(advice)]);
});

test('knows what a pooler needs', () => {
  const limited = { ...well.settings, statement_timeout: '30s' };
  const between = { isBetween: true, hasWayAround: false };
  expect(adviceFor({ pooler: between, settings: limited })).toEqual([
    expect.stringMatching(/^hint: A pooler stands between\. Give a listenUrl/),
  ]);
  expect(adviceFor({ pooler: { ...between, hasWayAround: true } })).toEqual([
    expect.stringMatching(/^hint: A pooler stands between, .*statement_timeout/),
  ]);
  expect(adviceFor({ pooler: { hasWayAround: false } })).toEqual([]);
});

test('does not blame a clock for a slow answer', () => {
  expect(adviceFor({ clock: { aheadMs: 4000, uncertaintyMs: 3500 } })).toEqual([]);
});

test('puts problems before hints', () => {
  const advice = adviceOn({
    ...well,
    clock: { aheadMs: 5000, uncertaintyMs: 1 },
    connections: { used: 100, max: 100, reserved: 0 },
    schema: { name: 'public', known: 2 },
  });
  expect(advice.map(({ level }) => level)).toEqual(['problem', 'problem', 'hint']);
});
