import type { Failure } from 'redrive';
import { EngineError } from '../../../errors.ts';
import { lineOf } from '../../../model/line.ts';
import type { Change } from '../../../model/moves.ts';
import type { TaskKey } from '../../../ports/schedule.ts';
import type { NewTask, Task } from '../../../model/task.ts';
import { encodeArray } from '../arrays.ts';
import { type Column, few, Params, rowsOf } from '../batch.ts';
import { columnsOfChange, identityColumns, isUuid } from '../columns.ts';
import { Restart, type Session } from '../connection/database.ts';
import { failureJson, KEPT } from '../inbox/item-rows.ts';
import {
  ONCE_MORE,
  openItems,
  outboxColumns,
  recordColumns,
  sendAll,
  writeRecords,
} from '../inbox/inbox-text.ts';
import type { Inserter } from './insert.ts';
import { HeldLines, LineSet } from './lines.ts';
import type { Names } from '../names.ts';
import { isTrue, parsed, taskColumns, taskOf, timeOf } from '../rows.ts';
import type { Wake } from '../connection/wake.ts';
import { msOf } from '../times.ts';
import { countOf } from '../bounds.ts';

type Move<T> = (task: Task | undefined, nowMs: number, index: number) => Change<T>;

/** A move that was made, before it is written. */
interface Made<T> {
  index: number;
  before: Task | undefined;
  change: Change<T>;
}

/** Equal keys take a round each, and so does a row that appears meanwhile. */
const MAX_ROUNDS = 10_000;

/**
 * Reads tasks under a lock, moves them and writes them, within a transaction. Where one of them is ordered, its line is
 * locked before any row is; what no move has asked for before is known only after it, and then all begins anew.
 */
export class Changer {
  readonly #names: Names;
  readonly #inserter: Inserter;

  constructor(names: Names, inserter: Inserter) {
    this.#names = names;
    this.#inserter = inserter;
  }

  async change<T>(
    session: Session,
    keys: readonly TaskKey[],
    move: Move<T>,
    wake: Wake,
    transaction: 'ours' | 'caller',
    /** What earlier tries have found to be needed. */
    lines: LineSet,
  ): Promise<T[]> {
    const held = new HeldLines(this.#names, session);
    await held.lock(lines);
    const results: T[] = [];
    let open = keys.map((key, index) => ({ key, index }));
    for (let round = 0; open.length > 0; round++) {
      if (round === MAX_ROUNDS) {
        throw new EngineError(
          'STORE_UNAVAILABLE',
          'Tasks come and go faster than they can be changed. Trying again is safe.',
        );
      }
      const { rows, nowMs, ahead } = await this.#read(
        session,
        open.map(({ key }) => key),
        held,
      );
      if (!ahead.isEmpty) {
        await this.#lockMore(held, lines, ahead, round === 0 && held.isEmpty ? 'new' : transaction);
        continue;
      }
      const later: typeof open = [];
      const made: Made<T>[] = [];
      const seen = new Set<string>();
      for (const one of open) {
        const before = rows.get(textOf(one.key));
        const name = before ? `${before.id}` : textOf(one.key);
        // Equal keys one after the other: each sees what became of the one before.
        if (seen.has(name)) later.push(one);
        else made.push({ index: one.index, before, change: move(before, nowMs, one.index) });
        seen.add(name);
      }
      await this.#lockMore(held, lines, linesOf(made), transaction);
      const written = await this.#write(session, made, wake);
      // Rows are locked before any is stored, by everybody: whoever locked one now could wait for who waits for us.
      if (written.size < made.length && transaction === 'ours') throw new Restart();
      for (const { index, change } of made) {
        if (written.has(index)) results[index] = change.result;
        else later.push({ key: keys[index]!, index });
      }
      for (const { change } of made) {
        if (change.task && 'id' in change.task) wake.see(change.task, nowMs);
      }
      open = later.sort((a, b) => a.index - b.index);
    }
    await held.advance(wake);
    return results;
  }

  /** Other lines and rows may be locked already: a transaction of ours gives them up first. That of a caller cannot. */
  async #lockMore(
    held: HeldLines,
    lines: LineSet,
    more: LineSet,
    transaction: 'new' | 'ours' | 'caller',
  ): Promise<void> {
    const missing = [...more].filter((line) => !held.holds(line));
    for (const line of missing) lines.add(line);
    if (missing.length > 0 && transaction === 'ours') throw new Restart();
    await held.lock(missing);
  }

  /**
   * Locks in the order of ids, and takes the time when the last lock is had. Where some are in lines that are not locked
   * it locks nothing and says which.
   */
  async #read(
    session: Session,
    keys: readonly TaskKey[],
    held: HeldLines,
  ): Promise<{ rows: Map<string, Task>; nowMs: number; ahead: LineSet }> {
    const params = new Params();
    const ids = keys.flatMap((key) => ('messageId' in key ? [] : [key.id]));
    const named = keys.flatMap((key) => ('messageId' in key && isUuid(key.messageId) ? [key] : []));
    const columns = 'q.id, q.lane, q.ordering_key';
    const wanted = [
      `SELECT ${columns} FROM unnest(${params.add(encodeArray('int8', ids))}::int8[]) AS u(id) CROSS JOIN LATERAL (
         SELECT ${columns} FROM ${this.#names.queue} AS q WHERE q.id = u.id LIMIT 1
       ) AS q`,
    ];
    if (named.length > 0) {
      wanted.push(`SELECT ${columns} FROM (${rowsOf(identityColumns(named), params)}) AS u CROSS JOIN LATERAL (
        SELECT ${columns} FROM ${this.#names.queue} AS q WHERE q.message_id = u.message_id
        AND q.original_queue = u.original_queue AND q.kind = u.kind LIMIT 1
      ) AS q`);
    }
    const found = await session.query(
      `WITH wanted AS MATERIALIZED (${wanted.join(' UNION ')} ORDER BY id),
       ahead AS MATERIALIZED (SELECT lane, ordering_key FROM wanted WHERE ${held.notHeld(params)}),
       locked AS MATERIALIZED (
         SELECT q.* FROM wanted CROSS JOIN LATERAL (
           SELECT ${taskColumns.join(', ')} FROM ${this.#names.queue} AS q
           WHERE q.id = wanted.id AND NOT EXISTS (SELECT FROM ahead) FOR UPDATE
         ) AS q
       )
       SELECT locked.*, EXISTS (SELECT FROM ahead) AS is_ahead,
         (SELECT json_agg(ahead) FROM ahead) AS lines, ${msOf('clock_timestamp()')} AS now
       FROM (SELECT) AS once LEFT JOIN locked ON true`,
      params.values,
    );
    const rows = new Map<string, Task>();
    for (const row of found) {
      if (row[0] === null) continue;
      const task = taskOf(row);
      rows.set(textOf({ id: task.id }), task);
      rows.set(textOf(task), task);
    }
    const [isAhead, lines, now] = found.at(-1)!.slice(-3);
    const ahead = new LineSet();
    if (isTrue(isAhead)) {
      for (const line of parsed(lines) as { lane: string; ordering_key: string }[]) {
        ahead.add({ lane: line.lane, key: line.ordering_key });
      }
    }
    return { rows, nowMs: timeOf(now), ahead };
  }

  /** The places that are written. The others met a row that was stored meanwhile: they must look again. */
  async #write<T>(session: Session, made: readonly Made<T>[], wake: Wake): Promise<Set<number>> {
    const written = new Set(made.map(({ index }) => index));
    const ids = new Map<number, number>();
    const added: { index: number; task: NewTask }[] = [];
    const moved: { before: Task; after: Task }[] = [];
    for (const { index, before, change } of made) {
      const { task } = change;
      if (!task) continue;
      if (!('id' in task)) added.push({ index, task });
      else {
        moved.push({ before: before!, after: task });
        ids.set(index, task.id);
      }
    }
    if (added.length > 0) {
      const stored = await this.#inserter.insertIn(
        session,
        added.map(({ task }) => task),
        wake,
      );
      for (const [i, { index }] of added.entries()) {
        const id = stored[i];
        if (id === undefined) written.delete(index);
        else ids.set(index, id);
      }
    }
    await updateTasks(session, this.#names, moved);
    await this.#writeEffects(
      session,
      made
        .filter(({ index }) => written.has(index))
        .map(({ index, change }) => ({ id: ids.get(index), change })),
    );
    return written;
  }

  /** Items, occurrences, outbox messages and executions. */
  async #writeEffects(
    session: Session,
    made: readonly { id: number | undefined; change: Change<unknown> }[],
  ): Promise<void> {
    const effects = made.filter(
      ({ change: { item, occurrence, outbox, record } }) => item ?? occurrence ?? outbox ?? record,
    );
    if (effects.length === 0) return;
    const has = (name: 'item' | 'occurrence' | 'outbox' | 'record') =>
      effects.some(({ change }) => change[name]);
    const params = new Params();
    const parts = [`u AS MATERIALIZED (${rowsOf(effectColumns(effects), params)})`];
    if (has('record')) parts.push(`record AS (${writeRecords(this.#names, 'u')})`);
    if (has('item')) parts.push(openItems(this.#names, 'u', 'n'));
    if (has('outbox')) parts.push(`sent AS (${sendAll(this.#names, 'u', 'n')})`);
    if (has('occurrence')) {
      parts.push(`occurred AS (
        UPDATE ${this.#names.inbox} AS item SET ${ONCE_MORE}
        FROM (${few('u', 'n')}) AS u CROSS JOIN LATERAL (
          SELECT id FROM ${this.#names.open} AS open WHERE open.task_id = u.again_task OFFSET 0
        ) AS open WHERE item.id = ANY (ARRAY[open.id])
      )`);
    }
    await session.query(`WITH ${parts.join(', ')} SELECT`, params.values);
  }
}

/** Writes what differs. The rows are locked. */
export async function updateTasks(
  session: Session,
  names: Names,
  moved: readonly { before: Task; after: Task }[],
): Promise<void> {
  const { columns, sql } = columnsOfChange(moved);
  if (sql.length === 0) return;
  await keepOriginals(session, names, moved);
  const params = new Params();
  const id: Column = { name: 'id', type: 'int8', values: moved.map(({ after }) => after.id) };
  await session.query(
    `UPDATE ${names.queue} AS q SET ${sql.map(({ name, value }) => `${name} = ${value}`).join(', ')}
     FROM (${few(`(${rowsOf([id, ...columns], params)})`, 'n')}) AS u WHERE q.id = ANY (ARRAY[u.id])`,
    params.values,
  );
}

/** Where a task gets something else, items of it that have nothing of their own keep what was there. */
async function keepOriginals(
  session: Session,
  names: Names,
  moved: readonly { before: Task; after: Task }[],
): Promise<void> {
  const replaced = moved.filter(({ before, after }) => {
    const isOther = before.payload !== after.payload || before.context !== after.context;
    // It has been in the inbox, or is there.
    const { generation, status } = before;
    return isOther && (generation > 0 || status === 'failed' || status === 'cancelled');
  });
  if (replaced.length === 0) return;
  await session.query(
    `UPDATE ${names.inbox} AS item SET ${KEPT}
     FROM ${names.queue} AS q
     WHERE item.task_id = ANY ($1::int8[]) AND item.payload IS NULL AND q.id = item.task_id`,
    [
      encodeArray(
        'int8',
        replaced.map(({ before }) => before.id),
      ),
    ],
  );
}

/** The lines of tasks as they were and as they are to be. */
function linesOf(made: readonly Made<unknown>[]): LineSet {
  const tasks = made.flatMap(({ before, change }) => [before, change.task]);
  return new LineSet(tasks.map((task) => task && lineOf(task)));
}

function effectColumns(
  effects: readonly { id: number | undefined; change: Change<unknown> }[],
): Column[] {
  const changes = effects.map(({ change }) => change);
  const of = <V>(get: (task: Task | NewTask) => V) =>
    changes.map(({ task }) => (task ? get(task) : undefined));
  return [
    { name: 'id', type: 'int8', values: effects.map(({ id }) => id) },
    { name: 'message_id', type: 'uuid', values: of((task) => task.messageId) },
    { name: 'kind', type: 'text', values: of((task) => task.destination.kind) },
    { name: 'address', type: 'text', values: of((task) => task.destination.address) },
    { name: 'lane', type: 'text', values: of((task) => task.lane) },
    { name: 'attempt', type: 'int4', values: of((task) => countOf(task.attempt)) },
    { name: 'max_retries', type: 'int4', values: of((task) => countOf(task.maxAttempts - 1)) },
    { name: 'generation', type: 'int4', values: of((task) => countOf(task.generation)) },
    { name: 'job', type: 'int8', values: of((task) => task.job) },
    { name: 'ordering_key', type: 'text', values: of((task) => task.orderingKey) },
    { name: 'reason', type: 'text', values: changes.map(({ item }) => item?.reason) },
    { name: 'fingerprint', type: 'text', values: changes.map(({ item }) => item?.fingerprint) },
    {
      name: 'item_failure',
      type: 'json',
      values: changes.map(({ item }) => jsonOf(item?.failure)),
    },
    {
      name: 'again_task',
      type: 'int8',
      values: changes.map(({ occurrence }) => occurrence?.taskId),
    },
    ...recordColumns(changes.map(({ record }) => record)),
    ...outboxColumns(changes.map(({ outbox }) => outbox)),
  ];
}

function textOf(key: TaskKey): string {
  if (!('messageId' in key)) return `${key.id}`;
  const { messageId, destination } = key;
  return `${messageId.toLowerCase()}${destination.kind}\0${destination.address}`;
}

function jsonOf(failure: Failure | undefined): string | undefined {
  return failure && failureJson(failure);
}
