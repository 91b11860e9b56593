import type { DatabaseSync } from 'node:sqlite';
import { actOn, type ItemChange, revived } from '../../../model/item-moves.ts';
import {
  type ActResult,
  type Frozen,
  type InboxItem,
  type ItemAction,
  type ItemFilter,
  type JobHold,
  jobKey,
} from '../../../ports/inbox.ts';
import type { Task } from '../../../model/task.ts';
import type { Changer } from '../schedule/change.ts';
import type { InboxTable } from './inbox.ts';
import type { ItemList } from './item-list.ts';
import type { ItemStates } from './item-states.ts';
import type { JobTable } from './jobs.ts';
import type { LineTable } from '../schedule/line-table.ts';
import type { Aftermath } from '../schedule/lines.ts';
import { PlainItems } from './plain-items.ts';
import type { StateTable } from '../state.ts';
import type { TaskTable } from '../schedule/tasks.ts';

interface Tables {
  tasks: TaskTable;
  changer: Changer;
  inbox: InboxTable;
  itemStates: ItemStates;
  itemList: ItemList;
  jobs: JobTable;
  lines: LineTable;
  state: StateTable;
}

/** What operators do to items, one by one or as members of a bulk job. Always called in a transaction. */
export class Actions {
  readonly #tables: Tables;
  readonly #plain: PlainItems;

  constructor(db: DatabaseSync, tables: Tables) {
    this.#tables = tables;
    this.#plain = new PlainItems(db, tables.lines, tables.itemStates);
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
    const done = this.#plain.act(ids, action, nowMs, after);
    // Once: who is asked for twice is closed by then.
    const results = ids.map((id): ActResult =>
      done.delete(id) ? 'done' : this.#actOnOne(id, action, nowMs, after),
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
    jobs.add(under.job, ids);
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

  #actOnOne(id: number, action: ItemAction, nowMs: number, after: Aftermath): ActResult {
    const { tasks, changer, inbox } = this.#tables;
    const before = inbox.item(id);
    const row = before?.taskId === undefined ? undefined : tasks.find({ id: before.taskId });
    const change = actOn(action, before, row, nowMs);
    if (before && this.#isOpenTwice(before, change)) return 'gone';
    const { item, task, added, isMoved } = change;
    if (isMoved && inbox.hasLater(before!)) return 'gone';
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
