import type { ItemAction, Loan } from '../../ports/inbox.ts';
import { encodeArray } from './arrays.ts';
import { few, type Params, rowsOf } from './batch.ts';
import { boundedMs, bytesUpTo, countOf } from './bounds.ts';
import type { Names } from './names.ts';
import { lentColumns } from './rows.ts';
import { BEGUN, later, msOf } from './times.ts';

/** Actions that need no look at the item: one statement does to a thousand what `actOn` does to one. */
export type BulkAction =
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
  const moved = movedText(names, ids, { values: taskValues(action, params) }, params);
  return `WITH ${moved},
    ${closeText(names, few('moved', 'n'), 'NOT item.edited', action, params)}
    SELECT json_agg(n), json_agg(DISTINCT lane) FILTER (WHERE ordering_key IS NULL),
      json_agg(json_build_array(lane, ordering_key)) FILTER (WHERE ordering_key IS NOT NULL),
      (SELECT count(*) FROM closed) FROM moved`;
}

/** The document of a job, as a whole step of it finds and leaves it. */
interface StepOf {
  key: string;
  version: number;
  value: string;
}

/**
 * A whole step of a job by one statement, for items that are all done by the short way and in no line: without a way to
 * the server and back for each part of it. Answers of each the lane of its task and the time, and of what it leased what a
 * claim answers. No rows: it is not so simple, or the document has another version, and nothing was done. Where somebody
 * came in between it fails with a division by zero, and nothing is done either.
 */
export function stepText(
  names: Names,
  ids: readonly number[],
  action: BulkAction,
  { step, loan, lockTimeoutMs }: { step: StepOf; loan: Loan | undefined; lockTimeoutMs: number },
  params: Params,
): string {
  const count = `${params.add(ids.length)}::int4`;
  const isDocument = `key = ${params.add(step.key)} AND version = ${params.add(step.version)}::bigint`;
  const moved = movedText(
    names,
    ids,
    {
      values: taskValues(action, params, loan && lentTo(loan, params)),
      // Before all else the document is locked, as everywhere.
      source: `(SELECT count(*) FROM document) = 1 AND item.ordering_key IS NULL`,
      only: `AND (SELECT count(*) FROM open) = ${count}`,
      answered: loan ? 'q.*' : 'q.lane',
    },
    params,
  );
  const leased = loan ? `lease, ${lentColumns.join(', ')}` : 'NULL';
  return `WITH document AS MATERIALIZED (
      SELECT FROM ${names.state} WHERE ${isDocument}
        AND (SELECT set_config('lock_timeout', '${lockTimeoutMs}', true)) IS NOT NULL FOR UPDATE
    ),
    ${moved},
    ${closeText(names, few('moved', 'n'), 'NOT item.edited', action, params)},
    written AS (
      UPDATE ${names.state} SET version = version + 1, value = ${params.add(step.value)}
      WHERE ${isDocument} AND (SELECT count(*) FROM closed) = ${count} RETURNING 1
    )
    SELECT 1 / (SELECT count(*) FROM written), lane, (SELECT (${msOf(BEGUN)})::text), ${leased} FROM moved AS q`;
}

/** What a loan makes of the tasks that it may be given to, and of the others. */
function lentTo(
  { lanes, limit, maxBytesEach, lease, leaseMs }: Loan,
  params: Params,
): typeof unleased {
  const isLent = `t.n <= ${params.add(countOf(limit))}::int4
    AND q.lane = ANY (${params.add(encodeArray('text', lanes))}::text[])
    AND octet_length(q.original_payload) <= ${params.add(bytesUpTo(maxBytesEach))}::bigint`;
  const until = `(SELECT ${later(`${params.add(boundedMs(leaseMs))}::float8`, BEGUN)})`;
  return {
    lease: `CASE WHEN ${isLent} THEN ${params.add(lease)}::bigint END`,
    claims: `CASE WHEN ${isLent} THEN 1 ELSE 0 END`,
    visibleAt: `CASE WHEN ${isLent} THEN ${until} ELSE ${BEGUN} END`,
  };
}

interface Moving {
  values: string;
  /** More that must be so of the open item, and for any of them to be moved. */
  source?: string;
  only?: string;
  answered?: string;
}

function movedText(
  names: Names,
  ids: readonly number[],
  { values, source = 'true', only = '', answered = 'q.lane, q.ordering_key' }: Moving,
  params: Params,
): string {
  return `open AS MATERIALIZED (
      SELECT u.n, item.* FROM (${few(`(${idRows(ids, params)})`, 'n')}) AS u CROSS JOIN LATERAL (
        SELECT id AS item_id, task_id, generation, ordering_key FROM ${names.open} AS item
        WHERE item.id = u.id AND NOT edited AND task_id IS NOT NULL OFFSET 0
      ) AS item WHERE ${source} ORDER BY item.task_id
    ),
    moved AS (
      UPDATE ${names.queue} AS q SET ${values} FROM (${few('open', 'n')}) AS t
      WHERE q.id = ANY (ARRAY[t.task_id]) AND q.status = 'failed' AND q.generation = ANY (ARRAY[t.generation]) ${only}
      RETURNING t.n, t.item_id, ${answered}
    )`;
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
      SELECT known.n, item.id AS item_id, item.task_id, task.lane, task.ordering_key, ${resultOf(action)} AS result
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
function taskValues(
  action: BulkAction,
  params: Params,
  { lease, claims, visibleAt } = unleased,
): string {
  if (action.type !== 'replay') {
    return `status = 'cancelled', finished_at = ${BEGUN}, job = NULL, trial = false`;
  }
  return `status = 'pending', generation = q.generation + 1, attempt = 0, retry_count = 0, uncounted = 0, delay_ms = 0,
    claims = ${claims}, arrived = false, cancelling = false, blocked = q.ordering_key IS NOT NULL, lease = ${lease},
    verdict = NULL, finished_at = NULL, first_at = NULL, next_retry_at = ${BEGUN}, visible_at = ${visibleAt},
    expires_at = CASE WHEN q.expires_at > ${BEGUN} THEN q.expires_at END,
    job = ${params.add(action.job ?? null)}::bigint, trial = ${params.add(action.trial ?? false)}::boolean`;
}

const unleased = { lease: 'NULL', claims: '0', visibleAt: BEGUN };

const closedAs = { replay: 'replayed', resolve: 'resolved', discard: 'discarded' } as const;

/** Parts of a statement: these items are open no more. */
function closeText(
  { open, closed }: Names,
  these: string,
  condition: string,
  { type, by }: BulkAction,
  params: Params,
): string {
  return `closed AS (DELETE FROM ${open} AS item USING (${these}) AS t WHERE item.id = ANY (ARRAY[t.item_id]) AND ${condition} RETURNING item.id),
    ended AS (
      INSERT INTO ${closed} (id, state, closed_at, closed_by)
      SELECT id, '${closedAs[type]}', ${BEGUN}, ${params.add(by ?? null)}::text FROM closed
    )`;
}

function idRows(ids: readonly number[], params: Params): string {
  return rowsOf([{ name: 'id', type: 'int8', values: ids }], params);
}
