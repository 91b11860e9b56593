import type { Failure } from 'redrive';
import type { Destination, Reason, Task, TaskContext, TaskStatus } from '../../model/task.ts';
import { cleanText } from '../../model/text.ts';
import { msOf } from './times.ts';

/**
 * A row by position. Our own connections hand over the texts of the server; inside a transaction of the caller the
 * values come as that client parses them, so that both must be understood.
 */
export type Row = readonly unknown[];

/**
 * What a claim needs of a task, of the table as `q`: the rest it knows, since it has just written it. What most tasks
 * have is sent as NULL: every text costs here and there, a NULL hardly anything.
 */
export const claimedColumns = columnsOf({
  id: 'q.id',
  message_id: 'message_id',
  kind: 'kind',
  address: 'coalesce(address, original_queue)',
  lane: 'lane',
  payload: 'original_payload',
  context: 'context',
  attempt: 'nullif(attempt, 0)',
  max_retries: 'max_retries',
  uncounted: 'nullif(uncounted, 0)',
  delay_ms: 'nullif(delay_ms, 0)',
  policy: 'policy',
  generation: 'nullif(generation, 0)',
  due: msOf('next_retry_at'),
  created: msOf('nullif(created_at, next_retry_at)'),
  expires: msOf('expires_at'),
  first: msOf('first_at'),
  claims: 'nullif(claims, 1)',
  arrival: 'arrival',
  verdict: 'verdict',
  cancelling: 'nullif(cancelling, false)',
  blocked: 'nullif(blocked, false)',
  ordering_key: 'ordering_key',
  error: 'error_reason',
  failure: 'failure',
  on_dead: 'on_dead',
  job: 'job',
  trial: 'nullif(trial, false)',
  edited: 'edited',
});

/** What every other reader of tasks selects. */
export const taskColumns = [
  ...claimedColumns,
  ...columnsOf({
    status: 'status',
    visible: msOf('visible_at'),
    finished: msOf('finished_at'),
    lease: 'lease',
    arrived: 'arrived',
  }),
];

export function claimedTask(row: Row, lease: number, visibleAtMs: number): Task {
  const task: Task = {
    id: numberOf(row[0]),
    messageId: row[1] as string,
    destination: { kind: row[2] as string, address: row[3] as string },
    lane: row[4] as string,
    payload: bytesOf(row[5]),
    status: 'pending',
    attempt: numberOf(row[7]),
    maxAttempts: numberOf(row[8]) + 1,
    uncounted: numberOf(row[9]),
    delayMs: numberOf(row[10]),
    generation: numberOf(row[12]),
    dueAtMs: timeOf(row[13]),
    visibleAtMs,
    createdAtMs: timeOf(row[14] ?? row[13]),
    lease,
    claims: numberOf(row[17] ?? 1),
    arrived: false,
    cancelling: isTrue(row[20]),
    blocked: isTrue(row[21]),
  };
  if (row[6] !== null) task.context = contextOf(row[6]);
  if (row[11] !== null) task.policy = row[11] as string;
  if (row[15] !== null) task.expiresAtMs = timeOf(row[15]);
  if (row[16] !== null) task.firstAtMs = timeOf(row[16]);
  if (row[18] !== null) task.arrival = numberOf(row[18]);
  if (row[19] !== null) task.verdict = row[19] as Reason;
  if (row[22] !== null) task.orderingKey = row[22] as string;
  if (row[24] !== null) task.failure = failureOf(row[24], row[23] as string | null);
  else if (row[23] !== null) task.failure = { class: 'transient', message: row[23] as string };
  if (row[25] !== null) task.onDead = 'release';
  if (row[26] !== null) task.job = numberOf(row[26]);
  if (row[27] !== null) task.trial = true;
  if (row[28] !== null) task.edited = numberOf(row[28]);
  return task;
}

export function taskOf(row: Row): Task {
  const { lease: _, ...task } = claimedTask(row, 0, timeOf(row[30]));
  const isLeased = row[32] !== null;
  return {
    ...task,
    status: row[29] as TaskStatus,
    ...(row[31] === null ? {} : { finishedAtMs: timeOf(row[31]) }),
    ...(isLeased ? { lease: numberOf(row[32]) } : {}),
    // A settle leaves the mark, to see what it met; without a lease it says nothing.
    arrived: isLeased && isTrue(row[33]),
  };
}

/** A failure as it stands in a task's row: its message is a column of its own. */
export function failureColumns(failure: Failure | undefined): {
  message: string | undefined;
  rest: string | undefined;
} {
  if (!failure) return { message: undefined, rest: undefined };
  const { message, ...rest } = failure;
  return { message: kept(message), rest: JSON.stringify(rest) };
}

/** Words of others, as a column takes them: a settlement must not fail by what somebody's error says. */
export function kept(text: string | undefined): string | undefined {
  return text?.includes('\0') ? cleanText(text) : text;
}

/** `retry_count` in the words of the contract: of one that a broker took over, the count that it was sent with. */
export function retryCountOf(attempt: string, status: string): string {
  return `CASE WHEN ${status} = 'retried' THEN ${attempt} ELSE greatest(${attempt} - 1, 0) END`;
}

export function destinationOf(kind: unknown, address: unknown): Destination {
  return { kind: kind as string, address: address as string };
}

export function contextOf(json: unknown): TaskContext {
  return parsed(json) as TaskContext;
}

/** JSON as our own connections and as the caller's give it. */
export function parsed(json: unknown): unknown {
  return typeof json === 'string' ? (JSON.parse(json) as unknown) : json;
}

/** Of NULL: 0. */
export function numberOf(value: unknown): number {
  return Number(value);
}

/** Whole ms, rounded down: only the document's own inserts write fractions. The addend is for what a double loses. */
export function timeOf(value: unknown): number {
  return Math.floor(Number(value) + 0.01);
}

export function isTrue(value: unknown): boolean {
  return value === 't' || value === true;
}

export function bytesOf(value: unknown): Uint8Array {
  // The hex form, after its leading \x.
  return typeof value === 'string' ? Buffer.from(value.slice(2), 'hex') : (value as Uint8Array);
}

function failureOf(json: unknown, message: string | null): Failure {
  const rest = parsed(json) as Failure;
  return message === null ? rest : { ...rest, message };
}

/** A list that the server has put together as JSON; NULL where it had nothing to put together. */
export function listOf<T>(json: unknown): T[] {
  return (parsed(json) ?? []) as T[];
}

/** With a name for each: rows of the caller's client are objects, and equal names would fall together. */
function columnsOf(expressions: Readonly<Record<string, string>>): string[] {
  return Object.entries(expressions).map(([name, expression]) => `${expression} AS ${name}`);
}
