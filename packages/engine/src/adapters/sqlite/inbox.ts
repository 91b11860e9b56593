import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import type { InboxItem, NewItem, RawItem } from '../../ports/inbox.ts';
import type { AttemptRecord, NewTask, Reason, Task } from '../../task.ts';
import { prepareRows, type Row } from './connection.ts';
import { contextColumn, contextOf, destinationOf } from './rows.ts';
import { bytesOfUuid, uuidOfHex } from './uuid.ts';

/** What every reader of items selects, in the order that `itemOfRow` takes it. A task's payload stays with the task. */
export const itemQuery = `SELECT item.id, item.task_id, lower(hex(item.message_id)), item.kind, item.address, item.lane,
    item.state, item.reason, item.fingerprint, item.attempt, item.max_attempts, item.generation,
    item.occurrences, item.first_seen, item.last_seen, item.failure,
    coalesce(task.context, item.context), coalesce(task.original_payload, item.payload)
  FROM redrive_inbox item LEFT JOIN retry_queue task ON task.id = item.task_id`;

const again =
  'failure = excluded.failure, occurrences = occurrences + 1, last_seen = excluded.last_seen';

/** What never worked, and every execution that failed. */
export class InboxTable {
  readonly #open: StatementSync;
  readonly #append: StatementSync;
  readonly #occurred: StatementSync;
  readonly #byId: StatementSync;
  readonly #record: StatementSync;
  readonly #attempts: StatementSync;

  constructor(db: DatabaseSync) {
    const insert = `INSERT INTO redrive_inbox (task_id, message_id, kind, address, lane, reason, fingerprint,
      attempt, max_attempts, generation, first_seen, last_seen, failure, context, payload)`;
    // A task has one open item: should a second one come, it is one more occurrence.
    this.#open = db.prepare(
      `${insert} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, NULL, NULL)
       ON CONFLICT (task_id) WHERE state = 'open' AND task_id IS NOT NULL
       DO UPDATE SET reason = excluded.reason, fingerprint = excluded.fingerprint, ${again}`,
    );
    this.#append = db.prepare(
      `${insert} VALUES (NULL, ?1, 'source', ?2, 'source:' || ?2, ?3, ?4, 0, 0, 0, ?5, ?5, ?6, ?7, ?8)
       ON CONFLICT (message_id) WHERE state = 'open' AND task_id IS NULL DO UPDATE SET ${again}`,
    );
    this.#occurred = db.prepare(
      `UPDATE redrive_inbox SET failure = ?2, occurrences = occurrences + 1, last_seen = ?3
       WHERE task_id = ?1 AND state = 'open'`,
    );
    this.#byId = prepareRows(db, `${itemQuery} WHERE item.id = ?`);
    this.#record = db.prepare(
      `INSERT INTO redrive_attempts (task_id, generation, attempt, at, duration_ms, failure, answer)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#attempts = prepareRows(
      db,
      `SELECT generation, attempt, at, duration_ms, failure, answer FROM redrive_attempts
       WHERE task_id = ? ORDER BY id`,
    );
  }

  open(taskId: number, task: Task | NewTask, item: NewItem, nowMs: number): void {
    this.#open.run(
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
    );
  }

  append(item: RawItem, nowMs: number): void {
    this.#append.run(
      bytesOfUuid(item.messageId),
      item.source,
      item.reason,
      item.fingerprint,
      nowMs,
      JSON.stringify(item.failure),
      contextColumn(item.context),
      item.payload,
    );
  }

  occurred(taskId: number, failure: Failure, nowMs: number): void {
    this.#occurred.run(taskId, JSON.stringify(failure), nowMs);
  }

  item(id: number): InboxItem | undefined {
    const row = this.#byId.get(id) as unknown as Row | undefined;
    return row && itemOfRow(row);
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
}

export function itemOfRow(row: Row): InboxItem {
  const [id, taskId, hex, kind, address, lane, state, reason, fingerprint] = row;
  const [attempt, maxAttempts, generation, occurrences, firstSeenMs, lastSeenMs] = row.slice(9);
  const [failure, context, payload] = row.slice(15);
  return {
    reason: reason as Reason,
    failure: JSON.parse(failure as string) as Failure,
    fingerprint: fingerprint as string,
    id: id as number,
    ...(taskId === null ? {} : { taskId: taskId as number }),
    messageId: uuidOfHex(hex as string),
    destination: destinationOf(kind, address),
    lane: lane as string,
    attempt: attempt as number,
    maxAttempts: maxAttempts as number,
    generation: generation as number,
    state: state as InboxItem['state'],
    occurrences: occurrences as number,
    firstSeenMs: firstSeenMs as number,
    lastSeenMs: lastSeenMs as number,
    ...(context === null ? {} : { context: contextOf(context as string) }),
    payload: (payload as Uint8Array | null) ?? new Uint8Array(),
  };
}
