import { queueNameOf } from '../../../model/address.ts';
import { EngineError, isEngineError, type TaskFault } from '../../../errors.ts';
import { lineOf } from '../../../model/line.ts';
import type { NewTask } from '../../../model/task.ts';
import { type Column, Params, rowsOf } from '../batch.ts';
import { columnsOfNew, isUuid } from '../columns.ts';
import type { Database, Session } from '../connection/database.ts';
import { isDataFault, isLockTimeout } from '../connection/faults.ts';
import { recordColumns, writeRecords } from '../inbox/inbox-text.ts';
import { HeldLines, LineSet } from './lines.ts';
import type { Names } from '../names.ts';
import { numberOf, timeOf } from '../rows.ts';
import { later, msOf, NOW, timeAt } from '../times.ts';
import { Wake } from '../connection/wake.ts';
import { boundedMs } from '../bounds.ts';

/** A task with its place in the batch that was given. */
interface Placed {
  task: NewTask;
  index: number;
  /** Its identity as one text, by which batches are sorted. */
  key: string;
}

interface Outcome {
  ids: (number | undefined)[];
  /** What was stored, to tell of it. */
  wake: Wake;
  /** Tasks that will never be taken. */
  faults: TaskFault[];
}

/** When a batch had to wait too long, its parts look for who it was, without waiting as long each. */
const PART_LOCK_TIMEOUT_MS = 100;

/** Stores what is new: each task's id, or undefined where its identity is known. */
export class Inserter {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  /** Also when it rejects some may be stored, which `wake` has seen then. */
  async insert(tasks: readonly NewTask[], wake: Wake): Promise<(number | undefined)[]> {
    const outcome = outcomeOf(tasks, wake);
    const { alone, ordered } = placedOf(tasks);
    const { lockTimeoutMs } = this.#database.limits;
    await this.#insertLines(ordered, outcome, lockTimeoutMs);
    await this.#insertParts(alone, outcome, lockTimeoutMs);
    const { ids, faults } = outcome;
    // What somebody has locked has no id: `change` waits for it, and the others are answered.
    if (faults.length === 0) return ids;
    throw new EngineError(
      'INVALID_TASK',
      `PostgreSQL does not take ${faults.length} of ${tasks.length} tasks; the others are stored.`,
      { faults },
    );
  }

  /** In a transaction of the caller, which a fault would end anyway. */
  async insertFor(
    session: Session,
    tasks: readonly NewTask[],
    wake: Wake,
  ): Promise<(number | undefined)[]> {
    const held = new HeldLines(this.#names, session);
    await held.lock(linesOf(tasks));
    const ids = await this.insertIn(session, tasks, wake);
    await held.advance(wake);
    return ids;
  }

  /** In a transaction that has locked the lines of what is ordered, and lets them go on afterwards. */
  async insertIn(
    session: Session,
    tasks: readonly NewTask[],
    wake: Wake,
  ): Promise<(number | undefined)[]> {
    const outcome = outcomeOf(tasks, wake);
    const { alone, ordered } = placedOf(tasks);
    await this.#insertOnce(session, ordered, outcome, '');
    await this.#insertOnce(session, alone, outcome, '');
    return outcome.ids;
  }

  /** A task that the server does not take, or that somebody is just storing, must not keep the others out. */
  async #insertParts(
    placed: readonly Placed[],
    outcome: Outcome,
    lockTimeoutMs: number,
  ): Promise<void> {
    try {
      await this.#insertOnce(this.#database, placed, outcome, patienceOf(lockTimeoutMs));
    } catch (error) {
      const kind = kindOf(error);
      const [first] = placed;
      if (placed.length === 1) {
        if (kind === 'fault') outcome.faults.push(faultOf(first!, error));
      } else {
        const middle = placed.length >> 1;
        const partTimeoutMs = Math.min(lockTimeoutMs, PART_LOCK_TIMEOUT_MS);
        await this.#insertParts(placed.slice(0, middle), outcome, partTimeoutMs);
        await this.#insertParts(placed.slice(middle), outcome, partTimeoutMs);
      }
    }
  }

  /**
   * The same for what is ordered. Divided between lines, never within one: what waits for somebody must not be overtaken
   * by what was given after it. Only a task that will never be taken leaves its place to the next.
   */
  async #insertLines(
    placed: readonly Placed[],
    outcome: Outcome,
    lockTimeoutMs: number,
  ): Promise<void> {
    if (placed.length === 0) return;
    try {
      const wake = await this.#insertOrdered(placed, outcome, patienceOf(lockTimeoutMs));
      for (const lane of wake.hint?.lanes ?? []) outcome.wake.add(lane, wake.hint?.inMs ?? 0);
    } catch (error) {
      const kind = kindOf(error);
      const middle = middleOf(placed);
      if (placed.length === 1 && kind === 'fault') outcome.faults.push(faultOf(placed[0]!, error));
      else if (middle !== undefined || kind === 'fault') {
        const at = middle ?? placed.length >> 1;
        const partTimeoutMs = Math.min(lockTimeoutMs, PART_LOCK_TIMEOUT_MS);
        await this.#insertLines(placed.slice(0, at), outcome, partTimeoutMs);
        await this.#insertLines(placed.slice(at), outcome, partTimeoutMs);
      }
    }
  }

  /** The ids are drawn after the lines are locked: in each line they are in the order of commits. */
  #insertOrdered(
    placed: readonly Placed[],
    { ids, ...outcome }: Outcome,
    patience: string,
  ): Promise<Wake> {
    const inOrder = placed.toSorted((a, b) => a.index - b.index);
    return this.#database.transaction(async (session) => {
      const wake = new Wake();
      const held = new HeldLines(this.#names, session);
      await held.lock(linesOf(placed.map(({ task }) => task)), patience);
      for (const { index } of placed) ids[index] = undefined;
      await this.#insertOnce(session, inOrder, { ...outcome, ids, wake }, patience);
      await held.advance(wake);
      return wake;
    });
  }

  async #insertOnce(
    session: Session,
    placed: readonly Placed[],
    { ids, wake }: Outcome,
    patience: string,
  ): Promise<void> {
    if (placed.length === 0) return;
    const params = new Params();
    const tasks = placed.map(({ task }) => task);
    const text = insertText(this.#names, tasks, params, patience);
    const [row] = await session.query(text, params.values);
    const stored = idsOf(row?.[0]);
    if (stored.length === placed.length) {
      // An insert from a list stores and answers in the order of the list.
      for (const [i, { index }] of placed.entries()) ids[index] = stored[i];
    } else if (stored.length > 0) {
      const byKey = await this.#keysOf(session, stored);
      for (const { index, key } of placed) ids[index] = byKey.get(key);
    }
    const nowMs = timeOf(row?.[1]);
    for (const { index, task } of placed) if (ids[index] !== undefined) wake.see(task, nowMs);
  }

  async #keysOf(session: Session, ids: readonly number[]): Promise<Map<string, number>> {
    const rows = await session.query(
      `SELECT id, message_id, original_queue, kind FROM ${this.#names.queue} WHERE id = ANY($1::bigint[])`,
      [`{${ids.join(',')}}`],
    );
    return new Map(
      rows.map(([id, messageId, queue, kind]) => [
        keyOf(messageId as string, queue as string, kind as string),
        numberOf(id),
      ]),
    );
  }
}

function outcomeOf(tasks: readonly NewTask[], wake: Wake): Outcome {
  return { ids: Array.from({ length: tasks.length }), wake, faults: [] };
}

function faultOf({ task, index }: Placed, error: unknown): TaskFault {
  const message = error instanceof Error ? error.message : String(error);
  const code = isUuid(task.messageId) ? 'INVALID_TASK' : 'INVALID_ID';
  return { path: `${index}`, code, message };
}

/** One statement that stores a batch and the executions that it comes with, and answers the new ids as an array. */
function insertText(
  names: Names,
  tasks: readonly NewTask[],
  params: Params,
  patience: string,
): string {
  const { columns, sql } = columnsOfNew(tasks);
  const due = dueOf(tasks);
  const hasRecords = tasks.some(({ record }) => record);
  const records = hasRecords ? recordColumns(tasks.map(({ record }) => record)) : [];
  const source = rowsOf([...columns, ...due.columns, ...records], params);
  const targets = [
    ...sql,
    { name: 'created_at', value: NOW },
    { name: 'next_retry_at', value: due.sql },
    { name: 'visible_at', value: due.sql },
  ];
  if (columns.some(({ name }) => name === 'status')) {
    targets.push({ name: 'finished_at', value: `CASE WHEN u.status <> 'pending' THEN ${NOW} END` });
  }
  if (hasRecords) {
    targets.push({
      name: 'first_at',
      value: `${NOW} - u.record_duration * INTERVAL '1 millisecond'`,
    });
  }
  const insert = `INSERT INTO ${names.queue} (${targets.map(({ name }) => name).join(', ')})
    SELECT ${targets.map(({ value }) => value).join(', ')}`;
  const onKnown = 'ON CONFLICT (message_id, original_queue, kind) DO NOTHING';
  const answer = `SELECT array_agg(id)::text AS ids, ${msOf(NOW)} AS now FROM new`;
  if (!hasRecords) {
    return `WITH new AS (${insert} FROM (${source}) AS u ${patience} ${onKnown} RETURNING id) ${answer}`;
  }
  const identity = 'message_id, original_queue, kind';
  return `WITH u AS MATERIALIZED (${source}),
    new AS (${insert} FROM u ${patience} ${onKnown} RETURNING id, generation, ${identity}),
    recorded AS (SELECT new.id, new.generation, u.record_attempt, u.record_duration, u.record_failure, u.record_answer
      FROM new JOIN u USING (${identity})),
    record AS (${writeRecords(names, 'recorded')})
    ${answer}`;
}

/** When a task is due: a delay from now, or a time, which is now where it has passed. */
function dueOf(tasks: readonly NewTask[]): { columns: Column[]; sql: string } {
  const inMs = tasks.map(({ due }) => ('inMs' in due ? boundedMs(due.inMs) : null));
  const atMs = tasks.map(({ due }) => ('atMs' in due ? boundedMs(due.atMs) : null));
  const delay: Column = { name: 'due_in', type: 'float8', values: inMs };
  const time: Column = { name: 'due_at', type: 'float8', values: atMs };
  const byDelay = later('u.due_in');
  const byTime = `greatest(${timeAt('u.due_at')}, ${NOW})`;
  if (!atMs.some((value) => value !== null)) return { columns: [delay], sql: byDelay };
  if (!inMs.some((value) => value !== null)) return { columns: [time], sql: byTime };
  return {
    columns: [delay, time],
    sql: `CASE WHEN u.due_at IS NULL THEN ${byDelay} ELSE ${byTime} END`,
  };
}

/** For this statement alone, without a setting of the session: it is worked out before the first row is stored. */
function patienceOf(lockTimeoutMs: number): string {
  return `WHERE (SELECT set_config('lock_timeout', '${lockTimeoutMs}', true)) IS NOT NULL`;
}

/** Whether somebody has it locked, or it will never be taken; anything else is thrown on. */
function kindOf(error: unknown): 'locked' | 'fault' {
  if (isEngineError(error) && isLockTimeout(error.cause)) return 'locked';
  if (isDataFault(error) || (isEngineError(error) && error.code === 'INVALID_ID')) return 'fault';
  throw error;
}

function linesOf(tasks: readonly NewTask[]): LineSet {
  return new LineSet(tasks.map(lineOf));
}

/** Where the second half of the lines begins; undefined: there is only one line. */
function middleOf(placed: readonly Placed[]): number | undefined {
  const starts = placed.flatMap(({ task }, i) => {
    const before = placed[i - 1]?.task;
    const isSame = before?.lane === task.lane && before.orderingKey === task.orderingKey;
    return i === 0 || isSame ? [] : [i];
  });
  return starts[starts.length >> 1];
}

/**
 * Each once. What has no ordering key is sorted by identity: batches that overlap then wait for each other in one order,
 * and never for each other at once. What has one is sorted by line, and within it stays as it was given.
 */
function placedOf(tasks: readonly NewTask[]): { alone: Placed[]; ordered: Placed[] } {
  const placed = tasks.map((task, index) => {
    const { messageId, destination } = task;
    const key = keyOf(messageId, queueNameOf(destination.address), destination.kind);
    return { task, index, key };
  });
  if (!isSorted(placed)) placed.sort((a, b) => compare(a.key, b.key) || a.index - b.index);
  const once = placed.filter(({ key }, i) => key !== placed[i - 1]?.key);
  if (!tasks.some(({ orderingKey }) => orderingKey !== undefined)) {
    return { alone: once, ordered: [] };
  }
  return {
    alone: once.filter(({ task }) => task.orderingKey === undefined),
    ordered: once.filter(({ task }) => task.orderingKey !== undefined).sort(byLine),
  };
}

function byLine(a: Placed, b: Placed): number {
  return (
    compare(a.task.lane, b.task.lane) ||
    compare(a.task.orderingKey ?? '', b.task.orderingKey ?? '') ||
    a.index - b.index
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function isSorted(placed: readonly Placed[]): boolean {
  return placed.every(({ key }, i) => i === 0 || placed[i - 1]!.key <= key);
}

/** A UUID has a fixed length, and no kind or queue has a NUL in it. */
function keyOf(messageId: string, queue: string, kind: string): string {
  return `${messageId.toLowerCase()}${queue}\0${kind}`;
}

/** An array of numbers as the server writes it; nothing where it would be empty. */
function idsOf(value: unknown): number[] {
  return value == null ? [] : (value as string).slice(1, -1).split(',').map(Number);
}
