import { lineOf } from '../../../model/line.ts';
import { queueNameOf } from '../../../model/address.ts';
import { actOn, type ItemChange, revived } from '../../../model/item-moves.ts';
import type { ActResult, InboxItem, ItemAction, JobHold } from '../../../ports/inbox.ts';
import { laneOf, type NewTask, type Task } from '../../../model/task.ts';
import { isPlain, linesText, lockText, plainText } from './act-text.ts';
import { Params, rowsOf } from '../batch.ts';
import { boundedMs } from '../bounds.ts';
import { updateTasks } from '../schedule/change.ts';
import { type Database, Restart, type Session } from '../connection/database.ts';
import { holdJob, writeJob } from '../documents.ts';
import { isUniqueFault } from '../connection/faults.ts';
import type { Inserter } from '../schedule/insert.ts';
import { changeColumns, destinationIn, itemOf, selectItems } from './item-rows.ts';
import { markMembers } from './jobs.ts';
import { HeldLines, LineSet } from '../schedule/lines.ts';
import type { Names } from '../names.ts';
import { openColumns, openValues } from './open-schema.ts';
import { listOf, numberOf, taskColumns, taskOf, timeOf } from '../rows.ts';
import { msOf, timeAt } from '../times.ts';
import { Wake } from '../connection/wake.ts';

/** What became of each item, and where work is due now. */
interface Acted {
  results: ActResult[];
  wake: Wake;
}

/** One call, within its transaction. */
interface Scene {
  session: Session;
  action: ItemAction;
  held: HeldLines;
  /** Also those that turn out to be needed, for the next try. */
  lines: LineSet;
  wake: Wake;
}

/**
 * What operators do to items, in one transaction. Locks are always taken in this order: the document of the job, lines,
 * tasks, items. One statement does all plain items. The pure move does the others one by one, under a lock, so that only
 * one payload is in memory at a time.
 */
export class Actor {
  readonly #database: Database;
  readonly #names: Names;
  readonly #inserter: Inserter;

  constructor(database: Database, names: Names, inserter: Inserter) {
    this.#database = database;
    this.#names = names;
    this.#inserter = inserter;
  }

  async act(
    ids: readonly number[],
    action: ItemAction,
    under: JobHold<ActResult[]> | undefined,
  ): Promise<Acted | undefined> {
    const lines = new LineSet();
    return this.#database.transaction(async (session) => {
      if (under && !(await holdJob(session, this.#names, under))) return undefined;
      const held = new HeldLines(this.#names, session);
      const scene: Scene = { session, action, held, lines, wake: new Wake() };
      const results = await this.#actOnAll(scene, ids);
      await held.advance(scene.wake);
      if (under) {
        await markMembers(session, this.#names, under.job, ids, results);
        if (!(await writeJob(session, this.#names, under, under.next(results))))
          throw new Restart();
      }
      return { results, wake: scene.wake };
    });
  }

  async #actOnAll(scene: Scene, ids: readonly number[]): Promise<ActResult[]> {
    if (scene.action.type === 'pass') return ids.map(() => 'fault');
    const once = [...new Set(ids)].sort((a, b) => a - b);
    if (once.length === 0) return [];
    await this.#lockLines(scene, once);
    const done = await this.#actOnPlain(scene, once);
    await this.#lock(
      scene.session,
      once.filter((id) => !done.has(id)),
    );
    const results: ActResult[] = [];
    // An id that is given twice counts as done once. The second time the item is found closed.
    for (const id of ids) {
      results.push(done.delete(id) ? 'done' : await this.#actOnOne(scene, id));
    }
    return results;
  }

  async #lockLines({ session, action, held, lines }: Scene, ids: readonly number[]): Promise<void> {
    const params = new Params();
    const rows = await session.query(
      linesText(this.#names, ids, isPlain(action) ? 'open' : 'all', params),
      params.values,
    );
    for (const [lane, orderingKey, edit] of rows) {
      const key = orderingKey as string;
      lines.add({ lane: lane as string, key });
      if (action.type !== 'replay') continue;
      const to = action.edit?.destination ?? destinationIn(edit);
      if (to) lines.add({ lane: laneOf(to), key });
    }
    await held.lock(lines);
  }

  /** Acts on all plain items by one statement and returns their ids. The others are left as they were. */
  async #actOnPlain(scene: Scene, ids: readonly number[]): Promise<Set<number>> {
    const { session, action } = scene;
    if (!isPlain(action)) return new Set();
    const params = new Params();
    const text = plainText(this.#names, ids, action, params);
    const [row] = await session.query(text, params.values);
    const [numbers, lanes, lines, closed] = row!;
    const done = listOf<number>(numbers);
    // Somebody changed or closed an item after its task was read: undo everything and look again.
    if (numberOf(closed) < done.length) throw new Restart();
    for (const lane of listOf<string>(lanes)) this.#saw(scene, lane, null);
    for (const [lane, key] of listOf<[string, string]>(lines)) this.#saw(scene, lane, key);
    return new Set(done.map((n) => ids[n - 1]!));
  }

  /** Locks these items and their tasks until the commit. */
  async #lock(session: Session, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const params = new Params();
    await session.query(lockText(this.#names, ids, params), params.values);
  }

  #saw(scene: Scene, lane: unknown, orderingKey: unknown): void {
    if (orderingKey !== null) this.#need(scene, [{ lane, orderingKey } as Task]);
    else if (scene.action.type === 'replay') scene.wake.add(lane as string, 0);
  }

  /** The lines of these rows are locked, or all begins anew with them. */
  #need({ held, lines }: Scene, rows: readonly (Pick<Task, 'lane' | 'orderingKey'> | undefined)[]) {
    const needed = rows.flatMap((row) => (row ? (lineOf(row) ?? []) : []));
    for (const line of needed) lines.add(line);
    if (!needed.every((line) => held.holds(line))) throw new Restart();
  }

  /** Its task and itself are locked already. */
  async #actOnOne(scene: Scene, id: number): Promise<ActResult> {
    const { session, action } = scene;
    const { item, task, nowMs } = await this.#read(session, id);
    const change = actOn(action, item, task, nowMs);
    if (!change.item && !change.task && !change.added) return change.result;
    this.#need(scene, [task, change.task, change.added]);
    await session.query('SAVEPOINT one');
    try {
      const result = await this.#write(scene, change, item!, task, nowMs);
      await session.query('RELEASE SAVEPOINT one');
      return result;
    } catch (error) {
      if (!isUniqueFault(error)) throw error;
      // Somebody has just opened another one of this message.
      await session.query('ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one');
      return 'gone';
    }
  }

  async #read(
    session: Session,
    id: number,
  ): Promise<{ item?: InboxItem; task?: Task; nowMs: number }> {
    const [row] = await session.query(
      `SELECT item.*, ${msOf('transaction_timestamp()')} AS now
       FROM (SELECT) AS once LEFT JOIN (${selectItems(this.#names)} WHERE item.id = $1::bigint) AS item ON true`,
      [id],
    );
    const nowMs = timeOf(row!.at(-1));
    if (row![0] === null) return { nowMs };
    const item = itemOf(row!);
    if (item.taskId === undefined) return { item, nowMs };
    const [found] = await session.query(
      `SELECT ${taskColumns.join(', ')} FROM ${this.#names.queue} AS q WHERE id = $1::bigint FOR UPDATE`,
      [item.taskId],
    );
    return { item, nowMs, ...(found ? { task: taskOf(found) } : {}) };
  }

  /** The new row first: where it is known already, nothing is written. The item before its task: it keeps what was there. */
  async #write(
    scene: Scene,
    { result, item, task, added, isMoved }: ItemChange,
    before: InboxItem,
    known: Task | undefined,
    nowMs: number,
  ): Promise<ActResult> {
    const { session, wake } = scene;
    if (item?.state === 'open' && before.state !== 'open' && item.taskId === undefined) {
      if (await this.#hasOpenRaw(session, item.messageId)) return 'gone';
    }
    if (isMoved && (await this.#hasLater(session, before))) return 'gone';
    const due = { atMs: nowMs };
    const [addedId] = added
      ? await this.#inserter.insertIn(session, [{ ...added, due }], wake)
      : [];
    if (added && addedId === undefined) {
      const isRevived = !isMoved && (await this.#revive(scene, added, nowMs));
      if (!isRevived) return 'conflict';
    }
    if (item) {
      const moved = isMoved && addedId !== undefined ? { ...item, taskId: addedId } : item;
      await this.#writeItem(session, moved, before.state === 'open');
      if (moved.taskId !== before.taskId)
        await this.#moveAttempts(session, before.taskId!, addedId!);
    }
    if (task && known) {
      await updateTasks(session, this.#names, [{ before: known, after: task }]);
      wake.see(task, nowMs);
    }
    return result;
  }

  /** A row that was cancelled there is written again. False: there is another one. */
  async #revive(scene: Scene, added: NewTask, nowMs: number): Promise<boolean> {
    const { session, wake } = scene;
    const { messageId, destination } = added;
    const [row] = await session.query(
      `SELECT ${taskColumns.join(', ')} FROM ${this.#names.queue} AS q
       WHERE message_id = $1::uuid AND original_queue = $2 AND kind = $3 AND status = 'cancelled' FOR UPDATE`,
      [messageId, queueNameOf(destination.address), destination.kind],
    );
    if (!row) return false;
    const before = taskOf(row);
    this.#need(scene, [before]);
    const after = revived(before, added, nowMs);
    await updateTasks(session, this.#names, [{ before, after }]);
    wake.see(after, nowMs);
    return true;
  }

  /** The executions of a task belong to another row from now on. */
  async #moveAttempts(session: Session, from: number, to: number): Promise<void> {
    await session.query(
      `UPDATE ${this.#names.attempts} SET task_id = $2::bigint WHERE task_id = $1::bigint`,
      [from, to],
    );
  }

  async #hasLater(session: Session, { id, taskId, messageId }: InboxItem): Promise<boolean> {
    const rows = await session.query(
      `SELECT FROM ${this.#names.inbox} WHERE message_id = $1::uuid AND task_id = $2::bigint AND id > $3::bigint`,
      [messageId, taskId, id],
    );
    return rows.length > 0;
  }

  async #hasOpenRaw(session: Session, messageId: string): Promise<boolean> {
    const rows = await session.query(`SELECT FROM ${this.#names.open} WHERE raw_id = $1::uuid`, [
      messageId,
    ]);
    return rows.length > 0;
  }

  /** One with a change takes payload and context from its task, before that gets others. */
  async #writeItem(session: Session, item: InboxItem, wasOpen: boolean): Promise<void> {
    const columns = changeColumns(item);
    const params = new Params();
    const source = rowsOf(columns, params);
    const isFirst = `item.payload IS NULL AND u.edit IS NOT NULL`;
    await session.query(
      `UPDATE ${this.#names.inbox} AS item SET ${columns.map(({ name }) => `${name} = u.${name}`).join(', ')},
         context = CASE WHEN ${isFirst} THEN task.context ELSE item.context END,
         task_edited = CASE WHEN ${isFirst} THEN task.edited ELSE item.task_edited END,
         task_on_dead = CASE WHEN ${isFirst} THEN task.on_dead ELSE item.task_on_dead END,
         payload = CASE WHEN ${isFirst} THEN task.original_payload ELSE item.payload END
       FROM (${source}) AS u LEFT JOIN ${this.#names.queue} AS task ON task.id = u.task_id
       WHERE item.id = ${params.add(item.id)}::bigint`,
      params.values,
    );
    await this.#writeState(session, item, wasOpen);
  }

  /** Moves it between the tables of open and closed items. One that stays open only learns whether it is changed. */
  async #writeState(session: Session, item: InboxItem, wasOpen: boolean): Promise<void> {
    const { inbox, open, closed, deltas } = this.#names;
    const { id, state, closedAtMs, closedBy } = item;
    await session.query(`DELETE FROM ${state === 'open' ? closed : open} WHERE id = $1::bigint`, [
      id,
    ]);
    if (state === 'open') {
      await session.query(
        `INSERT INTO ${open} (${openColumns}) SELECT ${openValues} FROM ${inbox} AS item WHERE id = $1::bigint
         ON CONFLICT (id) DO UPDATE SET edited = excluded.edited`,
        [id],
      );
      if (wasOpen) return;
      await session.query(`INSERT INTO ${deltas} (fingerprint, open) VALUES ($1, 1)`, [
        item.fingerprint,
      ]);
      return;
    }
    await session.query(
      `INSERT INTO ${closed} (id, state, closed_at, closed_by) VALUES ($1::bigint, $2, ${timeAt('$3::float8')}, $4)`,
      [id, state, boundedMs(closedAtMs), closedBy ?? null],
    );
  }
}
