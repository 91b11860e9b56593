/** Sticky sessions in a SQLite file of their own, which the processes of one machine share. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StickySession } from 'redrive';
import { EngineError } from '../../errors.ts';
import {
  PRUNE_AT_ONCE,
  PRUNE_EVERY_MS,
  sessionId,
  type SharedStickyOptions,
  type SharedStickyStore,
} from '../../ports/sticky.ts';
import { faultOf } from './faults.ts';
import { assertLocal } from './locality.ts';
import { nodeSqlite } from './node-sqlite.ts';
import { readOptions } from './options.ts';
import { checkNames } from 'redrive/internal';

/** How long a statement may wait for another process with the event loop standing still. */
const BUSY_TIMEOUT_MS = 20;

/**
 * A file of its own beside the store's: sessions are lost without harm, so their commits do not wait for the disk. The
 * file is opened with the first use.
 */
export function sqliteSticky(
  file: string | URL,
  options: SharedStickyOptions = {},
): SharedStickyStore {
  checkNames('The options of sqliteSticky', options, ['now']);
  const { now = Date.now } = options;
  const { path, name } = readOptions(file, {}).place;
  let opened: Opened | undefined;
  let isClosed = false;
  let prunedAt = -Infinity;

  const use = <T>(work: (statements: Opened) => T): T => {
    if (isClosed) throw new EngineError('STORE_UNAVAILABLE', `${path} was closed.`);
    try {
      opened ??= open(path, name);
      return work(opened);
    } catch (error) {
      throw faultOf(error, path);
    }
  };

  return {
    get: (key) =>
      use(({ select }) => {
        const row = select.get(sessionId(key), now()) as StickySession | undefined;
        return row && { provider: row.provider, expires_at_ms: row.expires_at_ms };
      }),
    set(key, { provider, expires_at_ms: until }) {
      use(({ upsert, prune }) => {
        upsert.run(sessionId(key), provider, Math.floor(until));
        if (now() - prunedAt < PRUNE_EVERY_MS) return;
        prunedAt = now();
        prune.run(now());
      });
    },
    delete(key) {
      use(({ remove }) => remove.run(sessionId(key)));
    },
    async close() {
      isClosed = true;
      opened?.db.close();
      opened = undefined;
    },
  };
}

interface Opened {
  db: DatabaseSync;
  select: StatementSync;
  upsert: StatementSync;
  remove: StatementSync;
  prune: StatementSync;
}

function open(path: string, name: string | URL): Opened {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true });
  assertLocal(folder);
  const db = new (nodeSqlite().DatabaseSync)(name);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    db.exec(`CREATE TABLE IF NOT EXISTS redrive_sticky (
      id TEXT PRIMARY KEY,
      provider TEXT NOT NULL,
      expires_at_ms INTEGER NOT NULL
    ) WITHOUT ROWID`);
    db.exec('CREATE INDEX IF NOT EXISTS redrive_sticky_expiry ON redrive_sticky (expires_at_ms)');
    return {
      db,
      select: db.prepare(
        'SELECT provider, expires_at_ms FROM redrive_sticky WHERE id = ? AND expires_at_ms > ?',
      ),
      upsert: db.prepare(
        `INSERT INTO redrive_sticky (id, provider, expires_at_ms) VALUES (?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET provider = excluded.provider, expires_at_ms = excluded.expires_at_ms`,
      ),
      remove: db.prepare('DELETE FROM redrive_sticky WHERE id = ?'),
      prune: db.prepare(
        `DELETE FROM redrive_sticky WHERE id IN
         (SELECT id FROM redrive_sticky WHERE expires_at_ms <= ? LIMIT ${PRUNE_AT_ONCE})`,
      ),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}
