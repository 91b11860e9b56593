import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ItemState } from '../../../ports/inbox.ts';
import { openColumns, openValues } from '../schema/version-5.ts';

/** The numbers of rows as one value: a statement for all of them costs less than half of one for each. */
export const listed = 'IN (SELECT value FROM json_each(?1))';

/** Which items are open, how the others were closed, and how many of a group are open: whoever moves one moves it here. */
export class ItemStates {
  readonly #uncount: StatementSync;
  readonly #leave: StatementSync;
  readonly #close: StatementSync;
  readonly #reopen: StatementSync;
  readonly #count: StatementSync;
  readonly #enter: StatementSync;

  constructor(db: DatabaseSync) {
    this.#uncount = db.prepare(
      `UPDATE redrive_groups SET open = open - closing.count
       FROM (SELECT fingerprint, count(*) AS count FROM redrive_open WHERE id ${listed} GROUP BY fingerprint) closing
       WHERE redrive_groups.fingerprint = closing.fingerprint`,
    );
    this.#leave = db.prepare(`DELETE FROM redrive_open WHERE id ${listed}`);
    // One that was closed before stays closed since then.
    this.#close = db.prepare(
      `INSERT INTO redrive_closed (id, state, closed_at, closed_by) SELECT value, ?2, ?3, ?4 FROM json_each(?1) WHERE true
       ON CONFLICT (id) DO UPDATE SET state = excluded.state, closed_by = excluded.closed_by`,
    );
    this.#reopen = db.prepare('DELETE FROM redrive_closed WHERE id = ?');
    this.#count = db.prepare(
      `UPDATE redrive_groups SET open = open + 1
       WHERE fingerprint = (SELECT fingerprint FROM redrive_inbox WHERE id = ?)`,
    );
    this.#enter = db.prepare(
      `INSERT INTO redrive_open (${openColumns}) SELECT ${openValues('item')} FROM redrive_inbox item WHERE item.id = ?
       ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, edited = excluded.edited`,
    );
  }

  close(ids: readonly number[], state: ItemState, atMs: number, by?: string): void {
    const these = JSON.stringify(ids);
    this.#uncount.run(these);
    this.#leave.run(these);
    this.#close.run(these, state, atMs, by ?? null);
  }

  /** Open from now on, or still open and changed. */
  open(id: number): void {
    if (this.#reopen.run(id).changes > 0) this.#count.run(id);
    this.#enter.run(id);
  }
}
