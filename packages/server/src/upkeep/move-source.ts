/** The file that is moved: held by nobody else, and read in small parts. */
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { ServiceError } from '../service-error.ts';
import { MOVING } from './left-behind.ts';
import {
  attemptColumns,
  auditColumns,
  documentColumns,
  itemColumns,
  type MovedColumn,
  noteColumns,
  outboxColumns,
  taskColumns,
  unknownColumns,
} from './move-columns.ts';

export type SourceRow = Record<string, SQLOutputValue>;

/** What stands in the file from before the first row is copied until it is renamed. */
interface Marker {
  /** Of this move: its progress is written under this name where the rows go. */
  id: string;
  /** Where they go, without secrets. */
  to: string;
  /** False: nothing has been copied for sure. */
  begun: boolean;
}

/** Rows that belong together: they are copied in one commit. */
export interface TaskPart {
  tasks: SourceRow[];
  attempts: SourceRow[];
  items: SourceRow[];
}

export interface SourceCounts {
  tasks: number;
  attempts: number;
  items: number;
  messages: number;
  events: number;
}

const PART_ROWS = 500;
const PART_BYTES = 4 * 1024 * 1024;
/** An item, and how it was closed if it was. */
const selectItems = `SELECT ${itemColumns.map(({ name }) => `item.${name}`).join(', ')},
    coalesce(closed.state, 'open') AS state, closed.closed_at, closed.closed_by
  FROM redrive_inbox item LEFT JOIN redrive_closed closed ON closed.id = item.id`;
/** Bulk jobs and their counter mean nothing elsewhere, nor does our own sign. */
const isDocument = `key NOT LIKE 'job:%' AND key NOT IN ('jobs', '${MOVING}')`;

export class MoveSource {
  readonly #db: DatabaseSync;
  readonly #file: string;

  /** Takes the file for itself until `close`. It throws where somebody else has it open. */
  constructor(file: string) {
    this.#file = file;
    this.#db = new DatabaseSync(file);
    try {
      this.#db.exec('PRAGMA busy_timeout = 200');
      this.#takeAlone();
      this.#db.exec('PRAGMA synchronous = FULL');
      this.#check();
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  get marker(): Marker | undefined {
    const row = this.#db.prepare('SELECT value FROM redrive_state WHERE key = ?').get(MOVING);
    return row && (JSON.parse(row['value'] as string) as Marker);
  }

  mark(marker: Marker): void {
    this.#db
      .prepare(
        `INSERT INTO redrive_state (key, version, value) VALUES (?1, 1, ?2)
         ON CONFLICT (key) DO UPDATE SET version = version + 1, value = excluded.value`,
      )
      .run(MOVING, JSON.stringify(marker));
  }

  /** The largest numbers in use: so many are reserved where they go. */
  last(): { task: number; item: number } {
    // Also what items say of tasks that are gone.
    const [task, item] = this.#numbers(
      `SELECT max(coalesce((SELECT max(id) FROM retry_queue), 0), coalesce((SELECT max(task_id) FROM redrive_inbox), 0)),
         coalesce((SELECT max(id) FROM redrive_inbox), 0)`,
    );
    return { task: task!, item: item! };
  }

  counts(): SourceCounts {
    const [tasks, attempts, items, messages, events] = this.#numbers(
      `SELECT (SELECT count(*) FROM retry_queue),
         (SELECT count(*) FROM redrive_attempts WHERE task_id IN (SELECT id FROM retry_queue)),
         (SELECT count(*) FROM redrive_inbox), (SELECT count(*) FROM redrive_outbox), (SELECT count(*) FROM redrive_audit)`,
    );
    return {
      tasks: tasks!,
      attempts: attempts!,
      items: items!,
      messages: messages!,
      events: events!,
    };
  }

  /** Bulk jobs that are not over: they are not taken along. */
  openJobs(): number {
    const [jobs] = this.#numbers(
      `SELECT count(*) FROM redrive_state WHERE key LIKE 'job:%'
         AND json_extract(value, '$.state') IN ('running', 'paused', 'stopped')`,
    );
    return jobs!;
  }

  /** The next tasks by id, with their executions and items; undefined: there are no more. */
  tasks(after: number): TaskPart | undefined {
    const tasks = this.#part(
      `SELECT ${names(taskColumns)} FROM retry_queue WHERE id > ? ORDER BY id`,
      after,
      'original_payload',
    );
    if (tasks.length === 0) return undefined;
    const [from, to] = [tasks[0]!['id']!, tasks.at(-1)!['id']!];
    const attempts = this.#db.prepare(
      `SELECT ${names(attemptColumns)} FROM redrive_attempts
       WHERE task_id IN (SELECT id FROM retry_queue WHERE id BETWEEN ? AND ?) ORDER BY id`,
    );
    const items = this.#db.prepare(
      `${selectItems} WHERE task_id IN (SELECT id FROM retry_queue WHERE id BETWEEN ? AND ?) ORDER BY item.id`,
    );
    return { tasks, attempts: attempts.all(from, to), items: items.all(from, to) };
  }

  /** Items that never had a task, or whose task is gone. */
  items(after: number): SourceRow[] {
    return this.#part(
      `${selectItems}
       WHERE item.id > ? AND (task_id IS NULL OR task_id NOT IN (SELECT id FROM retry_queue)) ORDER BY item.id`,
      after,
      'payload',
    );
  }

  messages(after: number): SourceRow[] {
    return this.#part(
      `SELECT id, ${names(outboxColumns)} FROM redrive_outbox WHERE id > ? ORDER BY id`,
      after,
      'payload',
    );
  }

  events(after: number): SourceRow[] {
    return this.#part(
      `SELECT id, ${names(auditColumns)} FROM redrive_audit WHERE id > ? ORDER BY id`,
      after,
      'event',
    );
  }

  documents(): SourceRow[] {
    return this.#db
      .prepare(
        `SELECT ${names(documentColumns)} FROM redrive_state WHERE ${isDocument} ORDER BY key`,
      )
      .all();
  }

  notes(): SourceRow[] {
    return this.#db
      .prepare(
        `SELECT ${names(noteColumns)} FROM redrive_groups WHERE note IS NOT NULL OR owner IS NOT NULL ORDER BY fingerprint`,
      )
      .all();
  }

  /** Who is not finished, by identity: all of them must be found where they went. */
  unfinished(after: number): SourceRow[] {
    return this.#db
      .prepare(
        `SELECT id, message_id, original_queue, kind FROM retry_queue
         WHERE id > ? AND status IN ('pending', 'failed') ORDER BY id LIMIT ${PART_ROWS * 10}`,
      )
      .all(after);
  }

  /** As many as fit, but always one. */
  #part(sql: string, after: number, large: string): SourceRow[] {
    const rows: SourceRow[] = [];
    let bytes = 0;
    for (const row of this.#db.prepare(sql).iterate(after)) {
      rows.push(row);
      const value = row[large];
      bytes += value instanceof Uint8Array || typeof value === 'string' ? value.length : 0;
      if (rows.length >= PART_ROWS || bytes >= PART_BYTES) break;
    }
    return rows;
  }

  #numbers(sql: string): number[] {
    return Object.values(this.#db.prepare(sql).get() ?? {}).map(Number);
  }

  /** Without a write-ahead log a file has one owner: giving the log up works only while nobody else has it open. */
  #takeAlone(): void {
    try {
      this.#db.exec('PRAGMA locking_mode = EXCLUSIVE');
      const mode = this.#db.prepare('PRAGMA journal_mode = DELETE').get()?.['journal_mode'];
      if (mode !== 'delete') throw new Error(`The journal mode is ${String(mode)}.`);
      // Taken by the first write, and in this mode kept until the end.
      this.#db.exec('BEGIN EXCLUSIVE; COMMIT');
    } catch (error) {
      throw inUse(this.#file, error);
    }
  }

  #check(): void {
    const found = this.#db
      .prepare(
        `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`,
      )
      .all() as { table: string; column: string }[];
    const unknown = unknownColumns(found);
    if (unknown.length === 0) return;
    throw new ServiceError(
      'SCHEMA_UNKNOWN',
      `${this.#file} has what this program cannot take along: ${unknown.join(', ')}. Update it, and try again.`,
    );
  }
}

export function inUse(file: string, cause: unknown): ServiceError {
  return new ServiceError(
    'MOVE_IN_USE',
    `${file} is in use. Stop the service that runs on it, and whatever else has it open, and try again.`,
    { cause },
  );
}

function names(columns: readonly MovedColumn[]): string {
  return columns.map(({ name }) => name).join(', ');
}
