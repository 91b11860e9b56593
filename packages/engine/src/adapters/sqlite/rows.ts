import type { Failure } from 'redrive';
import type { Destination, Reason, Task, TaskContext, TaskStatus } from '../../model/task.ts';
import type { Row } from './connection.ts';
import { uuidOfHex } from './uuid.ts';

/** What every reader of tasks selects, in the order that `taskOf` takes it. */
export const taskColumns = `id, lower(hex(message_id)), kind, original_queue, address, lane, status,
  attempt, max_retries, uncounted, delay_ms, generation, next_retry_at, visible_at, created_at,
  claims, arrived, cancelling, blocked, lease, expires_at, first_at, finished_at, arrival,
  verdict, policy, ordering_key, error_reason, failure, context, original_payload, on_dead, job, trial, edited`;

/** By index, not by name: a claim reads a thousand of these. */
export function taskOf(row: Row): Task {
  const task: Task = {
    id: row[0] as number,
    messageId: uuidOfHex(row[1] as string),
    destination: { kind: row[2] as string, address: (row[4] ?? row[3]) as string },
    lane: row[5] as string,
    payload: row[30] as Uint8Array,
    status: row[6] as TaskStatus,
    attempt: row[7] as number,
    maxAttempts: (row[8] as number) + 1,
    uncounted: row[9] as number,
    delayMs: row[10] as number,
    generation: row[11] as number,
    dueAtMs: row[12] as number,
    visibleAtMs: row[13] as number,
    createdAtMs: row[14] as number,
    claims: row[15] as number,
    arrived: row[16] === 1,
    cancelling: row[17] === 1,
    blocked: row[18] === 1,
  };
  if (row[19] !== null) task.lease = row[19] as number;
  if (row[20] !== null) task.expiresAtMs = row[20] as number;
  if (row[21] !== null) task.firstAtMs = row[21] as number;
  if (row[22] !== null) task.finishedAtMs = row[22] as number;
  if (row[23] !== null) task.arrival = row[23] as number;
  if (row[24] !== null) task.verdict = row[24] as Reason;
  if (row[25] !== null) task.policy = row[25] as string;
  if (row[26] !== null) task.orderingKey = row[26] as string;
  if (row[28] !== null) task.failure = failureOf(row[28] as string, row[27] as string | null);
  if (row[29] !== null) task.context = contextOf(row[29] as string);
  if (row[31] !== null) task.onDead = row[31] as 'release';
  if (row[32] !== null) task.job = row[32] as number;
  if (row[33] === 1) task.trial = true;
  if (row[34] !== null) task.edited = row[34] as number;
  return task;
}

/** A failure as it stands in a task's row: its message is a column of its own. */
export function failureColumns(failure: Failure | undefined): [string | null, string | null] {
  if (!failure) return [null, null];
  const { message, ...rest } = failure;
  return [message ?? null, JSON.stringify(rest)];
}

export function contextColumn(context: TaskContext | undefined): string | null {
  return context ? JSON.stringify(context) : null;
}

export function contextOf(json: string): TaskContext {
  return JSON.parse(json) as TaskContext;
}

export function destinationOf(kind: unknown, address: unknown): Destination {
  return { kind: kind as string, address: address as string };
}

/** `retry_count` in the words of the contract: of one that a broker took over, the count that it was sent with. */
export function retryCountOf(attempt: number, status: TaskStatus): number {
  return status === 'retried' ? attempt : Math.max(attempt - 1, 0);
}

function failureOf(json: string, message: string | null): Failure {
  const rest = JSON.parse(json) as Failure;
  return message === null ? rest : { ...rest, message };
}
