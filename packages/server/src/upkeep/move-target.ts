/** Where the rows go: every part is one transaction, together with the note of how far the move is. */
import pg from 'pg';
import { ServiceError } from '../service-error.ts';
import {
  attemptColumns,
  auditColumns,
  closedColumns,
  documentColumns,
  itemColumns,
  noteColumns,
  openColumns,
  outboxColumns,
  taskColumns,
} from './move-columns.ts';
import { insertRows, SCHEMA, table, valueOf } from './move-insert.ts';
import { letGoOn, linesOf, lockLines } from './move-lines.ts';
import type { SourceRow, TaskPart } from './move-source.ts';

/** In this order, each to its end. */
const steps = ['tasks', 'items', 'messages', 'events', 'documents', 'notes', 'done'] as const;
export type Step = (typeof steps)[number];

type Counted = 'tasks' | 'attempts' | 'items' | 'messages' | 'events';

/** How far a move is: what a killed one goes on from. */
export interface Progress {
  step: Step;
  /** The last number of that step that is copied. */
  after: number;
  /** What is added to numbers of the file: such a block is reserved, so that nobody else has them and their order stays. */
  taskBase: number;
  itemBase: number;
  /** Copied. */
  moved: Record<Counted, number>;
  /** Not copied, since the same message is there already. */
  known: Record<Counted, number>;
}

const none: Readonly<Record<Counted, number>> = {
  tasks: 0,
  attempts: 0,
  items: 0,
  messages: 0,
  events: 0,
};

export class MoveTarget {
  readonly #client: pg.Client;
  readonly #key: string;

  constructor(url: string, id: string) {
    this.#key = `move:${id}`;
    this.#client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      application_name: 'redrive move',
    });
    // Without a listener a lost connection would end the process; the query that waits for it fails anyway.
    this.#client.on('error', () => undefined);
  }

  async open(): Promise<void> {
    await this.#client.connect();
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async progress(): Promise<Progress | undefined> {
    const { rows } = await this.#client.query<{ value: Progress }>(
      `SELECT value FROM ${table('redrive_state')} WHERE key = $1`,
      [this.#key],
    );
    return rows[0]?.value;
  }

  /** Reserves numbers for all that will come. */
  begin(last: { task: number; item: number }): Promise<Progress> {
    return this.#transaction(async () => {
      const taskBase = await this.#reserve('retry_queue', last.task);
      const itemBase = await this.#reserve('redrive_inbox', last.item);
      const progress: Progress = {
        step: 'tasks',
        after: 0,
        taskBase,
        itemBase,
        moved: { ...none },
        known: { ...none },
      };
      await this.#client.query(
        `INSERT INTO ${table('redrive_state')} (key, version, value) VALUES ($1, 1, $2)`,
        [this.#key, JSON.stringify(progress)],
      );
      return progress;
    });
  }

  tasks(part: TaskPart, before: Progress): Promise<Progress> {
    return this.#step(before, part.tasks.at(-1)!['id'] as number, async (progress) => {
      const { taskBase } = progress;
      const lines = linesOf(part.tasks);
      await lockLines(this.#client, lines);
      const shifted = part.tasks.map((row) => ({ ...row, id: Number(row['id']) + taskBase }));
      const ids = await insertRows(this.#client, 'retry_queue', taskColumns, shifted, {
        conflict: '(message_id, original_queue, kind)',
        returning: 'id',
      });
      await letGoOn(this.#client, lines);
      const taken = new Set(ids.map(Number));
      const isMoved = (row: SourceRow) => taken.has(Number(row['task_id']) + taskBase);
      const attempts = part.attempts.filter(isMoved);
      await insertRows(
        this.#client,
        'redrive_attempts',
        attemptColumns,
        shiftTasks(attempts, taskBase),
        {},
      );
      const items = part.items.filter(isMoved);
      const written = await this.#items(items, progress);
      count(progress, 'tasks', part.tasks.length, taken.size);
      count(progress, 'attempts', part.attempts.length, attempts.length);
      count(progress, 'items', part.items.length, written);
    });
  }

  items(rows: readonly SourceRow[], before: Progress): Promise<Progress> {
    return this.#step(before, rows.at(-1)!['id'] as number, async (progress) => {
      count(progress, 'items', rows.length, await this.#items(rows, progress));
    });
  }

  messages(rows: readonly SourceRow[], before: Progress): Promise<Progress> {
    return this.#step(before, rows.at(-1)!['id'] as number, async (progress) => {
      await insertRows(this.#client, 'redrive_outbox', outboxColumns, rows, {});
      count(progress, 'messages', rows.length, rows.length);
    });
  }

  events(rows: readonly SourceRow[], before: Progress): Promise<Progress> {
    return this.#step(before, rows.at(-1)!['id'] as number, async (progress) => {
      await insertRows(this.#client, 'redrive_audit', auditColumns, rows, {});
      count(progress, 'events', rows.length, rows.length);
    });
  }

  /** Lanes, policies and the seed. What is there already stays: it is newer. */
  documents(rows: readonly SourceRow[], before: Progress): Promise<Progress> {
    return this.#step(before, 1, async () => {
      const versioned = [...documentColumns, { name: 'version', type: 'int8' } as const];
      const withVersion = rows.map((row) => ({ ...row, version: 1 }));
      await insertRows(this.#client, 'redrive_state', versioned, withVersion, {
        conflict: '(key)',
      });
    });
  }

  /** What people wrote about groups. The groups themselves are counted by the triggers of the inbox. */
  notes(rows: readonly SourceRow[], before: Progress): Promise<Progress> {
    return this.#step(before, 1, async () => {
      // The lock that all have who write groups.
      await this.#client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `redrive groups:${SCHEMA}`,
      ]);
      const counted = [
        ...noteColumns,
        { name: 'newest', type: 'int8' } as const,
        { name: 'open', type: 'int4' } as const,
      ];
      const fresh = rows.map((row) => ({ ...row, newest: 0, open: 0 }));
      await insertRows(this.#client, 'redrive_groups', counted, fresh, {
        conflict: '(fingerprint)',
        update: 'note = coalesce(t.note, excluded.note), owner = coalesce(t.owner, excluded.owner)',
      });
    });
  }

  /** The next step begins. */
  advance(before: Progress): Promise<Progress> {
    return this.#step(before, 0, (progress) => {
      progress.step = steps[steps.indexOf(progress.step) + 1] ?? 'done';
      return Promise.resolve();
    });
  }

  /** How many of these identities there are. */
  async found(rows: readonly SourceRow[]): Promise<number> {
    const result = await this.#client.query<{ count: string }>(
      `SELECT count(*) FROM unnest($1::uuid[], $2::text[], $3::text[]) AS u (message_id, original_queue, kind)
       JOIN ${table('retry_queue')} AS q USING (message_id, original_queue, kind)`,
      ['message_id', 'original_queue', 'kind'].map((name) =>
        rows.map((row) => valueOf(row[name], name === 'message_id' ? 'uuid' : 'text')),
      ),
    );
    return Number(result.rows[0]?.count);
  }

  async #items(rows: readonly SourceRow[], { taskBase, itemBase }: Progress): Promise<number> {
    const shifted = shiftTasks(rows, taskBase).map((row): SourceRow => ({
      ...row,
      id: Number(row['id']) + itemBase,
    }));
    await insertRows(this.#client, 'redrive_inbox', itemColumns, shifted, {});
    const open = shifted.filter((row) => row['state'] === 'open').map(asOpen);
    const closed = shifted.filter((row) => row['state'] !== 'open');
    await insertRows(this.#client, 'redrive_closed', closedColumns, closed, {});
    const opened = await insertRows(this.#client, 'redrive_open', openColumns, open, {
      // Any of them: an open item of the same message is there already.
      conflict: '',
      returning: 'id',
    });
    const taken = new Set(opened.map(Number));
    const known = open.filter((row) => !taken.has(Number(row['id'])));
    await this.#client.query(`DELETE FROM ${table('redrive_inbox')} WHERE id = ANY ($1)`, [
      known.map((row) => Number(row['id'])),
    ]);
    // All that came were counted as open.
    await this.#client.query(
      `INSERT INTO ${table('redrive_group_deltas')} (fingerprint, open)
       SELECT fingerprint, -count(*) FROM unnest($1::text[]) AS u (fingerprint) GROUP BY fingerprint`,
      [[...closed, ...known].map((row) => valueOf(row['fingerprint'], 'text'))],
    );
    return closed.length + opened.length;
  }

  /** One part, or nothing: what is noted is always what is there. */
  #step(
    before: Progress,
    after: number,
    write: (progress: Progress) => Promise<void>,
  ): Promise<Progress> {
    return this.#transaction(async () => {
      const { rows } = await this.#client.query<{ value: Progress }>(
        `SELECT value FROM ${table('redrive_state')} WHERE key = $1 FOR UPDATE`,
        [this.#key],
      );
      const progress = rows[0]?.value;
      if (progress?.step !== before.step || progress.after !== before.after) {
        throw new ServiceError('MOVE_IN_USE', 'Another process carries on with this move.');
      }
      await write(progress);
      progress.after = progress.step === before.step ? after : 0;
      await this.#client.query(
        `UPDATE ${table('redrive_state')} SET version = version + 1, value = $2 WHERE key = $1`,
        [this.#key, JSON.stringify(progress)],
      );
      return progress;
    });
  }

  async #transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.#client.query('BEGIN');
    try {
      const result = await work();
      await this.#client.query('COMMIT');
      return result;
    } catch (error) {
      // On a connection that is gone there is nothing to roll back.
      await this.#client.query('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }

  /** A block of numbers that nobody else gets: nobody inserts while the sequence jumps. */
  async #reserve(name: string, most: number): Promise<number> {
    await this.#client.query(`LOCK TABLE ${table(name)} IN SHARE ROW EXCLUSIVE MODE`);
    const { rows } = await this.#client.query<{ sequence: string | null }>(
      `SELECT pg_get_serial_sequence($1, 'id') AS sequence`,
      [table(name)],
    );
    const sequence = rows[0]?.sequence;
    if (!sequence) {
      throw new ServiceError(
        'SCHEMA_UNKNOWN',
        `${name} in PostgreSQL has no sequence for its ids. Make it bigserial, and try again.`,
      );
    }
    const found = await this.#client.query<{ base: string }>(
      `SELECT greatest(last_value, (SELECT max(id) FROM ${table(name)})) AS base FROM ${sequence}`,
    );
    const base = Number(found.rows[0]!.base);
    await this.#client.query('SELECT setval($1, $2)', [sequence, base + most + 1]);
    return base;
  }
}

function asOpen(row: SourceRow): SourceRow {
  const { task_id = null, message_id = null, edit = null } = row;
  return { ...row, raw_id: task_id === null ? message_id : null, edited: edit === null ? 0 : 1 };
}

function shiftTasks(rows: readonly SourceRow[], taskBase: number): SourceRow[] {
  return rows.map((row) =>
    row['task_id'] === null ? row : { ...row, task_id: Number(row['task_id']) + taskBase },
  );
}

function count(progress: Progress, what: Counted, all: number, written: number): void {
  progress.moved[what] += written;
  progress.known[what] += all - written;
}
