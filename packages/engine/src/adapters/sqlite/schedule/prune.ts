import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { PruneRequest } from '../../../ports/schedule.ts';
import { prepareRows, type Row } from '../connection.ts';
import type { InboxTable } from '../inbox/inbox.ts';
import { isOver } from '../schema/version-3.ts';

/** One open item belongs to every failed task: none of them may go. */
const statuses = ['done', 'retried', 'cancelled'] as const;

/** Deletes what is over: tasks with their attempts, and items that were closed long ago. */
export class Pruner {
  readonly #inbox: InboxTable;
  readonly #finished: StatementSync;
  readonly #deleteTask: StatementSync;
  readonly #closed: StatementSync;
  readonly #deleteItem: StatementSync;
  readonly #itemOf: StatementSync;

  constructor(db: DatabaseSync, inbox: InboxTable) {
    this.#inbox = inbox;
    this.#finished = prepareRows(
      db,
      `SELECT id FROM retry_queue INDEXED BY retry_queue_finished
       WHERE ${isOver} AND status = ? AND finished_at <= ? ORDER BY finished_at LIMIT ?`,
    );
    this.#deleteTask = db.prepare('DELETE FROM retry_queue WHERE id = ?');
    this.#closed = prepareRows(
      db,
      `SELECT id FROM redrive_closed INDEXED BY redrive_closed_at
       WHERE closed_at <= ? ORDER BY closed_at, id LIMIT ?`,
    );
    // By the message, which has an index; whether it is the last of a task that is gone.
    this.#itemOf = prepareRows(
      db,
      `SELECT 1 FROM redrive_inbox
       WHERE message_id = (SELECT message_id FROM retry_queue WHERE id = ?1) AND task_id = ?1 LIMIT 1`,
    );
    this.#deleteItem = prepareRows(
      db,
      `DELETE FROM redrive_inbox WHERE id = ? RETURNING task_id,
         NOT EXISTS (SELECT 1 FROM retry_queue task WHERE task.id = task_id)
         AND NOT EXISTS (SELECT 1 FROM redrive_inbox other
           WHERE other.message_id = redrive_inbox.message_id AND other.task_id = redrive_inbox.task_id
             AND other.id <> redrive_inbox.id)`,
    );
  }

  hasNone(olderThanMs: PruneRequest['olderThanMs'], nowMs: number): boolean {
    return this.#finishedIds({ olderThanMs, limit: 1 }, nowMs).length === 0;
  }

  prune(request: PruneRequest, nowMs: number): number {
    const ids = this.#finishedIds(request, nowMs);
    for (const id of ids) {
      this.#inbox.keep(id);
      // What has been in the inbox keeps its executions as long as its items.
      if (!this.#itemOf.get(id)) this.#inbox.forget(id);
      this.#deleteTask.run(id);
    }
    return ids.length;
  }

  hasNoItems(closedBeforeMs: number): boolean {
    return this.#closedIds(closedBeforeMs, 1).length === 0;
  }

  /** Their groups go with the last of their items. */
  pruneItems(closedBeforeMs: number, limit: number): number {
    const ids = this.#closedIds(closedBeforeMs, limit);
    for (const id of ids) {
      const [taskId, isLast] = this.#deleteItem.get(id) as unknown as [number | null, number];
      if (taskId !== null && isLast === 1) this.#inbox.forget(taskId);
    }
    return ids.length;
  }

  #finishedIds({ olderThanMs, limit }: PruneRequest, nowMs: number): number[] {
    const ids: number[] = [];
    for (const status of statuses) {
      const endMs = nowMs - olderThanMs[status];
      const rows = this.#finished.all(status, endMs, limit - ids.length) as unknown as Row[];
      for (const [id] of rows) ids.push(id as number);
    }
    return ids;
  }

  #closedIds(closedBeforeMs: number, limit: number): number[] {
    const rows = this.#closed.all(closedBeforeMs, limit) as unknown as Row[];
    return rows.map(([id]) => id as number);
  }
}
