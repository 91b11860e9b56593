import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '@redrive/engine/sqlite';
import { BATCH, batchesOf, type Player, timed, type Work, workOf } from '../player.ts';
import { Tally } from '../tally.ts';
import { uuidBytes } from './uuid.ts';

const LANE = 'handler:work';
const LEASE = 1;
const LEASE_MS = 30_000;

/** The limit: the bare statements on the table of Redrive itself, with the same settings of the connection. */
export class RawSqlitePlayer implements Player {
  #db: DatabaseSync | undefined;

  async open(path: string): Promise<void> {
    const store = sqlite(path);
    await store.open();
    await store.close();
    this.#db = new DatabaseSync(path);
    this.#db
      .exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16384;
      PRAGMA journal_size_limit = 67108864`);
  }

  async schedule(tasks: number): Promise<number> {
    const db = this.#opened();
    const insert = db.prepare(
      `INSERT INTO retry_queue (message_id, original_queue, kind, lane, next_retry_at, visible_at, created_at,
         original_payload)
       VALUES (?1, 'work', 'handler', '${LANE}', ?2, ?2, ?2, ?3)
       ON CONFLICT (message_id, original_queue, kind) DO NOTHING`,
    );
    const batches = batchesOf(tasks, (n) => workOf(n));
    const write = (batch: readonly Work[]) => {
      const nowMs = Date.now();
      db.exec('BEGIN IMMEDIATE');
      for (const work of batch) insert.run(uuidBytes(), nowMs, Buffer.from(JSON.stringify(work)));
      db.exec('COMMIT');
      return Promise.resolve();
    };
    return timed(batches, write, 1);
  }

  async execute(tasks: number): Promise<number> {
    const db = this.#opened();
    const tally = new Tally(tasks);
    const select = db.prepare(
      `SELECT id, original_payload FROM retry_queue INDEXED BY retry_queue_due
       WHERE status = 'pending' AND blocked = 0 AND claims = 0 AND lane = '${LANE}' AND visible_at <= ?
       ORDER BY visible_at, id LIMIT ${BATCH}`,
    );
    select.setReturnArrays(true);
    const lease = db.prepare(
      `UPDATE retry_queue SET visible_at = ?, lease = ${LEASE}, claims = claims + 1 WHERE id = ?`,
    );
    const settle = db.prepare(
      `UPDATE retry_queue SET status = 'done', lease = NULL, claims = 0, finished_at = ?
       WHERE id = ? AND lease = ${LEASE} AND status = 'pending'`,
    );
    for (;;) {
      const nowMs = Date.now();
      db.exec('BEGIN IMMEDIATE');
      const rows = select.all(nowMs) as unknown as [number, Uint8Array][];
      for (const [id] of rows) lease.run(nowMs + LEASE_MS, id);
      db.exec('COMMIT');
      if (rows.length === 0) break;
      for (const [, payload] of rows) tally.did(JSON.parse(decoder.decode(payload)) as Work);
      db.exec('BEGIN IMMEDIATE');
      for (const [id] of rows) settle.run(nowMs, id);
      db.exec('COMMIT');
    }
    await tally.all;
    return tally.elapsedMs;
  }

  close(): Promise<void> {
    this.#opened().close();
    this.#db = undefined;
    return Promise.resolve();
  }

  #opened(): DatabaseSync {
    if (!this.#db) throw new Error('not open');
    return this.#db;
  }
}

const decoder = new TextDecoder();
