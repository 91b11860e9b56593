import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { queueNameOf } from '../../../model/address.ts';
import type { TaskKey } from '../../../ports/schedule.ts';
import type { Due, NewTask, Task } from '../../../model/task.ts';
import { holdsPlace, lineOf } from '../../../model/line.ts';
import { prepareRows, type Row } from '../connection.ts';
import type { LineTable } from './line-table.ts';
import { contextColumn, failureColumns, retryCountOf, taskColumns, taskOf } from '../rows.ts';
import { bytesOfUuid, bytesOfUuidOrNone } from '../uuid.ts';

/** The rows of `retry_queue` one by one. */
export class TaskTable {
  readonly #lines: LineTable;
  readonly #byId: StatementSync;
  readonly #byIdentity: StatementSync;
  readonly #ofMessage: StatementSync;
  readonly #insertFresh: StatementSync;
  readonly #insertOrdered: StatementSync;
  readonly #insertAny: StatementSync;
  readonly #update: StatementSync;

  constructor(db: DatabaseSync, lines: LineTable) {
    this.#lines = lines;
    const select = `SELECT ${taskColumns} FROM retry_queue WHERE`;
    this.#byId = prepareRows(db, `${select} id = ?`);
    this.#byIdentity = prepareRows(
      db,
      `${select} message_id = ? AND original_queue = ? AND kind = ?`,
    );
    this.#ofMessage = prepareRows(db, `${select} message_id = ?`);
    const fresh = `message_id, original_queue, kind, address, lane, max_retries, next_retry_at,
      visible_at, created_at, expires_at, policy, context, original_payload, arrival`;
    const values = '?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11, ?12, ?13';
    this.#insertFresh = db.prepare(
      `INSERT INTO retry_queue (${fresh}) VALUES (${values}) ${onKnown}`,
    );
    this.#insertOrdered = db.prepare(
      `INSERT INTO retry_queue (${fresh}, blocked, ordering_key, on_dead, line) VALUES (${values}, ?14, ?15, ?16, ?17) ${onKnown}`,
    );
    this.#insertAny = db.prepare(
      `INSERT INTO retry_queue (message_id, original_queue, kind, address, created_at, ${mutable.join(', ')})
       VALUES (?, ?, ?, ?, ?, ${mutable.map(() => '?').join(', ')}) ${onKnown}`,
    );
    this.#update = db.prepare(
      `UPDATE retry_queue SET ${mutable.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
    );
  }

  find(key: TaskKey): Task | undefined {
    const row = 'id' in key ? this.#byId.get(key.id) : this.#findByIdentity(key);
    return row && taskOf(row as unknown as Row);
  }

  ofMessage(messageId: Uint8Array): Task[] {
    return (this.#ofMessage.all(messageId) as unknown as Row[]).map(taskOf);
  }

  /** Its id, or undefined where its identity is known. */
  insert(task: NewTask, nowMs: number): number | undefined {
    const dueAtMs = dueAt(task.due, nowMs);
    const { changes, lastInsertRowid } = isFresh(task)
      ? this.#insertShort(task, dueAtMs, nowMs)
      : this.#insertLong(task, dueAtMs, nowMs);
    return changes === 0 ? undefined : Number(lastInsertRowid);
  }

  /** Writes what may change of a task. Its identity may not. */
  update(task: Task): void {
    this.#update.run(...mutableValues(task), this.#lineOf(task), task.id);
  }

  #insertShort(task: NewTask, dueAtMs: number, nowMs: number) {
    const { messageId, destination, orderingKey } = task;
    const queue = queueNameOf(destination.address);
    if (orderingKey !== undefined) return this.#insertInLine(task, queue, dueAtMs, nowMs);
    return this.#insertFresh.run(
      bytesOfUuid(messageId),
      queue,
      destination.kind,
      wholeAddress(destination, queue),
      task.lane,
      task.maxAttempts - 1,
      dueAtMs,
      nowMs,
      task.expiresAtMs ?? null,
      task.policy ?? null,
      contextColumn(task.context),
      task.payload,
      task.arrival ?? null,
    );
  }

  #insertLong(task: NewTask, dueAtMs: number, nowMs: number) {
    const { messageId, destination } = task;
    const queue = queueNameOf(destination.address);
    return this.#insertAny.run(
      bytesOfUuid(messageId),
      queue,
      destination.kind,
      wholeAddress(destination, queue),
      nowMs,
      ...mutableValues(stored(task, dueAtMs, nowMs)),
      this.#lineOf(task),
    );
  }

  #insertInLine(task: NewTask, queue: string, dueAtMs: number, nowMs: number) {
    const { messageId, destination } = task;
    return this.#insertOrdered.run(
      bytesOfUuid(messageId),
      queue,
      destination.kind,
      wholeAddress(destination, queue),
      task.lane,
      task.maxAttempts - 1,
      dueAtMs,
      nowMs,
      task.expiresAtMs ?? null,
      task.policy ?? null,
      contextColumn(task.context),
      task.payload,
      task.arrival ?? null,
      Number(task.blocked),
      task.orderingKey ?? null,
      task.onDead ?? null,
      this.#lineOf(task),
    );
  }

  /** The line that a row stands in. */
  #lineOf(task: Task | NewTask): number | null {
    const line = holdsPlace(task) ? lineOf(task) : undefined;
    return line ? this.#lines.numberOf(line) : null;
  }

  #findByIdentity({ messageId, destination }: Exclude<TaskKey, { id: number }>) {
    const bytes = bytesOfUuidOrNone(messageId);
    if (!bytes) return undefined;
    return this.#byIdentity.get(bytes, queueNameOf(destination.address), destination.kind);
  }
}

/** When it is due by the store's clock. A time that has passed means now. */
export function dueAt(due: Due, nowMs: number): number {
  return 'atMs' in due ? Math.max(due.atMs, nowMs) : nowMs + due.inMs;
}

/** The address, where its column cannot hold all of it. */
function wholeAddress({ address }: Task['destination'], queue: string): string | null {
  return queue === address ? null : address;
}

const onKnown = 'ON CONFLICT (message_id, original_queue, kind) DO NOTHING';

const mutable = [
  'lane',
  'status',
  'retry_count',
  'max_retries',
  'next_retry_at',
  'visible_at',
  'first_at',
  'lease',
  'arrival',
  'claims',
  'attempt',
  'uncounted',
  'delay_ms',
  'generation',
  'arrived',
  'cancelling',
  'blocked',
  'expires_at',
  'finished_at',
  'verdict',
  'policy',
  'ordering_key',
  'error_reason',
  'failure',
  'context',
  'original_payload',
  'on_dead',
  'job',
  'trial',
  'edited',
  'line',
] as const;

/** In the order of `mutable`; the number of the line, its last, is added by who has it. */
function mutableValues(task: Omit<Task, 'id' | 'createdAtMs'>) {
  return [
    task.lane,
    task.status,
    retryCountOf(task.attempt, task.status),
    task.maxAttempts - 1,
    task.dueAtMs,
    task.visibleAtMs,
    task.firstAtMs ?? null,
    task.lease ?? null,
    task.arrival ?? null,
    task.claims,
    task.attempt,
    task.uncounted,
    task.delayMs,
    task.generation,
    Number(task.arrived),
    Number(task.cancelling),
    Number(task.blocked),
    task.expiresAtMs ?? null,
    task.finishedAtMs ?? null,
    task.verdict ?? null,
    task.policy ?? null,
    task.orderingKey ?? null,
    ...failureColumns(task.failure),
    contextColumn(task.context),
    task.payload,
    task.onDead ?? null,
    task.job ?? null,
    Number(task.trial ?? false),
    task.edited ?? null,
  ];
}

/** Nothing happened to it yet, as to nearly all: everything that the short statement leaves out is its default. */
function isFresh(task: NewTask): boolean {
  return (
    task.status === 'pending' &&
    task.attempt === 0 &&
    task.failure === undefined &&
    task.record === undefined &&
    task.uncounted === 0 &&
    task.delayMs === 0 &&
    task.generation === 0 &&
    task.claims === 0 &&
    task.verdict === undefined &&
    task.job === undefined &&
    task.trial === undefined &&
    task.edited === undefined &&
    !task.arrived &&
    !task.cancelling &&
    (task.orderingKey !== undefined || (!task.blocked && task.onDead === undefined))
  );
}

function stored(task: NewTask, dueAtMs: number, nowMs: number): Omit<Task, 'id' | 'createdAtMs'> {
  const first = task.record ? { firstAtMs: nowMs - task.record.durationMs } : {};
  const finished = task.status === 'pending' ? {} : { finishedAtMs: nowMs };
  return { ...task, ...first, ...finished, dueAtMs, visibleAtMs: dueAtMs };
}
