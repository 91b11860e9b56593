import { type Acted, type ActResult, type JobHold, jobKey, type Loan } from '../../ports/inbox.ts';
import type { Task } from '../../task.ts';
import { type BulkAction, stepText } from './act-text.ts';
import { Params } from './batch.ts';
import type { Database } from './database.ts';
import { sqlState } from './faults.ts';
import type { Names } from './names.ts';
import { claimedTask, type Row, timeOf } from './rows.ts';
import { Wake } from './wake.ts';

/** What was done, and where something is due by it. */
export type WakingActed = Acted & { wake: Wake };

const DIVISION_BY_ZERO = '22012';

/** What bulk jobs do a hundred thousand times, a whole step by one statement. */
export class PlainActor {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  /** Undefined: it is not so simple, or the document has another version; nothing was done. */
  async act(
    ids: readonly number[],
    action: BulkAction,
    under: JobHold<ActResult[]>,
    loan: Loan | undefined,
  ): Promise<WakingActed | undefined> {
    if (ids.length === 0 || new Set(ids).size < ids.length) return undefined;
    const results = ids.map((): ActResult => 'done');
    const { job, version } = under;
    const step = { key: jobKey(job), version, value: JSON.stringify(under.next(results)) };
    const { lockTimeoutMs } = this.#database.limits;
    const lent = action.type === 'replay' ? loan : undefined;
    const params = new Params();
    const text = stepText(this.#names, ids, action, { step, loan: lent, lockTimeoutMs }, params);
    try {
      const rows = await this.#database.query(text, params.values);
      return rows.length === 0 ? undefined : { results, ...answerOf(rows, action, lent) };
    } catch (error) {
      if (sqlState(error) === DIVISION_BY_ZERO) return undefined;
      throw error;
    }
  }
}

function answerOf(
  rows: readonly Row[],
  action: BulkAction,
  loan: Loan | undefined,
): Omit<WakingActed, 'results'> {
  const wake = new Wake();
  const nowMs = timeOf(rows[0]![2]);
  const tasks: Task[] = [];
  for (const [, lane, , lease, ...row] of rows) {
    if (loan && lease !== null) tasks.push(claimedTask(row, loan.lease, nowMs + loan.leaseMs));
    else if (action.type === 'replay') wake.add(lane as string, 0);
  }
  return { wake, ...(tasks.length > 0 ? { leased: { tasks, nowMs } } : {}) };
}
