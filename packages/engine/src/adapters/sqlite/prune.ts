import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { PruneRequest } from '../../ports/schedule.ts';
import { prepareRows, type Row } from './connection.ts';

/** One open item belongs to every failed task: none of them may go. */
const statuses = ['done', 'retried', 'cancelled'] as const;

/** Deletes what is over, and its attempts. */
export class Pruner {
  readonly #finished: StatementSync;
  readonly #deleteTask: StatementSync;
  readonly #deleteAttempts: StatementSync;

  constructor(db: DatabaseSync) {
    this.#finished = prepareRows(
      db,
      `SELECT id FROM retry_queue INDEXED BY retry_queue_finished
       WHERE status = ? AND finished_at <= ? ORDER BY finished_at LIMIT ?`,
    );
    this.#deleteTask = db.prepare('DELETE FROM retry_queue WHERE id = ?');
    this.#deleteAttempts = db.prepare('DELETE FROM redrive_attempts WHERE task_id = ?');
  }

  hasNone(olderThanMs: PruneRequest['olderThanMs'], nowMs: number): boolean {
    return this.#ids({ olderThanMs, limit: 1 }, nowMs).length === 0;
  }

  prune(request: PruneRequest, nowMs: number): number {
    const ids = this.#ids(request, nowMs);
    for (const id of ids) {
      this.#deleteAttempts.run(id);
      this.#deleteTask.run(id);
    }
    return ids.length;
  }

  #ids({ olderThanMs, limit }: PruneRequest, nowMs: number): number[] {
    const ids: number[] = [];
    for (const status of statuses) {
      const endMs = nowMs - olderThanMs[status];
      const rows = this.#finished.all(status, endMs, limit - ids.length) as unknown as Row[];
      for (const [id] of rows) ids.push(id as number);
    }
    return ids;
  }
}
