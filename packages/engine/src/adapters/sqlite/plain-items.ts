import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { InboxItem, ItemAction, Loan } from '../../ports/inbox.ts';
import type { Task } from '../../task.ts';
import { prepareRows, type Row } from './connection.ts';
import { listed, type ItemStates } from './item-states.ts';
import type { LineTable } from './line-table.ts';
import type { Aftermath } from './lines.ts';
import { taskColumns, taskOf } from './rows.ts';

/**
 * What bulk jobs do a hundred thousand times: items that are open, with a task that failed and nothing that an operator
 * has changed. The same as the pure move, without reading payloads into this program and writing them back.
 */
export class PlainItems {
  readonly #lines: LineTable;
  readonly #itemStates: ItemStates;
  readonly #find: StatementSync;
  readonly #again: StatementSync;
  readonly #lend: StatementSync;
  readonly #cancel: StatementSync;

  constructor(db: DatabaseSync, lines: LineTable, itemStates: ItemStates) {
    this.#lines = lines;
    this.#itemStates = itemStates;
    this.#find = prepareRows(
      db,
      `SELECT item.id, task.id, task.lane, task.ordering_key, length(task.original_payload), asked.key
       FROM json_each(?1) asked
         CROSS JOIN redrive_open item ON item.id = asked.value
         CROSS JOIN retry_queue task ON task.id = item.task_id
       WHERE item.edited = 0 AND task.status = 'failed'`,
    );
    this.#again = db.prepare(againText(`claims = 0, lease = NULL, visible_at = ?2`));
    this.#lend = prepareRows(
      db,
      `${againText(`claims = 1, lease = ?5, visible_at = ?6`)} RETURNING ${taskColumns}`,
    );
    this.#cancel = db.prepare(
      `UPDATE retry_queue SET status = 'cancelled', finished_at = ?2, job = NULL, trial = 0 WHERE id ${listed}`,
    );
  }

  /** Those that it could be done to, and what was leased of them. The others take more to see what becomes of them. */
  act(
    ids: readonly number[],
    action: ItemAction,
    nowMs: number,
    after: Aftermath,
    loan?: Loan,
  ): { done: Set<number>; leased: Task[] } {
    const state = stateAfter(action);
    if (!state) return { done: new Set(), leased: [] };
    const found = this.#look(ids, action, after, loan);
    const { done, tasks } = found;
    if (done.size === 0) return { done, leased: [] };
    let leased: Task[] = [];
    if (action.type === 'replay') leased = this.#replay(found, action, nowMs, after, loan);
    else this.#cancel.run(JSON.stringify(tasks), nowMs);
    this.#itemStates.close([...done], state, nowMs, 'by' in action ? action.by : undefined);
    return { done, leased };
  }

  #look(ids: readonly number[], { type }: ItemAction, after: Aftermath, loan?: Loan): Found {
    const found: Found = { done: new Set(), tasks: [], lent: [], lanes: new Set() };
    const { done, tasks, lent, lanes } = found;
    const { limit = 0, maxBytesEach = 0 } = (type === 'replay' && loan) || {};
    const served = new Set(loan?.lanes);
    for (const row of this.#find.all(JSON.stringify(ids)) as unknown as Row[]) {
      const [id, taskId, lane, key, bytes, index] = row as FoundRow;
      // Asked for twice.
      if (done.has(id)) continue;
      done.add(id);
      if (key === null && index < limit && bytes <= maxBytesEach && served.has(lane)) {
        lent.push(taskId);
        continue;
      }
      tasks.push(taskId);
      if (key === null) {
        lanes.add(lane);
        continue;
      }
      const line = { lane, key };
      after.touchLine(line);
      // One that had let the others pass stands in its line again.
      if (type === 'replay') this.#lines.numberOf(line);
    }
    return found;
  }

  #replay(
    { tasks, lent, lanes }: Found,
    { job, trial }: Extract<ItemAction, { type: 'replay' }>,
    nowMs: number,
    after: Aftermath,
    loan?: Loan,
  ): Task[] {
    const mark = [nowMs, job ?? null, Number(trial ?? false)] as const;
    if (tasks.length > 0) this.#again.run(JSON.stringify(tasks), ...mark);
    for (const lane of lanes) after.wake.add(lane, nowMs);
    if (!loan || lent.length === 0) return [];
    const endMs = nowMs + loan.leaseMs;
    const rows = this.#lend.all(JSON.stringify(lent), ...mark, loan.lease, endMs);
    return (rows as unknown as Row[]).map(taskOf);
  }
}

/** Items, and their tasks: those that are leased, and the others with the lanes where they wait for nobody. */
interface Found {
  done: Set<number>;
  tasks: number[];
  lent: number[];
  lanes: Set<string>;
}

/** Item and task, its lane, its key, how large it is, and where in what was asked for. */
type FoundRow = [number, number, string, string | null, number, number];

/** What `inNewGeneration` of the moves writes, with who may have it, and when. */
function againText(lease: string): string {
  return `UPDATE retry_queue SET status = 'pending', generation = generation + 1, attempt = 0, retry_count = 0,
      uncounted = 0, delay_ms = 0, arrived = 0, cancelling = 0, blocked = ordering_key IS NOT NULL,
      verdict = NULL, finished_at = NULL, first_at = NULL, job = ?3, trial = ?4,
      next_retry_at = ?2, expires_at = iif(expires_at > ?2, expires_at, NULL), ${lease},
      line = CASE WHEN ordering_key IS NOT NULL THEN (
        SELECT line.id FROM redrive_lines line
        WHERE line.lane = retry_queue.lane AND line.ordering_key = retry_queue.ordering_key
      ) END
    WHERE id ${listed}`;
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
