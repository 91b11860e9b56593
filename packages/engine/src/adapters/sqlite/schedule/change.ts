import type { Change } from '../../../model/moves.ts';
import type { TaskKey } from '../../../ports/schedule.ts';
import type { NewTask, Task } from '../../../model/task.ts';
import type { InboxTable } from '../inbox/inbox.ts';
import type { Aftermath } from './lines.ts';
import type { OutboxTable } from '../inbox/outbox.ts';
import { dueAt, type TaskTable } from './tasks.ts';

/** Writes what the pure moves say. Always called in a transaction that holds the lock. */
export class Changer {
  readonly #tasks: TaskTable;
  readonly #inbox: InboxTable;
  readonly #outbox: OutboxTable;

  constructor(tasks: TaskTable, inbox: InboxTable, outbox: OutboxTable) {
    this.#tasks = tasks;
    this.#inbox = inbox;
    this.#outbox = outbox;
  }

  change<T>(
    key: TaskKey,
    move: (task: Task | undefined) => Change<T>,
    nowMs: number,
    after: Aftermath,
  ): T {
    const task = this.#tasks.find(key);
    after.touch(task);
    const change = move(task);
    if (task && change.task) this.keep(task, change.task);
    return this.apply(change, nowMs, after);
  }

  /** The line of the row as it was is touched already. */
  apply<T>(change: Change<T>, nowMs: number, after: Aftermath): T {
    const { result, task, item, occurrence, outbox, record } = change;
    const id = task && this.#write(task, nowMs, after);
    if (id !== undefined) {
      if (record) this.#inbox.record(id, task!.generation, record, nowMs);
      if (item) this.#inbox.open(id, task!, item, nowMs);
    }
    if (occurrence) this.#inbox.occurred(occurrence.taskId, nowMs);
    if (outbox) this.#outbox.add(outbox, task?.messageId, nowMs);
    return result;
  }

  /** Its id, or undefined where its identity is known. */
  insert(task: NewTask, nowMs: number, after: Aftermath): number | undefined {
    const id = this.#tasks.insert(task, nowMs);
    if (id === undefined) {
      // A line may have got a number for it: where nobody stands there, it is dropped again.
      after.touch(task);
      return undefined;
    }
    if (task.record) this.#inbox.record(id, task.generation, task.record, nowMs);
    after.join(id, task);
    if (task.status === 'pending' && !task.blocked) {
      after.wake.add(task.lane, dueAt(task.due, nowMs));
    }
    return id;
  }

  /** Where a task gets something else, items of it that have nothing of their own keep what was there. */
  keep(before: Task, after: Task | NewTask): void {
    const isOther = before.payload !== after.payload || before.context !== after.context;
    if (isOther && mayHaveItems(before)) this.#inbox.keep(before.id);
  }

  update(task: Task, after: Aftermath): void {
    this.#tasks.update(task);
    after.touch(task);
    after.waits(task);
  }

  #write(task: Task | NewTask, nowMs: number, after: Aftermath): number {
    if ('id' in task) {
      this.update(task, after);
      return task.id;
    }
    const id = this.insert(task, nowMs, after);
    // Its key found nothing, under the lock: only a move that changes the identity comes here.
    if (id === undefined) throw new Error(`The move of ${task.messageId} took another's identity.`);
    return id;
  }
}

/** It has been in the inbox, or is there. */
function mayHaveItems({ generation, status }: Task): boolean {
  return generation > 0 || status === 'failed' || status === 'cancelled';
}
