import type { Failure } from 'redrive';
import type { Edit, InboxItem } from '../../../ports/inbox.ts';
import type { Destination, Reason } from '../../../model/task.ts';
import { cleanData } from '../../../model/text.ts';
import type { Column } from '../batch.ts';
import type { Names } from '../names.ts';
import { bytesOf, contextOf, destinationOf, numberOf, parsed, type Row, timeOf } from '../rows.ts';
import { msOf } from '../times.ts';

/**
 * All of an item, of the inbox as `item`, its task as `task` and its end as `closed`. What is in a task stays there; one
 * with a payload of its own has its own context too, even none.
 */
const itemColumns = [
  'item.id, item.task_id, item.message_id, item.kind, item.address, item.lane',
  `coalesce(closed.state, 'open') AS state, item.reason`,
  'item.fingerprint, item.attempt, item.max_attempts, item.generation, item.occurrences',
  `${msOf('item.first_seen')} AS first_seen, ${msOf('item.last_seen')} AS last_seen, item.failure`,
  'CASE WHEN item.payload IS NULL THEN task.context ELSE item.context END AS context',
  'coalesce(item.payload, task.original_payload) AS payload',
  `${msOf('closed.closed_at')} AS closed_at, closed.closed_by, item.job, item.ordering_key, item.edit, item.edit_payload`,
  'item.task_edited, item.task_on_dead',
].join(', ');

/** What an item takes over from its task, which is `q`. */
export const KEPT = `payload = q.original_payload, context = q.context, task_edited = q.edited, task_on_dead = q.on_dead`;

export function selectItems(names: Names): string {
  return `SELECT ${itemColumns} FROM ${names.inbox} AS item LEFT JOIN ${names.queue} AS task ON task.id = item.task_id
    LEFT JOIN ${names.closed} AS closed ON closed.id = item.id`;
}

export function itemOf(row: Row): InboxItem {
  const [id, taskId, messageId, kind, address, lane, state, reason, fingerprint] = row;
  const [attempt, maxAttempts, generation, occurrences, firstSeen, lastSeen] = row.slice(9);
  const [failure, context, payload, closedAt, closedBy, job, key] = row.slice(15);
  const [editJson, editPayload, taskEdited, taskOnDead] = row.slice(22);
  return {
    id: numberOf(id),
    ...(taskId === null ? {} : { taskId: numberOf(taskId) }),
    messageId: messageId as string,
    destination: destinationOf(kind, address),
    lane: lane as string,
    state: state as InboxItem['state'],
    reason: reason as Reason,
    fingerprint: fingerprint as string,
    attempt: numberOf(attempt),
    maxAttempts: numberOf(maxAttempts),
    generation: numberOf(generation),
    occurrences: numberOf(occurrences),
    firstSeenMs: timeOf(firstSeen),
    lastSeenMs: timeOf(lastSeen),
    failure: parsed(failure) as Failure,
    ...(context === null ? {} : { context: contextOf(context) }),
    payload: payload === null ? new Uint8Array() : bytesOf(payload),
    ...(closedAt === null ? {} : { closedAtMs: timeOf(closedAt) }),
    ...(closedBy === null ? {} : { closedBy: closedBy as string }),
    ...(job === null ? {} : { job: numberOf(job) }),
    ...(key === null ? {} : { orderingKey: key as string }),
    ...(editJson === null ? {} : { edit: editOf(editJson, editPayload) }),
    ...(taskEdited === null ? {} : { taskEdited: numberOf(taskEdited) }),
    ...(taskOnDead === null ? {} : { taskOnDead: taskOnDead as 'release' }),
  };
}

/** The destination that a change of an operator names, of its JSON. */
export function destinationIn(editJson: unknown): Destination | undefined {
  return editJson === null ? undefined : (parsed(editJson) as Edit).destination;
}

/** A failure of an item as JSON. It is searched in, and no database finds its way in texts that it cannot write out. */
export function failureJson(failure: Failure): string {
  const json = JSON.stringify(failure);
  return /\\u(0000|d[89a-f])/.test(json) ? JSON.stringify(cleanData(failure)) : json;
}

/** What an action may change of an item's row. */
export function changeColumns(item: InboxItem): Column[] {
  const { payload, ...edit }: Edit = item.edit ?? {};
  return [
    { name: 'task_id', type: 'int8', values: [item.taskId] },
    { name: 'edit', type: 'json', values: [item.edit && JSON.stringify(edit)] },
    { name: 'edit_payload', type: 'bytea', values: [payload] },
  ];
}

function editOf(json: unknown, payload: unknown): Edit {
  const rest = parsed(json) as Edit;
  return payload === null ? rest : { ...rest, payload: bytesOf(payload) };
}
