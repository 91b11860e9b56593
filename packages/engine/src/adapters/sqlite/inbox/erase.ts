import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import { erasedAddress, erasedQueueName } from '../../../model/address.ts';
import type { Task } from '../../../model/task.ts';
import type { Changer } from '../schedule/change.ts';
import { prepareRows, type Row } from '../connection.ts';
import type { GroupTable } from './groups.ts';
import type { InboxTable } from './inbox.ts';
import type { ItemStates } from './item-states.ts';
import type { Aftermath } from '../schedule/lines.ts';
import type { OutboxTable } from './outbox.ts';
import { destinationOf } from '../rows.ts';
import type { TaskTable } from '../schedule/tasks.ts';
import { bytesOfUuidOrNone } from '../uuid.ts';

interface Tables {
  tasks: TaskTable;
  changer: Changer;
  inbox: InboxTable;
  itemStates: ItemStates;
  groups: GroupTable;
  outbox: OutboxTable;
}

/** Takes everything personal out of a message. Always called in a transaction. */
export class Eraser {
  readonly #tables: Tables;
  readonly #items: StatementSync;
  readonly #eraseItem: StatementSync;
  readonly #moveTask: StatementSync;

  constructor(db: DatabaseSync, tables: Tables) {
    this.#tables = tables;
    this.#items = prepareRows(
      db,
      'SELECT id, fingerprint, failure, task_id, kind, address FROM redrive_inbox WHERE message_id = ?',
    );
    this.#eraseItem = db.prepare(
      `UPDATE redrive_inbox SET failure = ?2, context = NULL, payload = zeroblob(0), ordering_key = NULL,
         edit = NULL, edit_payload = NULL, address = coalesce(?3, address)
       WHERE id = ?1`,
    );
    this.#moveTask = db.prepare(
      'UPDATE retry_queue SET original_queue = ?2, address = ?3 WHERE id = ?1',
    );
  }

  erase(
    messageId: string,
    by: string | undefined,
    nowMs: number,
    after: Aftermath,
  ): 'erased' | 'busy' | 'unknown' {
    const bytes = bytesOfUuidOrNone(messageId);
    if (!bytes) return 'unknown';
    const { tasks, changer, inbox, itemStates, groups, outbox } = this.#tables;
    const rows = tasks.ofMessage(bytes);
    if (rows.some(({ status }) => status === 'pending')) return 'busy';
    const items = this.#items.all(bytes) as unknown as Row[];
    for (const row of items) {
      const [id, fingerprint, json, taskId] = row as [number, string, string, number?];
      // Its row may be deleted already.
      if (taskId) inbox.forget(taskId);
      const failure = erased((JSON.parse(json) as Failure).class);
      const address = erasedAddress(destinationOf(row[4], row[5]));
      this.#eraseItem.run(id, JSON.stringify(failure), address ?? null);
      itemStates.close([id], 'erased', nowMs, by);
      groups.silence(fingerprint);
    }
    outbox.dropOf(messageId);
    for (const row of rows) {
      after.touch(row);
      changer.update(withoutWords(row, nowMs), after);
      const address = erasedAddress(row.destination);
      if (address !== undefined) {
        this.#moveTask.run(row.id, erasedQueueName(address, row.id), address);
      }
      inbox.forget(row.id);
    }
    return items.length > 0 || rows.length > 0 ? 'erased' : 'unknown';
  }
}

function withoutWords(task: Task, nowMs: number): Task {
  const { context: _, orderingKey: _key, job, trial: _trial, ...row } = task;
  // As in `actOn`: what lay in the inbox was not cancelled on its way.
  const isOpen = row.status === 'failed';
  return {
    ...row,
    payload: new Uint8Array(),
    failure: erased(row.failure?.class ?? 'unknown'),
    // Known from now on for as long as any other that is over.
    finishedAtMs: nowMs,
    ...(job === undefined || isOpen ? {} : { job }),
    ...(isOpen ? { status: 'cancelled' } : {}),
  };
}

function erased(kind: Failure['class']): Failure {
  return { class: kind, code: 'ERASED' };
}
