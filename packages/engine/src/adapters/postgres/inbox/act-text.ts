import type { ItemAction } from '../../../ports/inbox.ts';
import { few, type Params, rowsOf } from '../batch.ts';
import type { Names } from '../names.ts';
import { BEGUN } from '../times.ts';

/** Actions that one statement can do to all plain items. It writes what `actOn` says. */
type PlainAction =
  | Extract<ItemAction, { type: 'replay' }>
  | { type: 'resolve' | 'discard'; by?: string };

export function isPlain(action: ItemAction): action is PlainAction {
  if (action.type === 'replay') return action.edit === undefined;
  return action.type === 'resolve' || action.type === 'discard';
}

/**
 * Selects the lines of those items that have an ordering key, and what an operator changed of these items. `open`: only of
 * open items, by an index that holds nothing else: it is empty where no task has an ordering key.
 */
export function linesText(
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
 * Acts on all plain items by one statement. An open item is plain if its task is `failed`; a replay also needs an item that
 * no operator has changed. An item without a task (an unreadable message) can be closed, but not replayed.
 *
 * Answers: the numbers of the items that were done; the lanes of their tasks; lane and key of those that have an ordering
 * key; how many items were closed. Fewer closed than done: something changed in between, and the transaction must be
 * rolled back.
 *
 * A task is not locked before it is written. So status and generation are compared in the row as it is when it is written,
 * and two connections never do the same item twice. Tasks are written in the order of their ids.
 */
export function plainText(
  names: Names,
  ids: readonly number[],
  action: PlainAction,
  params: Params,
): string {
  const isReplay = action.type === 'replay';
  // An item without a task is locked itself, as whoever appends to it or erases it does.
  const raw = `UNION ALL SELECT n, item_id, NULL, NULL FROM open CROSS JOIN LATERAL (
      SELECT FROM ${names.inbox} AS item WHERE item.id = open.item_id FOR UPDATE
    ) AS item WHERE task_id IS NULL`;
  return `WITH open AS MATERIALIZED (
      SELECT u.n, item.* FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id AS item_id, task_id, generation FROM ${names.open} AS item
        WHERE item.id = u.id ${isReplay ? 'AND NOT edited AND task_id IS NOT NULL' : ''} OFFSET 0
      ) AS item ORDER BY item.task_id, item.item_id
    ),
    moved AS (
      UPDATE ${names.queue} AS q SET ${taskValues(action, params)} FROM (${few('open', 'n')}) AS t
      WHERE q.id = ANY (ARRAY[t.task_id]) AND q.status = 'failed' AND q.generation = ANY (ARRAY[t.generation])
      RETURNING t.n, t.item_id, q.lane, q.ordering_key
    ),
    done AS MATERIALIZED (SELECT n, item_id, lane, ordering_key FROM moved ${isReplay ? '' : raw}),
    closed AS (
      DELETE FROM ${names.open} AS item USING (${few('done', 'n')}) AS t
      WHERE item.id = ANY (ARRAY[t.item_id]) ${isReplay ? 'AND NOT item.edited' : ''} RETURNING item.id
    ),
    ended AS (
      INSERT INTO ${names.closed} (id, state, closed_at, closed_by)
      SELECT id, '${closedAs[action.type]}', ${BEGUN}, ${params.add(action.by ?? null)}::text FROM closed
    )
    SELECT json_agg(n) AS done, json_agg(DISTINCT lane) FILTER (WHERE lane IS NOT NULL AND ordering_key IS NULL) AS lanes,
      json_agg(json_build_array(lane, ordering_key)) FILTER (WHERE ordering_key IS NOT NULL) AS lines,
      (SELECT count(*) FROM closed) AS closed FROM done`;
}

/** Locks items and their tasks, each task before its items, in the order of task ids. */
export function lockText(names: Names, ids: readonly number[], params: Params): string {
  // The item is looked up by its task, so that the task is locked first.
  return `WITH known AS MATERIALIZED (
      SELECT u.n, item.id, item.task_id FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id, task_id FROM ${names.inbox} AS item WHERE item.id = u.id OFFSET 0
      ) AS item ORDER BY item.task_id, item.id
    )
    SELECT item.id FROM (${few('known', 'n')}) AS known LEFT JOIN LATERAL (
      SELECT id FROM ${names.queue} AS q WHERE q.id = known.task_id FOR UPDATE
    ) AS task ON true CROSS JOIN LATERAL (
      SELECT id FROM ${names.inbox} AS item WHERE item.id = known.id AND coalesce(task.id, 0) >= 0 FOR UPDATE
    ) AS item LEFT JOIN LATERAL (
      SELECT id FROM ${names.open} AS open WHERE open.id = item.id FOR UPDATE
    ) AS open ON true`;
}

/** What `inNewGeneration` and `cancelled` of the moves write. */
function taskValues(action: PlainAction, params: Params): string {
  if (action.type !== 'replay') {
    return `status = 'cancelled', finished_at = ${BEGUN}, job = NULL, trial = false`;
  }
  return `status = 'pending', generation = q.generation + 1, attempt = 0, retry_count = 0, uncounted = 0, delay_ms = 0,
    claims = 0, arrived = false, cancelling = false, blocked = q.ordering_key IS NOT NULL, lease = NULL, verdict = NULL,
    finished_at = NULL, first_at = NULL, next_retry_at = ${BEGUN}, visible_at = ${BEGUN},
    expires_at = CASE WHEN q.expires_at > ${BEGUN} THEN q.expires_at END,
    job = ${params.add(action.job ?? null)}::bigint, trial = ${params.add(action.trial ?? false)}::boolean`;
}

const closedAs = { replay: 'replayed', resolve: 'resolved', discard: 'discarded' } as const;

function idRows(ids: readonly number[], params: Params): string {
  return rowsOf([{ name: 'id', type: 'int8', values: ids }], params);
}
