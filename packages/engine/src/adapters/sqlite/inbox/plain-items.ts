import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { InboxItem, ItemAction } from '../../../ports/inbox.ts';
import { prepareRows, type Row } from '../connection.ts';
import { listed, type ItemStates } from './item-states.ts';
import type { LineTable } from '../schedule/line-table.ts';
import type { Aftermath } from '../schedule/lines.ts';

/**
 * What bulk jobs do a hundred thousand times: items that are open, with a task that failed and nothing that an operator
 * has changed. The same as the pure move, without reading payloads into this program and writing them back.
 */
export class PlainItems {
  readonly #lines: LineTable;
  readonly #itemStates: ItemStates;
  readonly #find: StatementSync;
  readonly #again: StatementSync;
  readonly #cancel: StatementSync;

  constructor(db: DatabaseSync, lines: LineTable, itemStates: ItemStates) {
    this.#lines = lines;
    this.#itemStates = itemStates;
    this.#find = prepareRows(
      db,
      `SELECT item.id, task.id, task.lane, task.ordering_key
       FROM json_each(?1) asked
         CROSS JOIN redrive_open item ON item.id = asked.value
         CROSS JOIN retry_queue task ON task.id = item.task_id
       WHERE item.edited = 0 AND task.status = 'failed'`,
    );
    this.#again = db.prepare(
      `UPDATE retry_queue SET status = 'pending', generation = generation + 1, attempt = 0, retry_count = 0,
         uncounted = 0, delay_ms = 0, claims = 0, arrived = 0, cancelling = 0, blocked = ordering_key IS NOT NULL,
         lease = NULL, verdict = NULL, finished_at = NULL, first_at = NULL, job = ?3, trial = ?4,
         next_retry_at = ?2, visible_at = ?2, expires_at = iif(expires_at > ?2, expires_at, NULL),
         line = CASE WHEN ordering_key IS NOT NULL THEN (
           SELECT line.id FROM redrive_lines line
           WHERE line.lane = retry_queue.lane AND line.ordering_key = retry_queue.ordering_key
         ) END
       WHERE id ${listed}`,
    );
    this.#cancel = db.prepare(
      `UPDATE retry_queue SET status = 'cancelled', finished_at = ?2, job = NULL, trial = 0 WHERE id ${listed}`,
    );
  }

  /** Those that it could be done to. The others take more to see what becomes of them. */
  act(ids: readonly number[], action: ItemAction, nowMs: number, after: Aftermath): Set<number> {
    const done = new Set<number>();
    const state = stateAfter(action);
    if (!state) return done;
    const lanes = new Set<string>();
    const tasks: number[] = [];
    for (const row of this.#find.all(JSON.stringify(ids)) as unknown as Row[]) {
      const [id, taskId, lane, key] = row as [number, number, string, string | null];
      // Asked for twice.
      if (done.has(id)) continue;
      done.add(id);
      tasks.push(taskId);
      if (key === null) {
        lanes.add(lane);
        continue;
      }
      const line = { lane, key };
      after.touchLine(line);
      // One that had let the others pass stands in its line again.
      if (action.type === 'replay') this.#lines.numberOf(line);
    }
    if (tasks.length === 0) return done;
    const listedTasks = JSON.stringify(tasks);
    if (action.type === 'replay') {
      this.#again.run(listedTasks, nowMs, action.job ?? null, Number(action.trial ?? false));
      for (const lane of lanes) after.wake.add(lane, nowMs);
    } else {
      this.#cancel.run(listedTasks, nowMs);
    }
    this.#itemStates.close([...done], state, nowMs, 'by' in action ? action.by : undefined);
    return done;
  }
}

/** What a plain item becomes; undefined: it is no such action. */
function stateAfter(action: ItemAction): InboxItem['state'] | undefined {
  switch (action.type) {
    case 'replay':
      return action.edit ? undefined : 'replayed';
    case 'resolve':
      return 'resolved';
    case 'discard':
      return 'discarded';
    case 'edit':
    case 'restore':
    case 'pass':
      return undefined;
  }
}
