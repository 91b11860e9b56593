import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Line, lineOf, turnOf } from '../../../model/line.ts';
import type { NewTask, Task, TaskStatus } from '../../../model/task.ts';
import { prepareRows, type Row } from '../connection.ts';
import type { LineTable } from './line-table.ts';
import { standsInLine } from '../schema/version-3.ts';
import { Wake } from '../watch.ts';

/** What one commit must still see to: who is told of it, and the lines that it touched. */
export class Aftermath {
  readonly wake = new Wake();
  /** Ids of rows that say themselves which line they are of: those that came, and those that were settled. */
  readonly joined: number[] = [];
  readonly settled: number[] = [];
  #lines: Map<string, Line> | undefined;

  /** The line of a row, as it was or as it is. Without an ordering key it has none. */
  touch(row: Task | NewTask | undefined): void {
    const line = row && lineOf(row);
    if (line) this.touchLine(line);
  }

  touchLine(line: Line): void {
    this.#lines ??= new Map();
    this.#lines.set(`${line.lane.length} ${line.lane} ${line.key}`, line);
  }

  /** A new row at the end of its line. Where it waits there, the turn of those before it stays as it is. */
  join(id: number, row: NewTask): void {
    if (row.orderingKey === undefined) return;
    if (row.status === 'pending' && row.blocked) this.joined.push(id);
    else this.touch(row);
  }

  /** A row that was settled as asked for. */
  settle(id: number): void {
    this.settled.push(id);
  }

  /** A task that a claim may take, now or later. */
  waits(row: Pick<Task, 'lane' | 'status' | 'blocked' | 'lease' | 'visibleAtMs'>): void {
    if (row.status !== 'pending' || row.lease !== undefined || row.blocked) return;
    this.wake.add(row.lane, row.visibleAtMs);
  }

  get lines(): Iterable<Line> {
    return this.#lines?.values() ?? [];
  }
}

/** Whose turn it is in the lines of ordering keys. One writer at a time: the lock of the file is the lock of every line. */
export class Turns {
  readonly #lines: LineTable;
  readonly #linesOf: StatementSync;
  readonly #heads: StatementSync;
  readonly #unblock: StatementSync;
  readonly #first: StatementSync;
  readonly #active: StatementSync;
  readonly #block: StatementSync;

  constructor(db: DatabaseSync, lines: LineTable) {
    this.#lines = lines;
    const holders = (line: string) =>
      `FROM retry_queue INDEXED BY retry_queue_line WHERE ${standsInLine} AND line = ${line}`;
    // Those who wait and the others lie apart in one index: it is changed where a task is, once for each of its moves.
    const earliest = (line: string, blocked: 0 | 1) =>
      `SELECT id ${holders(line)} AND blocked = ${blocked} ORDER BY id LIMIT 1`;
    this.#linesOf = prepareRows(
      db,
      'SELECT line FROM retry_queue WHERE id IN (SELECT value FROM json_each(?)) AND line IS NOT NULL',
    );
    this.#heads = prepareRows(
      db,
      `SELECT asked.value, head.id, head.status, head.visible_at, head.lane,
         EXISTS (SELECT 1 ${holders('asked.value')} AND blocked = 0)
       FROM json_each(?) asked LEFT JOIN retry_queue head ON head.id = (${earliest('asked.value', 1)})`,
    );
    this.#unblock = db.prepare(
      'UPDATE retry_queue SET blocked = 0 WHERE id IN (SELECT value FROM json_each(?))',
    );
    const both = `SELECT * FROM (${earliest('?1', 0)}) UNION ALL SELECT * FROM (${earliest('?1', 1)})`;
    this.#first = prepareRows(
      db,
      `SELECT id, status, visible_at, lane FROM retry_queue WHERE id = (SELECT min(id) FROM (${both}))`,
    );
    this.#active = prepareRows(
      db,
      `SELECT id, lease ${holders('?1')} AND blocked = 0 AND status = 'pending'`,
    );
    this.#block = db.prepare('UPDATE retry_queue SET blocked = ?2 WHERE id = ?1');
  }

  /** The last thing of a transaction: gives the turn to whom it belongs, in all lines that were touched. */
  advance(after: Aftermath): void {
    const touched = this.#touched(after);
    if (touched.size === 0) return;
    const next: number[] = [];
    const empty: number[] = [];
    const numbers = JSON.stringify([...touched.keys()]);
    for (const row of this.#heads.all(numbers) as unknown as Row[]) {
      const [number, id, status, visibleAtMs, lane, isActive] = row as Head;
      if (isActive === 0 && id === null) empty.push(number);
      else if (isActive === 0 && status === 'pending') {
        // As `turnOf` says where all who are left wait, as nearly always when one is done.
        next.push(id);
        after.wake.add(lane, visibleAtMs);
      } else if (touched.get(number) === 'changed') this.#giveTurn(number, after.wake);
    }
    if (next.length > 0) this.#unblock.run(JSON.stringify(next));
    if (empty.length > 0) this.#lines.drop(empty);
  }

  /** Lines after that number in which somebody waits in vain, or nobody stands, among so many. Absent `after`: these were the last. */
  stuck(after: number, limit: number): { stuck: Line[]; after?: number } {
    const lines = this.#lines.page(after, limit);
    const stuck = lines.filter(({ number }) => {
      const { first, block, unblock } = this.#turn(number);
      return !first || block.length > 0 || unblock !== undefined;
    });
    const last = lines.at(-1);
    return { stuck, ...(last && lines.length === limit ? { after: last.number } : {}) };
  }

  /** By their numbers. Where somebody has only joined, who has the turn keeps it. */
  #touched({ joined, settled, lines }: Aftermath): Map<number, 'joined' | 'changed'> {
    const touched = new Map<number, 'joined' | 'changed'>();
    for (const number of this.#numbersOf(joined)) touched.set(number, 'joined');
    for (const number of this.#numbersOf(settled)) touched.set(number, 'changed');
    for (const line of lines) {
      const number = this.#lines.find(line);
      if (number !== undefined) touched.set(number, 'changed');
    }
    return touched;
  }

  #numbersOf(ids: readonly number[]): number[] {
    if (ids.length === 0) return [];
    const rows = this.#linesOf.all(JSON.stringify(ids)) as unknown as Row[];
    return rows.map(([number]) => number as number);
  }

  #giveTurn(number: number, wake: Wake): void {
    const { first, block, unblock } = this.#turn(number);
    for (const id of block) this.#block.run(id, 1);
    if (unblock === undefined || !first) return;
    this.#block.run(unblock, 0);
    wake.add(first.lane, first.visibleAtMs);
  }

  #turn(number: number): ReturnType<typeof turnOf> & { first: First | undefined } {
    const row = this.#first.get(number) as unknown as Row | undefined;
    const first = row && {
      id: row[0] as number,
      status: row[1] as TaskStatus,
      visibleAtMs: row[2] as number,
      lane: row[3] as string,
    };
    const rows = this.#active.all(number) as unknown as Row[];
    const active = rows.map(([id, lease]) => ({
      id: id as number,
      ...(lease === null ? {} : { lease: lease as number }),
    }));
    return { ...turnOf(first, active), first };
  }
}

type First = Pick<Task, 'id' | 'status' | 'visibleAtMs' | 'lane'>;

/** The number of a line, the first who waits in it with his lane, and whether somebody does not wait. */
type Head =
  | [number, number, TaskStatus, number, string, number]
  | [number, null, null, null, null, number];
