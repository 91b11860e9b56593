import type { ItemAction } from '../../ports/inbox.ts';
import { few, type Params, rowsOf } from './batch.ts';
import type { Names } from './names.ts';
import { NOW } from './times.ts';

/** Actions that need no look at the item: one statement does to a thousand what `actOn` does to one. */
type BulkAction = Extract<ItemAction, { type: 'replay' | 'resolve' | 'discard' }>;

/** Whether what `bulkText` says of an action is all that there is to it, for items without a change of their own. */
export function isBulk(action: ItemAction): action is BulkAction {
  if (action.type === 'replay') return action.edit === undefined;
  return action.type === 'resolve' || action.type === 'discard';
}

/** The lines of these items, and what their changes say, of those that are in a line. */
export function lookText(names: Names, ids: readonly number[], params: Params): string {
  return `SELECT item.lane, item.ordering_key, item.edit FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u
    CROSS JOIN LATERAL (
      SELECT lane, ordering_key, edit FROM ${names.inbox} AS item
      WHERE item.id = u.id AND item.ordering_key IS NOT NULL OFFSET 0
    ) AS item`;
}

/**
 * Locks the tasks of items, then the items, each in the order of ids, so `ids` are sorted and each is there once. Does to
 * them what the action says, and answers each one's number with what became of it, and the lane and key of its task.
 * `other`: it has to be looked at; it is locked and nothing is done. One that does not exist is not in the answer.
 *
 * Payloads stay where they are.
 */
export function bulkText(
  names: Names,
  ids: readonly number[],
  action: BulkAction | undefined,
  params: Params,
): string {
  const parts = [
    `u AS MATERIALIZED (${idRows(ids, params)})`,
    `known AS MATERIALIZED (
      SELECT DISTINCT item.task_id FROM (${few('u', 'n')}) AS u CROSS JOIN LATERAL (
        SELECT task_id FROM ${names.inbox} AS item WHERE item.id = u.id AND task_id IS NOT NULL OFFSET 0
      ) AS item ORDER BY item.task_id
    )`,
    `task AS MATERIALIZED (
      SELECT q.* FROM (${few('known', 'task_id')}) AS t CROSS JOIN LATERAL (
        SELECT id, status, lane, ordering_key FROM ${names.queue} AS q WHERE q.id = t.task_id FOR UPDATE
      ) AS q
    )`,
    // It asks for all tasks first, so that they are locked first.
    `item AS MATERIALIZED (
      SELECT u.n, item.* FROM (${few('u', 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id, task_id, state, edit IS NOT NULL AS is_edited FROM ${names.inbox} AS item
        WHERE item.id = u.id AND (SELECT count(*) FROM task) >= 0 FOR UPDATE
      ) AS item
    )`,
    `judged AS MATERIALIZED (
      SELECT item.n, item.id, item.task_id, task.lane, task.ordering_key, ${resultOf(action)} AS result
      FROM item LEFT JOIN task ON task.id = item.task_id
    )`,
  ];
  if (action) {
    const by = `${params.add(action.by ?? null)}::text`;
    const done = `(SELECT * FROM judged WHERE result = 'done')`;
    const state =
      action.type === 'replay' ? 'replayed' : action.type === 'resolve' ? 'resolved' : 'discarded';
    parts.push(
      `moved AS (
        UPDATE ${names.queue} AS q SET ${taskValues(action, params)}
        FROM (${few(done, 'n')}) AS t WHERE q.id = ANY (ARRAY[t.task_id])
      )`,
      `closed AS (
        UPDATE ${names.inbox} AS item SET state = '${state}', closed_at = ${NOW}, closed_by = ${by}
        FROM (${few(done, 'n')}) AS t WHERE item.id = ANY (ARRAY[t.id])
      )`,
    );
  }
  return `WITH ${parts.join(', ')} SELECT n, result, lane, ordering_key FROM judged`;
}

/** As `actOn` judges. A task that was not there to be locked may have come meanwhile. */
function resultOf(action: BulkAction | undefined): string {
  if (!action) return `'other'`;
  const isUnlocked = 'item.task_id IS NOT NULL AND task.id IS NULL';
  if (action.type !== 'replay') {
    return `CASE WHEN state <> 'open' THEN 'closed' WHEN ${isUnlocked} THEN 'other' ELSE 'done' END`;
  }
  return `CASE WHEN state <> 'open' THEN 'closed' WHEN is_edited OR ${isUnlocked} THEN 'other'
    WHEN item.task_id IS NULL THEN 'unaddressed' WHEN task.status <> 'failed' THEN 'gone' ELSE 'done' END`;
}

/** What `inNewGeneration` and `cancelled` of the moves write. */
function taskValues(action: BulkAction, params: Params): string {
  if (action.type !== 'replay') {
    return `status = 'cancelled', finished_at = ${NOW}, job = NULL, trial = false`;
  }
  return `status = 'pending', generation = q.generation + 1, attempt = 0, retry_count = 0, uncounted = 0, delay_ms = 0,
    claims = 0, arrived = false, cancelling = false, blocked = q.ordering_key IS NOT NULL, lease = NULL, verdict = NULL,
    finished_at = NULL, first_at = NULL, next_retry_at = ${NOW}, visible_at = ${NOW},
    expires_at = CASE WHEN q.expires_at > ${NOW} THEN q.expires_at END,
    job = ${params.add(action.job ?? null)}::bigint, trial = ${params.add(action.trial ?? false)}::boolean`;
}

function idRows(ids: readonly number[], params: Params): string {
  return rowsOf([{ name: 'id', type: 'int8', values: ids }], params);
}
