import type { Change } from '../../moves.ts';
import type { TaskKey } from '../../ports/schedule.ts';
import type { NewTask, Task } from '../../task.ts';
import type { InboxTable } from './inbox.ts';
import type { OutboxTable } from './outbox.ts';
import { dueAt, type TaskTable } from './tasks.ts';
import type { Wake } from './watch.ts';

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
    wake: Wake,
  ): T {
    return this.apply(move(this.#tasks.find(key)), nowMs, wake);
  }

  apply<T>(change: Change<T>, nowMs: number, wake: Wake): T {
    const { result, task, item, occurrence, outbox, record } = change;
    if (task) {
      const id = this.#write(task, nowMs, wake);
      if (record) this.#inbox.record(id, task.generation, record, nowMs);
      if (item) this.#inbox.open(id, task, item, nowMs);
    }
    if (occurrence) this.#inbox.occurred(occurrence.taskId, occurrence.failure, nowMs);
    if (outbox) this.#outbox.add(outbox, nowMs);
    return result;
  }

  /** Its id, or undefined where its identity is known. */
  insert(task: NewTask, nowMs: number, wake: Wake): number | undefined {
    const id = this.#tasks.insert(task, nowMs);
    if (id === undefined) return undefined;
    if (task.record) this.#inbox.record(id, task.generation, task.record, nowMs);
    if (task.status === 'pending') wake.add(task.lane, dueAt(task.due, nowMs));
    return id;
  }

  #write(task: Task | NewTask, nowMs: number, wake: Wake): number {
    if (!('id' in task)) {
      const id = this.insert(task, nowMs, wake);
      // Its key found nothing, under the lock: only a move that changes the identity comes here.
      if (id === undefined)
        throw new Error(`The move of ${task.messageId} took another's identity.`);
      return id;
    }
    this.#tasks.update(task);
    if (task.status === 'pending' && task.lease === undefined) {
      wake.add(task.lane, task.visibleAtMs);
    }
    return task.id;
  }
}
