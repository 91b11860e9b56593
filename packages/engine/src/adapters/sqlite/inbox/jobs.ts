import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import type { ActResult, JobTally, Member, MemberQuery } from '../../../ports/inbox.ts';
import { prepareRows, type Row } from '../connection.ts';
import { isEnded, isUnderway } from '../schema/version-5.ts';

/** Who belongs to which bulk job, what became of each, and what became of what was sent. */
export class JobTable {
  readonly #add: StatementSync;
  readonly #mark: StatementSync;
  readonly #list: StatementSync;
  readonly #listDone: StatementSync;
  readonly #listUndone: StatementSync;
  readonly #tally: StatementSync;
  readonly #forget: StatementSync;
  readonly #any: StatementSync;

  constructor(db: DatabaseSync) {
    const select = 'SELECT item_id, result FROM redrive_members';
    const page = 'job = ?1 AND item_id > ?2 AND item_id <= ?3';
    const inOrder = 'ORDER BY item_id LIMIT ?4';
    this.#add = db.prepare(
      `INSERT INTO redrive_members (job, item_id) SELECT ?1, value FROM json_each(?2) WHERE true ON CONFLICT DO NOTHING`,
    );
    this.#mark = db.prepare(
      'UPDATE redrive_members SET result = ?3 WHERE job = ?1 AND item_id = ?2',
    );
    this.#list = prepareRows(db, `${select} WHERE ${page} ${inOrder}`);
    // Those that were dealt with as asked for are nearly all of them; the others have an index.
    this.#listDone = prepareRows(
      db,
      `${select} NOT INDEXED WHERE ${page} AND (result IS NULL OR result = 'done') ${inOrder}`,
    );
    this.#listUndone = prepareRows(
      db,
      `${select} INDEXED BY redrive_members_undone
       WHERE ${page} AND result IS NOT NULL AND result <> 'done' AND result = ?5 ${inOrder}`,
    );
    const pending = `FROM retry_queue INDEXED BY retry_queue_underway WHERE job = ?1 AND ${isUnderway}`;
    const over = (status: string) =>
      `FROM retry_queue INDEXED BY retry_queue_ended WHERE job = ?1 AND ${isEnded} AND status = '${status}'`;
    const back =
      'FROM redrive_inbox INDEXED BY redrive_inbox_job WHERE job = ?1 AND job IS NOT NULL';
    // One statement, so that all of it is of one moment.
    this.#tally = prepareRows(
      db,
      `SELECT (SELECT count(*) FROM (SELECT 1 ${pending} LIMIT ?2)),
         (SELECT count(*) FROM (SELECT 1 ${pending} AND blocked = 1 LIMIT ?2)),
         (SELECT count(*) FROM (SELECT 1 ${over('retried')} LIMIT ?2)),
         (SELECT finished_at ${over('retried')} ORDER BY finished_at DESC LIMIT 1),
         (SELECT count(*) ${over('cancelled')}),
         (SELECT count(*) ${back}),
         (SELECT failure ${back} ORDER BY id DESC LIMIT 1)`,
    );
    this.#forget = db.prepare(
      `DELETE FROM redrive_members WHERE job = ?1 AND item_id IN (
         SELECT item_id FROM redrive_members WHERE job = ?1 ORDER BY item_id LIMIT ?2)`,
    );
    this.#any = prepareRows(db, 'SELECT 1 FROM redrive_members WHERE job = ? LIMIT 1');
  }

  add(job: number, itemIds: readonly number[]): void {
    this.#add.run(job, JSON.stringify(itemIds));
  }

  mark(job: number, itemId: number, result: ActResult): void {
    if (result !== 'done') this.#mark.run(job, itemId, result);
  }

  list(query: MemberQuery): Member[] {
    const rows = this.#rows(query) as unknown as Row[];
    return rows.map(([itemId, known]) => ({
      itemId: itemId as number,
      ...(known === null ? {} : { result: known as ActResult }),
    }));
  }

  tally(job: number, most: number): JobTally {
    const row = this.#tally.get(job, most) as unknown as Row;
    const [underway, blocked, taken, takenAtMs, cancelled, back, failure] = row;
    return {
      underway: underway as number,
      blocked: blocked as number,
      taken: taken as number,
      ...(takenAtMs === null ? {} : { takenAtMs: takenAtMs as number }),
      cancelled: cancelled as number,
      back: back as number,
      ...(failure === null ? {} : { failure: JSON.parse(failure as string) as Failure }),
    };
  }

  /** True: none are left. */
  forget(job: number, limit: number): boolean {
    this.#forget.run(job, limit);
    return this.#any.get(job) === undefined;
  }

  #rows({ job, result, after, upTo = Infinity, limit }: MemberQuery) {
    if (result === undefined) return this.#list.all(job, after, upTo, limit);
    if (result === 'done') return this.#listDone.all(job, after, upTo, limit);
    return this.#listUndone.all(job, after, upTo, limit, result);
  }
}
