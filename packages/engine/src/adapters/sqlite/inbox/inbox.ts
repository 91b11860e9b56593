import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import type { InboxItem, NewItem, RawItem } from '../../../ports/inbox.ts';
import { MAX_ATTEMPTS } from '../../../ports/inbox.ts';
import type { AttemptRecord, NewTask, Task } from '../../../model/task.ts';
import { prepareRows, type Row } from '../connection.ts';
import { editColumns, itemOfRow, itemQuery } from './item-rows.ts';
import type { ItemStates } from './item-states.ts';
import { contextColumn } from '../rows.ts';
import { bytesOfUuid } from '../uuid.ts';

/** What never worked, and every execution that failed. Its groups follow, by triggers and by `ItemStates`. */
export class InboxTable {
  readonly #itemStates: ItemStates;
  readonly #open: StatementSync;
  readonly #append: StatementSync;
  readonly #occurred: StatementSync;
  readonly #appended: StatementSync;
  readonly #byId: StatementSync;
  readonly #openRaw: StatementSync;
  readonly #later: StatementSync;
  readonly #update: StatementSync;
  readonly #own: StatementSync;
  readonly #record: StatementSync;
  readonly #attempts: StatementSync;
  readonly #forget: StatementSync;
  readonly #keep: StatementSync;
  readonly #move: StatementSync;

  constructor(db: DatabaseSync, itemStates: ItemStates) {
    this.#itemStates = itemStates;
    const insert = `INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, reason, fingerprint,
      attempt, max_attempts, generation, first_seen, last_seen, failure, context, payload, job, ordering_key)`;
    const again = (openOne: string) =>
      `UPDATE redrive_inbox SET occurrences = occurrences + 1, last_seen = ?2 WHERE id = (${openOne})`;
    const ofTask = 'SELECT id FROM redrive_open WHERE task_id = ?1';
    const ofRaw = 'SELECT id FROM redrive_open WHERE raw_id = ?1';
    // A task has one open item, and so has a message without one.
    this.#open = db.prepare(
      `${insert} SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, NULL, NULL, ?13, ?14
       WHERE NOT EXISTS (${ofTask})`,
    );
    this.#append = db.prepare(
      `${insert} SELECT NULL, ?1, 'source', ?2, 'source:' || ?2, ?3, ?4, 0, 0, 0, ?5, ?5, ?6, ?7, ?8, NULL, NULL
       WHERE NOT EXISTS (${ofRaw})`,
    );
    this.#occurred = db.prepare(again(ofTask));
    this.#appended = db.prepare(again(ofRaw));
    this.#byId = prepareRows(db, `${itemQuery} WHERE item.id = ?`);
    this.#openRaw = prepareRows(db, ofRaw);
    this.#later = prepareRows(
      db,
      'SELECT id FROM redrive_inbox WHERE message_id = ? AND task_id = ? AND id > ? LIMIT 1',
    );
    this.#update = db.prepare(
      'UPDATE redrive_inbox SET task_id = ?2, edit = ?3, edit_payload = ?4 WHERE id = ?1',
    );
    this.#own = db.prepare(
      `UPDATE redrive_inbox SET payload = ?2, context = ?3,
         (task_edited, task_on_dead) = (SELECT edited, on_dead FROM retry_queue WHERE id = redrive_inbox.task_id)
       WHERE id = ?1 AND payload IS NULL`,
    );
    this.#record = db.prepare(
      `INSERT INTO redrive_attempts (task_id, generation, attempt, at, duration_ms, failure, answer)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#attempts = prepareRows(
      db,
      `SELECT generation, attempt, at, duration_ms, failure, answer FROM redrive_attempts
       WHERE task_id = ? ORDER BY id LIMIT ${MAX_ATTEMPTS}`,
    );
    this.#keep = db.prepare(
      `UPDATE redrive_inbox SET (context, payload, task_edited, task_on_dead) =
         (SELECT context, original_payload, edited, on_dead FROM retry_queue WHERE id = ?1)
       WHERE message_id = (SELECT message_id FROM retry_queue WHERE id = ?1) AND task_id = ?1 AND payload IS NULL`,
    );
    this.#move = db.prepare('UPDATE redrive_attempts SET task_id = ?2 WHERE task_id = ?1');
    this.#forget = db.prepare('DELETE FROM redrive_attempts WHERE task_id = ?');
  }

  /** Should a second one come, it is one more occurrence, in the group of the first. */
  open(taskId: number, task: Task | NewTask, item: NewItem, nowMs: number): void {
    const { changes } = this.#open.run(
      taskId,
      bytesOfUuid(task.messageId),
      task.destination.kind,
      task.destination.address,
      task.lane,
      item.reason,
      item.fingerprint,
      task.attempt,
      task.maxAttempts,
      task.generation,
      nowMs,
      JSON.stringify(item.failure),
      task.job ?? null,
      task.orderingKey ?? null,
    );
    if (changes === 0) this.occurred(taskId, nowMs);
  }

  append(item: RawItem, nowMs: number): void {
    const messageId = bytesOfUuid(item.messageId);
    const { changes } = this.#append.run(
      messageId,
      item.source,
      item.reason,
      item.fingerprint,
      nowMs,
      JSON.stringify(item.failure),
      contextColumn(item.context),
      item.payload,
    );
    if (changes === 0) this.#appended.run(messageId, nowMs);
  }

  occurred(taskId: number, nowMs: number): void {
    this.#occurred.run(taskId, nowMs);
  }

  item(id: number): InboxItem | undefined {
    const row = this.#byId.get(id) as unknown as Row | undefined;
    return row && itemOfRow(row);
  }

  /** Whether its message came back after it, to the same task. */
  hasLater({ id, taskId, messageId }: InboxItem): boolean {
    return this.#later.get(bytesOfUuid(messageId), taskId!, id) !== undefined;
  }

  /** A message without a task is open once. */
  hasOpenRaw(messageId: string): boolean {
    return this.#openRaw.get(bytesOfUuid(messageId)) !== undefined;
  }

  /** What an action may change of an item. One with an edit keeps what was there before: its task gets another. */
  write(item: InboxItem): void {
    const { id, taskId = null, state, closedAtMs, closedBy, edit } = item;
    this.#update.run(id, taskId, ...editColumns(edit));
    if (edit) this.#own.run(id, item.payload, contextColumn(item.context));
    if (state === 'open') this.#itemStates.open(id);
    else this.#itemStates.close([id], state, closedAtMs!, closedBy);
  }

  record(taskId: number, generation: number, record: AttemptRecord, nowMs: number): void {
    const { attempt, durationMs, failure, answer = null } = record;
    const json = JSON.stringify(failure);
    this.#record.run(taskId, generation, attempt, nowMs, durationMs, json, answer);
  }

  attempts(taskId: number): (AttemptRecord & { generation: number; atMs: number })[] {
    const rows = this.#attempts.all(taskId) as unknown as Row[];
    return rows.map(([generation, attempt, atMs, durationMs, failure, answer]) => ({
      generation: generation as number,
      attempt: attempt as number,
      atMs: atMs as number,
      durationMs: durationMs as number,
      failure: JSON.parse(failure as string) as Failure,
      ...(answer === null ? {} : { answer: answer as string }),
    }));
  }

  /** The executions of a task that goes, or that nobody may read any more. */
  forget(taskId: number): void {
    this.#forget.run(taskId);
  }

  /** The executions of a task belong to another row from now on. */
  moveAttempts(from: number, to: number): void {
    this.#move.run(from, to);
  }

  /** Its items keep what is in it now: it is deleted, or gets something else. */
  keep(taskId: number): void {
    this.#keep.run(taskId);
  }
}
