import { erasedAddress } from '../../model/address.ts';
import { actOn, type ItemChange, revived } from '../../model/item-moves.ts';
import {
  type ActResult,
  type Frozen,
  type ItemAction,
  type ItemFilter,
  type JobHold,
  jobKey,
  type JobTally,
} from '../../ports/inbox.ts';
import type { Task } from '../../model/task.ts';
import type { Documents } from './documents.ts';
import type { MemoryInbox } from './inbox.ts';
import type { Members } from './members.ts';
import type { MemoryOutbox } from './outbox.ts';
import type { TaskTable } from './tasks.ts';

interface Tables {
  tasks: TaskTable;
  inbox: MemoryInbox;
  outbox: MemoryOutbox;
  documents: Documents;
  members: Members;
}

/** What operators do to items, one by one or as members of a bulk job. */
export class Actions {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** `touched` gets every row as it was and as it is, so that their lines can go on. */
  act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]> | undefined,
    nowMs: number,
    touched: (Task | undefined)[],
  ): ActResult[] | undefined {
    const { members, documents } = this.#tables;
    if (under && !documents.has(jobKey(under.job), under.version)) return undefined;
    const results = ids.map((id) => this.#actOnOne(id, action, nowMs, touched));
    if (under) {
      for (const [i, id] of ids.entries()) members.mark(under.job, id, results[i]!);
      documents.write(jobKey(under.job), under.next(results), under.version);
    }
    return results;
  }

  freeze(
    filter: ItemFilter,
    { before, limit }: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Frozen | undefined {
    const { inbox, members, documents } = this.#tables;
    if (!documents.has(jobKey(under.job), under.version)) return undefined;
    const { items, next } = inbox.list({ ...filter, state: 'open', before, limit });
    for (const { id } of items) members.add(under.job, id);
    const frozen = { added: items.length, ...(next === undefined ? {} : { next }) };
    documents.write(jobKey(under.job), under.next(frozen), under.version);
    return frozen;
  }

  tally(job: number, most: number): JobTally {
    const { tasks, inbox } = this.#tables;
    const { pending, retried, cancelled } = tasks.ofJob(job);
    const takenAtMs = Math.max(...retried.map(({ finishedAtMs = 0 }) => finishedAtMs));
    return {
      underway: Math.min(pending.length, most),
      blocked: Math.min(pending.filter(({ blocked }) => blocked).length, most),
      taken: Math.min(retried.length, most),
      ...(retried.length > 0 ? { takenAtMs } : {}),
      cancelled: cancelled.length,
      ...inbox.back(job),
    };
  }

  /** `touched` as in `act`. */
  erase(
    messageId: string,
    by: string | undefined,
    nowMs: number,
    touched: (Task | undefined)[],
  ): 'erased' | 'busy' | 'unknown' {
    const { tasks, inbox, outbox } = this.#tables;
    const rows = tasks.ofMessage(messageId);
    if (rows.some(({ status }) => status === 'pending')) return 'busy';
    const isKnown = inbox.erase(messageId, by, nowMs);
    outbox.dropOf(messageId);
    for (const { context: _, orderingKey: _key, job, trial: _trial, ...row } of rows) {
      const failure = { class: row.failure?.class ?? 'unknown', code: 'ERASED' } as const;
      // As in `actOn`: what lay in the inbox was not cancelled on its way.
      const isOpen = row.status === 'failed';
      const after = {
        ...row,
        payload: new Uint8Array(),
        failure,
        // Known from now on for as long as any other that is over.
        finishedAtMs: nowMs,
        ...(job === undefined || isOpen ? {} : { job }),
        ...(isOpen ? { status: 'cancelled' as const } : {}),
      };
      const address = erasedAddress(row.destination);
      if (address !== undefined) {
        tasks.forgetIdentity(row);
        after.destination = { ...row.destination, address };
      }
      touched.push(tasks.get(row.id), tasks.write(after));
      inbox.forget(row.id);
    }
    return isKnown || rows.length > 0 ? 'erased' : 'unknown';
  }

  forgetJob(job: number, limit: number): boolean {
    const { members, documents } = this.#tables;
    if (!members.forget(job, limit)) return false;
    documents.delete(jobKey(job));
    return true;
  }

  #actOnOne(
    id: number,
    action: ItemAction,
    nowMs: number,
    touched: (Task | undefined)[],
  ): ActResult {
    const { tasks, inbox } = this.#tables;
    const before = inbox.get(id);
    const row = before?.taskId === undefined ? undefined : tasks.get(before.taskId);
    const change = this.#withoutConflict(actOn(action, before, row, nowMs));
    const { item, task, added, isMoved } = change;
    if (row && task && hasOther(row, task)) inbox.keep(row);
    const after = task && tasks.write(task);
    const known = added && tasks.find(added);
    if (known) inbox.keep(known);
    const other =
      added && (known ? tasks.write(revived(known, added, nowMs)) : tasks.addNew(added, nowMs));
    if (item) inbox.write(isMoved && other ? { ...item, taskId: other.id } : item);
    if (isMoved && other) inbox.moveAttempts(before!.taskId!, other.id);
    touched.push(row, after, known, other);
    return change.result;
  }

  /** What the pure move cannot see: who else is there. */
  #withoutConflict(change: ItemChange): ItemChange {
    const { tasks, inbox } = this.#tables;
    const { item, added } = change;
    if (item?.state === 'open' && item.taskId === undefined) {
      const isReopened = inbox.get(item.id)?.state !== 'open';
      if (isReopened && inbox.hasOpenRaw(item.messageId)) return { result: 'gone' };
    }
    if (change.isMoved && item && inbox.hasLater(item)) return { result: 'gone' };
    const known = added && tasks.find(added);
    if (!known || (known.status === 'cancelled' && !change.isMoved)) return change;
    return { result: 'conflict' };
  }
}

/** Items that belong to a task show what is in it, until it gets something else. */
export function hasOther(before: Task, after: Task): boolean {
  return before.payload !== after.payload || before.context !== after.context;
}
