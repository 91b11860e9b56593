import type { Failure } from 'redrive';
import type { Edit, InboxItem } from '../../../ports/inbox.ts';
import type { Reason } from '../../../model/task.ts';
import type { Row } from '../connection.ts';
import { contextOf, destinationOf } from '../rows.ts';
import { uuidOfHex } from '../uuid.ts';

/**
 * What every reader of items selects, in the order that `itemOfRow` takes it. Payload and context of a task stay with the
 * task, until they are changed there or the task goes: then the item has its own, and both are its own.
 */
export const itemQuery = `SELECT item.id, item.task_id, lower(hex(item.message_id)), item.kind, item.address, item.lane,
    coalesce(closed.state, 'open'), item.reason, item.fingerprint, item.attempt, item.max_attempts, item.generation,
    item.occurrences, item.first_seen, item.last_seen, item.failure,
    iif(item.payload IS NULL, task.context, item.context), coalesce(item.payload, task.original_payload),
    closed.closed_at, closed.closed_by, item.job, item.ordering_key, item.edit, item.edit_payload,
    item.task_edited, item.task_on_dead
  FROM redrive_inbox item LEFT JOIN retry_queue task ON task.id = item.task_id
    LEFT JOIN redrive_closed closed ON closed.id = item.id`;

export function itemOfRow(row: Row): InboxItem {
  const item: InboxItem = {
    reason: row[7] as Reason,
    failure: JSON.parse(row[15] as string) as Failure,
    fingerprint: row[8] as string,
    id: row[0] as number,
    messageId: uuidOfHex(row[2] as string),
    destination: destinationOf(row[3], row[4]),
    lane: row[5] as string,
    attempt: row[9] as number,
    maxAttempts: row[10] as number,
    generation: row[11] as number,
    state: row[6] as InboxItem['state'],
    occurrences: row[12] as number,
    firstSeenMs: row[13] as number,
    lastSeenMs: row[14] as number,
    payload: (row[17] as Uint8Array | null) ?? new Uint8Array(),
  };
  if (row[1] !== null) item.taskId = row[1] as number;
  if (row[16] !== null) item.context = contextOf(row[16] as string);
  if (row[18] !== null) item.closedAtMs = row[18] as number;
  if (row[19] !== null) item.closedBy = row[19] as string;
  if (row[20] !== null) item.job = row[20] as number;
  if (row[21] !== null) item.orderingKey = row[21] as string;
  if (row[22] !== null) item.edit = editOf(row[22] as string, row[23] as Uint8Array | null);
  if (row[24] !== null) item.taskEdited = row[24] as number;
  if (row[25] !== null) item.taskOnDead = row[25] as 'release';
  return item;
}

/** An edit as it stands in its item's row: its payload is a column of its own. */
export function editColumns(edit: Edit | undefined): [string | null, Uint8Array | null] {
  if (!edit) return [null, null];
  const { payload, ...rest } = edit;
  return [JSON.stringify(rest), payload ?? null];
}

function editOf(json: string, payload: Uint8Array | null): Edit {
  const rest = JSON.parse(json) as Edit;
  return payload === null ? rest : { ...rest, payload };
}
