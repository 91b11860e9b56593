import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { storeDelayQueue } from '@redrive/engine';
import { sqlite } from '@redrive/engine/sqlite';
import { createNotifications } from '@redrive/notifications';
import { sqliteNotifications } from '@redrive/notifications/sqlite';
import { race } from '../race.ts';
import type { Case } from '../result.ts';

/** Reports at once, each about a notification of its own. */
const REPORTS = 100;
const TARGET = 0.5;

const ids = Array.from({ length: REPORTS }, (_, i) => `n${i}`);

/** Failures reported, decided, recorded and scheduled, against the writes that this comes to. */
export const reportCase: Case = {
  name: 'report',
  about: 'failures reported in batches of 100: attempt, record and wake-up on the disk, in SQLite',
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    const store = sqlite(join(folder, 'redrive.db'));
    const queue = (name: string) => storeDelayQueue(store, { name });
    const endless = { maxAttempts: 1_000_000, base: '1h', cap: '1h' } as const;
    const service = createNotifications({
      repository: sqliteNotifications(join(folder, 'redrive.db')),
      queues: { urgent: queue('urgent'), bulk: queue('bulk') },
      deliver: async () => undefined,
      policies: { high: endless },
      consume: false,
    });
    await service.start();
    await service.createMany(ids.map((id) => ({ id, ...asked, ttlMs: 300 * 86_400_000 })));
    const db = bareDatabase(join(folder, 'bare.db'));
    let attempt = 0;
    let bareAttempt = 0;
    try {
      const result = await race(
        [
          {
            name: 'redrive',
            call: async () => {
              attempt += 1;
              const answers = await service.reportFailures(
                ids.map((notificationId) => ({
                  notificationId,
                  deviceId: 'd',
                  attemptNumber: attempt,
                })),
              );
              return answers.every(
                (answer) => 'decision' in answer && answer.decision === 'scheduled',
              );
            },
            expected: true,
            opsPerCall: REPORTS,
            waits: true,
          },
          {
            name: 'bare',
            call: () => {
              bareAttempt += 1;
              return db.write(bareAttempt);
            },
            expected: true,
            opsPerCall: REPORTS,
            waits: true,
          },
        ],
        effort,
      );
      const share = result.peers['bare']! / result.redrive;
      return {
        ...result,
        verdicts: [
          {
            target: `at least ${TARGET * 100} % of the bare writes`,
            measured: `${Math.round(share * 100)} %`,
            met: share >= TARGET,
          },
        ],
        notes: ['bare: the same rows in three commits per batch, without reading or deciding'],
      };
    } finally {
      await service.stop();
      await store.close();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const asked = {
  recipient: { userId: 'u' },
  priority: 'high',
  notification: { title: 'Your taxi is here', body: 'It waits at the door.' },
  source: 'bench',
} as const;

function bareDatabase(file: string) {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  db.exec(
    `CREATE TABLE attempts (id TEXT, device TEXT, attempt INTEGER, body TEXT, PRIMARY KEY (id, device, attempt));
     CREATE TABLE records (id TEXT PRIMARY KEY, version INTEGER, wake_at INTEGER, body TEXT);
     CREATE INDEX records_wake ON records (wake_at);
     CREATE TABLE entries (id TEXT PRIMARY KEY, due_at INTEGER, body BLOB);
     CREATE INDEX entries_due ON entries (due_at);`,
  );
  const body = JSON.stringify({
    ...asked,
    deliveries: { d: { state: 'AwaitingRetry', attempt: 1 } },
  });
  const insert = db.prepare('INSERT INTO records VALUES (?, 1, 0, ?)');
  for (const id of ids) insert.run(id, body);
  const addAttempt = db.prepare(
    "INSERT INTO attempts VALUES (?, 'd', ?, ?) ON CONFLICT DO NOTHING",
  );
  const write = db.prepare(
    'UPDATE records SET version = version + 1, wake_at = ?, body = ? WHERE id = ?',
  );
  const schedule = db.prepare('INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT DO NOTHING');
  const commit = (work: () => void) => {
    db.exec('BEGIN IMMEDIATE');
    work();
    db.exec('COMMIT');
  };
  return {
    write: (attempt: number): boolean => {
      commit(() => ids.forEach((id) => addAttempt.run(id, attempt, body)));
      commit(() => ids.forEach((id) => write.run(Date.now(), body, id)));
      commit(() =>
        ids.forEach((id) => schedule.run(`${id}:d:${attempt}`, Date.now(), Buffer.from(id))),
      );
      return true;
    },
    close: () => db.close(),
  };
}
