import type { StatementSync } from 'node:sqlite';
import type { Task } from '../../../model/task.ts';
import type { Row } from '../connection.ts';
import { taskOf } from '../rows.ts';

/** A claim beyond these would be a long transaction: there is more, and the next claim gets it. */
const MAX_TASKS = 1000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Rows read at once. The first few tell how large they are, so that hardly more is read than is taken. */
const FIRST_ROWS = 16;
const MAX_ROWS = 128;

/** Where rows come from, earliest first. What was leased must not come again. */
interface Source {
  limit: number;
  read: (rows: number) => Row[];
}

/** What one claim takes: as much as is asked for and fits, and always one. */
export class LeaseBatch {
  readonly tasks: Task[] = [];
  readonly #update: StatementSync;
  readonly #lease: number;
  readonly #endMs: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(
    update: StatementSync,
    { lease, endMs, maxBytes }: { lease: number; endMs: number; maxBytes: number },
  ) {
    this.#update = update;
    this.#lease = lease;
    this.#endMs = endMs;
    this.#maxBytes = Math.min(maxBytes, MAX_BYTES);
  }

  /** In rounds, one from each: where bytes are short every source gives its first before any gives its second. */
  takeFrom(sources: readonly Source[]): void {
    const open = sources.map((source) => new Cursor(source));
    while (open.length > 0) {
      const wanted = this.#rows(open.length);
      let kept = 0;
      for (const cursor of open) {
        if (this.tasks.length === MAX_TASKS) return;
        const row = cursor.next(wanted);
        if (!row) continue;
        if (!this.#take(taskOf(row))) return;
        open[kept++] = cursor;
      }
      open.length = kept;
    }
  }

  #take(task: Task): boolean {
    const bytes = this.#bytes + task.payload.length;
    if (bytes > this.#maxBytes && this.tasks.length > 0) return false;
    this.#bytes = bytes;
    task.lease = this.#lease;
    task.visibleAtMs = this.#endMs;
    task.claims += 1;
    task.arrived = false;
    this.#update.run(this.#endMs, this.#lease, task.id);
    this.tasks.push(task);
    return true;
  }

  /** How many rows of each source to read ahead: what may still be taken, shared by the sources. */
  #rows(sources: number): number {
    const count = this.tasks.length;
    if (count === 0) return FIRST_ROWS;
    const fitting = ((this.#maxBytes - this.#bytes) * count) / Math.max(1, this.#bytes);
    const room = Math.min(fitting, MAX_TASKS - count) / sources;
    return Math.min(Math.max(1, Math.ceil(room)), MAX_ROWS);
  }
}

/** Reads a source ahead. It reads again only when all that it gave is leased. */
class Cursor {
  readonly #read: Source['read'];
  #left: number;
  #rows: Row[] = [];
  #next = 0;

  constructor({ limit, read }: Source) {
    this.#left = limit;
    this.#read = read;
  }

  next(wanted: number): Row | undefined {
    if (this.#next === this.#rows.length && this.#left > 0) {
      const asked = Math.min(this.#left, wanted);
      this.#rows = this.#read(asked);
      this.#left = this.#rows.length < asked ? 0 : this.#left - asked;
      this.#next = 0;
    }
    return this.#rows[this.#next++];
  }
}
