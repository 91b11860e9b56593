import type { ItemAction } from '../../ports/inbox.ts';
import { few, type Params, rowsOf } from './batch.ts';
import type { Names } from './names.ts';
import { NOW } from './times.ts';

/** Actions that need no look at the item: one statement does to a thousand what `actOn` does to one. */
type BulkAction =
  | Extract<ItemAction, { type: 'replay' }>
  | { type: 'resolve' | 'discard'; by?: string };

/** Whether what `bulkText` says of an action is all that there is to it, for items without a change of their own. */
export function isBulk(action: ItemAction): action is BulkAction {
  if (action.type === 'replay') return action.edit === undefined;
  return action.type === 'resolve' || action.type === 'discard';
}

/**
 * The lines of these items, and what their changes say, of those that are in a line. `open`: of those that are open, by an
 * index of just these: it is empty where nothing has an order.
 */
export function lookText(
  { inbox, open }: Names,
  ids: readonly number[],
  which: 'open' | 'all',
  params: Params,
): string {
  const item = `SELECT lane, ordering_key, edit FROM ${inbox} AS item WHERE item.id = u.id AND ordering_key IS NOT NULL OFFSET 0`;
  const source = few(`(${idRows(ids, params)})`, 'n');
  const ordered = `SELECT u.id FROM (${source}) AS u CROSS JOIN LATERAL (
      SELECT FROM ${open} AS open WHERE open.id = u.id AND ordering_key IS NOT NULL OFFSET 0
    ) AS open`;
  return `SELECT item.lane, item.ordering_key, item.edit FROM (${which === 'open' ? ordered : source}) AS u
    CROSS JOIN LATERAL (${item}) AS item`;
}

/**
 * The short way for the usual case, an open item without a change whose task lies in the inbox: one write for each, and
 * no lock before it. The order is that of task ids. Answers the numbers of those that it did, the lanes of their tasks,
 * lane and key of those in a line, and how many items it closed: where those are fewer, it met what came meanwhile and
 * must be undone.
 *
 * The status and the generation are compared in the row as it is when it is written, so that everything is done once.
 * Payloads stay where they are.
 */
export function shortText(
  names: Names,
  ids: readonly number[],
  action: BulkAction,
  params: Params,
): string {
  return `WITH open AS MATERIALIZED (
      SELECT u.n, item.* FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id, task_id, generation FROM ${names.open} AS item
        WHERE item.id = u.id AND NOT edited AND task_id IS NOT NULL OFFSET 0
      ) AS item ORDER BY item.task_id
    ),
    moved AS (
      UPDATE ${names.queue} AS q SET ${taskValues(action, params)} FROM (${few('open', 'n')}) AS t
      WHERE q.id = ANY (ARRAY[t.task_id]) AND q.status = 'failed' AND q.generation = ANY (ARRAY[t.generation])
      RETURNING t.n, t.id, q.lane, q.ordering_key
    ),
    ${closeText(names, few('moved', 'n'), 'NOT item.edited', action, params)}
    SELECT json_agg(n), json_agg(DISTINCT lane) FILTER (WHERE ordering_key IS NULL),
      json_agg(json_build_array(lane, ordering_key)) FILTER (WHERE ordering_key IS NOT NULL),
      (SELECT count(*) FROM closed) FROM moved`;
}

/**
 * Locks the tasks of items, each before its items, in the order of task ids. Does to them what the action says, and
 * answers each one's number with what became of it, and the lane and key of its task. `other`: it has to be looked at;
 * it is locked and nothing is done. One that does not exist is not in the answer. Each id is there once.
 */
export function bulkText(
  names: Names,
  ids: readonly number[],
  action: BulkAction | undefined,
  params: Params,
): string {
  const parts = [
    `known AS MATERIALIZED (
      SELECT u.n, item.id, item.task_id FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id, task_id FROM ${names.inbox} AS item WHERE item.id = u.id OFFSET 0
      ) AS item ORDER BY item.task_id, item.id
    )`,
    // The item is asked for by its task, so that this one is locked first.
    `judged AS MATERIALIZED (
      SELECT known.n, item.id, item.task_id, task.lane, task.ordering_key, ${resultOf(action)} AS result
      FROM (${few('known', 'n')}) AS known LEFT JOIN LATERAL (
        SELECT id, status, lane, ordering_key FROM ${names.queue} AS q WHERE q.id = known.task_id FOR UPDATE
      ) AS task ON true CROSS JOIN LATERAL (
        SELECT id, task_id, edit IS NOT NULL AS is_edited FROM ${names.inbox} AS item
        WHERE item.id = known.id AND coalesce(task.id, 0) >= 0 FOR UPDATE
      ) AS item LEFT JOIN LATERAL (
        SELECT id FROM ${names.open} AS open WHERE open.id = item.id FOR UPDATE
      ) AS open ON true
    )`,
  ];
  if (action) {
    const done = `(SELECT * FROM judged WHERE result = 'done')`;
    parts.push(
      `moved AS (
        UPDATE ${names.queue} AS q SET ${taskValues(action, params)}
        FROM (${few(done, 'n')}) AS t WHERE q.id = ANY (ARRAY[t.task_id])
      )`,
      closeText(names, few(done, 'n'), 'true', action, params),
    );
  }
  return `WITH ${parts.join(', ')} SELECT n, result, lane, ordering_key FROM judged`;
}

/** As `actOn` judges. A task that was not there to be locked may have come meanwhile, and an item may have another one. */
function resultOf(action: BulkAction | undefined): string {
  if (!action) return `'other'`;
  const isUnlocked = 'item.task_id IS DISTINCT FROM task.id';
  if (action.type !== 'replay') {
    return `CASE WHEN open.id IS NULL THEN 'closed' WHEN ${isUnlocked} THEN 'other' ELSE 'done' END`;
  }
  return `CASE WHEN open.id IS NULL THEN 'closed' WHEN is_edited OR ${isUnlocked} THEN 'other'
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

const closedAs = { replay: 'replayed', resolve: 'resolved', discard: 'discarded' } as const;

/** Parts of a statement: these items are open no more. */
function closeText(
  { open, closed }: Names,
  these: string,
  condition: string,
  { type, by }: BulkAction,
  params: Params,
): string {
  return `closed AS (DELETE FROM ${open} AS item USING (${these}) AS t WHERE item.id = ANY (ARRAY[t.id]) AND ${condition} RETURNING item.id),
    ended AS (
      INSERT INTO ${closed} (id, state, closed_at, closed_by)
      SELECT id, '${closedAs[type]}', ${NOW}, ${params.add(by ?? null)}::text FROM closed
    )`;
}

function idRows(ids: readonly number[], params: Params): string {
  return rowsOf([{ name: 'id', type: 'int8', values: ids }], params);
}
