import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { actOn, type ItemChange, revived } from '../../item-moves.ts';
import {
  type ActResult,
  type Frozen,
  type InboxItem,
  type ItemAction,
  type ItemFilter,
  type JobHold,
  jobKey,
} from '../../ports/inbox.ts';
import type { Task } from '../../task.ts';
import type { Changer } from './change.ts';
import { prepareRows, type Row } from './connection.ts';
import type { InboxTable } from './inbox.ts';
import type { ItemList } from './item-list.ts';
import type { JobTable } from './jobs.ts';
import type { Aftermath } from './lines.ts';
import type { StateTable } from './state.ts';
import type { TaskTable } from './tasks.ts';

interface Tables {
  tasks: TaskTable;
  changer: Changer;
  inbox: InboxTable;
  itemList: ItemList;
  jobs: JobTable;
  state: StateTable;
}

/** What operators do to items, one by one or as members of a bulk job. Always called in a transaction. */
export class Actions {
  readonly #tables: Tables;
  readonly #plain: StatementSync;
  readonly #again: StatementSync;
  readonly #cancel: StatementSync;
  readonly #close: StatementSync;

  constructor(db: DatabaseSync, tables: Tables) {
    this.#tables = tables;
    this.#plain = prepareRows(
      db,
      `SELECT task_id FROM redrive_inbox WHERE id = ? AND state = 'open' AND edit IS NULL AND task_id IS NOT NULL`,
    );
    // The same as the pure move, without reading the payload into this program and writing it back.
    this.#again = prepareRows(
      db,
      `UPDATE retry_queue SET status = 'pending', generation = generation + 1, attempt = 0, retry_count = 0,
         uncounted = 0, delay_ms = 0, claims = 0, arrived = 0, cancelling = 0, blocked = ordering_key IS NOT NULL,
         lease = NULL, verdict = NULL, finished_at = NULL, first_at = NULL, job = ?3, trial = ?4,
         next_retry_at = ?2, visible_at = ?2, expires_at = iif(expires_at > ?2, expires_at, NULL)
       WHERE id = ?1 AND status = 'failed'
       RETURNING lane, ordering_key`,
    );
    this.#cancel = prepareRows(
      db,
      `UPDATE retry_queue SET status = 'cancelled', finished_at = ?2, job = NULL, trial = 0
       WHERE id = ?1 AND status = 'failed'
       RETURNING lane, ordering_key`,
    );
    this.#close = db.prepare(
      'UPDATE redrive_inbox SET state = ?2, closed_at = ?3, closed_by = ?4 WHERE id = ?1',
    );
  }

  act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]> | undefined,
    nowMs: number,
    after: Aftermath,
  ): ActResult[] | undefined {
    const { jobs, state } = this.#tables;
    if (under && !state.has(jobKey(under.job), under.version)) return undefined;
    const results = ids.map(
      (id) => this.#actShort(id, action, nowMs, after) ?? this.#actOnOne(id, action, nowMs, after),
    );
    if (under) {
      for (const [i, id] of ids.entries()) jobs.mark(under.job, id, results[i]!);
      state.write(jobKey(under.job), under.next(results), under.version);
    }
    return results;
  }

  freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Frozen | undefined {
    const { itemList, jobs, state } = this.#tables;
    if (!state.has(jobKey(under.job), under.version)) return undefined;
    const { ids, next } = itemList.page({ ...filter, ...page, state: 'open' });
    for (const id of ids) jobs.add(under.job, id);
    const frozen = { added: ids.length, ...(next === undefined ? {} : { next }) };
    state.write(jobKey(under.job), under.next(frozen), under.version);
    return frozen;
  }

  forgetJob(job: number, limit: number): boolean {
    const { jobs, state } = this.#tables;
    if (!jobs.forget(job, limit)) return false;
    state.delete(jobKey(job));
    return true;
  }

  /** What bulk jobs do a hundred thousand times. Undefined: it takes more to see what becomes of it. */
  #actShort(
    id: number,
    action: ItemAction,
    nowMs: number,
    after: Aftermath,
  ): ActResult | undefined {
    const state = stateAfter(action);
    if (!state) return undefined;
    const item = this.#plain.get(id) as unknown as Row | undefined;
    if (!item) return undefined;
    const taskId = item[0] as number;
    const row = (action.type === 'replay'
      ? this.#again.get(taskId, nowMs, action.job ?? null, Number(action.trial ?? false))
      : this.#cancel.get(taskId, nowMs)) as unknown as Row | undefined;
    if (!row) return undefined;
    const [lane, key] = row as [string, string | null];
    this.#close.run(id, state, nowMs, ('by' in action ? action.by : undefined) ?? null);
    if (key !== null) after.touchLine({ lane, key });
    else if (action.type === 'replay') after.wake.add(lane, nowMs);
    return 'done';
  }

  #actOnOne(id: number, action: ItemAction, nowMs: number, after: Aftermath): ActResult {
    const { tasks, changer, inbox } = this.#tables;
    const before = inbox.item(id);
    const row = before?.taskId === undefined ? undefined : tasks.find({ id: before.taskId });
    const change = actOn(action, before, row, nowMs);
    if (before && this.#isOpenTwice(before, change)) return 'gone';
    const { item, task, added, isMoved } = change;
    const known = added && tasks.find(added);
    if (known && (known.status !== 'cancelled' || isMoved)) return 'conflict';
    const addedId = added && !known ? changer.insert(added, nowMs, after) : undefined;
    if (known) this.#revive(known, revived(known, added, nowMs), after);
    after.touch(row);
    if (task) {
      changer.keep(row!, task);
      changer.update(task, after);
    }
    if (item) inbox.write(isMoved && addedId !== undefined ? { ...item, taskId: addedId } : item);
    if (isMoved && addedId !== undefined) inbox.moveAttempts(before!.taskId!, addedId);
    return change.result;
  }

  #revive(row: Task, again: Task, after: Aftermath): void {
    const { changer } = this.#tables;
    after.touch(row);
    changer.keep(row, again);
    changer.update(again, after);
  }

  /** A message without a task came again while its item was closed, and has another one now. */
  #isOpenTwice(before: InboxItem, { item }: ItemChange): boolean {
    if (item?.state !== 'open' || item.taskId !== undefined || before.state === 'open')
      return false;
    return this.#tables.inbox.hasOpenRaw(item.messageId);
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
