import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Line } from '../../../model/line.ts';
import { prepareRows, type Row } from '../connection.ts';

/**
 * The numbers of lines: short entries in the index of those who stand in them, and lines that began together lie together
 * there. A line has one as long as somebody stands in it, and no number is given twice.
 */
export class LineTable {
  readonly #find: StatementSync;
  readonly #add: StatementSync;
  readonly #drop: StatementSync;
  readonly #page: StatementSync;

  constructor(db: DatabaseSync) {
    this.#find = prepareRows(
      db,
      'SELECT id FROM redrive_lines WHERE lane = ? AND ordering_key = ?',
    );
    this.#add = db.prepare('INSERT INTO redrive_lines (lane, ordering_key) VALUES (?, ?)');
    this.#drop = db.prepare(
      'DELETE FROM redrive_lines WHERE id IN (SELECT value FROM json_each(?))',
    );
    this.#page = prepareRows(
      db,
      'SELECT id, lane, ordering_key FROM redrive_lines WHERE id > ? ORDER BY id LIMIT ?',
    );
  }

  find({ lane, key }: Line): number | undefined {
    const row = this.#find.get(lane, key) as unknown as Row | undefined;
    return row?.[0] as number | undefined;
  }

  /** For a row that is about to stand in it. */
  numberOf(line: Line): number {
    return this.find(line) ?? Number(this.#add.run(line.lane, line.key).lastInsertRowid);
  }

  /** Nobody stands in them any more, and their keys are forgotten. */
  drop(numbers: readonly number[]): void {
    this.#drop.run(JSON.stringify(numbers));
  }

  page(after: number, limit: number): (Line & { number: number })[] {
    const rows = this.#page.all(after, limit) as unknown as Row[];
    return rows.map(([number, lane, key]) => ({
      number: number as number,
      lane: lane as string,
      key: key as string,
    }));
  }
}
