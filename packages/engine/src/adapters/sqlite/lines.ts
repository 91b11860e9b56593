import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Line, lineOf, turnOf } from '../../line.ts';
import type { NewTask, Task, TaskStatus } from '../../task.ts';
import { prepareRows, type Row } from './connection.ts';
import { holdsPlace } from './version-2.ts';
import { Wake } from './watch.ts';

/** What one commit must still see to: who is told of it, and the lines that it touched. */
export class Aftermath {
  readonly wake = new Wake();
  #lines: Map<string, Touched> | undefined;

  /** The line of a row, as it was or as it is. Without an ordering key it has none. */
  touch(row: Task | NewTask | undefined): void {
    const line = row && lineOf(row);
    if (line) this.touchLine(line);
  }

  touchLine(line: Line): void {
    this.#lines ??= new Map();
    this.#lines.set(nameOf(line), { ...line, isOnlyJoined: false });
  }

  /** A new row at the end of its line, which waits there: the turn of those before it stays as it is. */
  join(row: NewTask): void {
    const line = lineOf(row);
    if (!line) return;
    if (row.status !== 'pending' || !row.blocked) return this.touchLine(line);
    this.#lines ??= new Map();
    const name = nameOf(line);
    if (!this.#lines.has(name)) this.#lines.set(name, { ...line, isOnlyJoined: true });
  }

  /** A task that a claim may take, now or later. */
  waits(row: Pick<Task, 'lane' | 'status' | 'blocked' | 'lease' | 'visibleAtMs'>): void {
    if (row.status !== 'pending' || row.lease !== undefined || row.blocked) return;
    this.wake.add(row.lane, row.visibleAtMs);
  }

  get lines(): Iterable<Touched> | undefined {
    return this.#lines?.values();
  }
}

type Touched = Line & { isOnlyJoined: boolean };

function nameOf({ lane, key }: Line): string {
  return `${lane.length} ${lane} ${key}`;
}

/** Whose turn it is in the lines of ordering keys. One writer at a time: the lock of the file is the lock of every line. */
export class Turns {
  readonly #next: StatementSync;
  readonly #first: StatementSync;
  readonly #active: StatementSync;
  readonly #nextLine: StatementSync;
  readonly #block: StatementSync;

  constructor(db: DatabaseSync) {
    const line = 'lane = ?1 AND ordering_key = ?2';
    const holders = `FROM retry_queue INDEXED BY retry_queue_line WHERE ${holdsPlace} AND ${line}`;
    // Those who wait and the others lie apart in one index: it is changed where a task is, once for each of its moves.
    const active = `${holders} AND blocked = 0 AND status = 'pending'`;
    const earliest = (blocked: 0 | 1) =>
      `SELECT * FROM (SELECT id ${holders} AND blocked = ${blocked} ORDER BY id LIMIT 1)`;
    const first = `id = (SELECT min(id) FROM (${earliest(0)} UNION ALL ${earliest(1)}))`;
    this.#next = prepareRows(
      db,
      `UPDATE retry_queue SET blocked = 0
       WHERE id = (SELECT id ${holders} AND blocked = 1 ORDER BY id LIMIT 1) AND status = 'pending'
         AND NOT EXISTS (SELECT 1 ${holders} AND blocked = 0)
       RETURNING visible_at`,
    );
    this.#first = prepareRows(db, `SELECT id, status, visible_at FROM retry_queue WHERE ${first}`);
    this.#active = prepareRows(db, `SELECT id, lease ${active}`);
    this.#nextLine = prepareRows(
      db,
      `SELECT lane, ordering_key FROM retry_queue INDEXED BY retry_queue_line
       WHERE ${holdsPlace} AND (lane, ordering_key) > (?1, ?2) ORDER BY lane, ordering_key LIMIT 1`,
    );
    this.#block = db.prepare('UPDATE retry_queue SET blocked = ?2 WHERE id = ?1');
  }

  /** The last thing of a transaction: gives the turn to whom it belongs, in all lines that were touched. */
  advance({ lines, wake }: Aftermath): void {
    for (const line of lines ?? []) {
      // As `turnOf` says where all who are left wait, as nearly always when one is done.
      const next = this.#next.get(line.lane, line.key) as unknown as Row | undefined;
      if (next) {
        wake.add(line.lane, next[0] as number);
        continue;
      }
      if (line.isOnlyJoined) continue;
      const { block, unblock, visibleAtMs } = this.#turn(line);
      for (const id of block) this.#block.run(id, 1);
      if (unblock === undefined) continue;
      this.#block.run(unblock, 0);
      wake.add(line.lane, visibleAtMs);
    }
  }

  /** Lines after that one in which somebody waits in vain, among so many. Absent `after`: these were the last. */
  stuck(after: Line | undefined, limit: number): { stuck: Line[]; after?: Line } {
    const stuck: Line[] = [];
    let last = after;
    for (let i = 0; i < limit; i++) {
      const row = this.#nextLine.get(last?.lane ?? '', last?.key ?? '') as unknown as Row;
      if (!row) return { stuck };
      last = { lane: row[0] as string, key: row[1] as string };
      const { block, unblock } = this.#turn(last);
      if (block.length > 0 || unblock !== undefined) stuck.push(last);
    }
    return { stuck, ...(last ? { after: last } : {}) };
  }

  #turn({ lane, key }: Line): ReturnType<typeof turnOf> & { visibleAtMs: number } {
    const row = this.#first.get(lane, key) as unknown as Row | undefined;
    const first = row && { id: row[0] as number, status: row[1] as TaskStatus };
    const rows = this.#active.all(lane, key) as unknown as Row[];
    const active = rows.map(([id, lease]) => ({
      id: id as number,
      ...(lease === null ? {} : { lease: lease as number }),
    }));
    return { ...turnOf(first, active), visibleAtMs: (row?.[2] ?? 0) as number };
  }
}
