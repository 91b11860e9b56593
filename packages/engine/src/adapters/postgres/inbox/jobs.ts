import type { Failure } from 'redrive';
import {
  type ActResult,
  type Frozen,
  type ItemFilter,
  type JobHold,
  jobKey,
  type JobTally,
  type Member,
  type MemberQuery,
} from '../../../ports/inbox.ts';
import { few, Params, rowsOf } from '../batch.ts';
import { countOf } from '../bounds.ts';
import { type Database, Restart, type Session } from '../connection/database.ts';
import { holdJob, writeJob } from '../documents.ts';
import { isPossible, MAX_SCANNED, nextOf } from './item-query.ts';
import { freezeText, membersText, tallyText } from './members-text.ts';
import type { Names } from '../names.ts';
import { numberOf, parsed, timeOf } from '../rows.ts';

/** The members of bulk jobs, and what became of them. */
export class JobTable {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  freeze(
    filter: ItemFilter,
    page: { before: number; limit: number },
    under: JobHold<Frozen>,
  ): Promise<Frozen | undefined> {
    return this.#database.transaction(async (session) => {
      if (!(await holdJob(session, this.#names, under))) return undefined;
      const open: ItemFilter = { ...filter, state: 'open' };
      const frozen = isPossible(open)
        ? await this.#addPage(session, open, page, under.job)
        : { added: 0 };
      if (!(await writeJob(session, this.#names, under, under.next(frozen)))) throw new Restart();
      return frozen;
    });
  }

  async #addPage(
    session: Session,
    filter: ItemFilter,
    { before, limit }: { before: number; limit: number },
    job: number,
  ): Promise<Frozen> {
    const params = new Params();
    const text = freezeText(this.#names, filter, { before, limit }, job, params);
    const [row] = await session.query(text, params.values);
    const [found, scanned, lowest, added, last] = row!.map(numberOf);
    const seen = { found: found!, scanned: scanned!, lowest: lowest! };
    const next = nextOf(filter, limit, seen, last, MAX_SCANNED);
    return { added: added!, ...(next === undefined ? {} : { next }) };
  }

  async members(query: MemberQuery): Promise<Member[]> {
    const params = new Params();
    const text = membersText(this.#names, query, params);
    const rows = await this.#database.queryAgain(text, params.values);
    return rows.map(([itemId, became]) => ({
      itemId: numberOf(itemId),
      ...(became === null ? {} : { result: became as ActResult }),
    }));
  }

  async tally(job: number, most: number): Promise<JobTally> {
    const [row] = await this.#database.queryAgain(tallyText(this.#names), [job, countOf(most)]);
    const [underway, blocked, taken, takenAt, cancelled, back, failure] = row!;
    return {
      underway: numberOf(underway),
      blocked: numberOf(blocked),
      taken: numberOf(taken),
      ...(takenAt === null ? {} : { takenAtMs: timeOf(takenAt) }),
      cancelled: numberOf(cancelled),
      back: numberOf(back),
      ...(failure === null ? {} : { failure: parsed(failure) as Failure }),
    };
  }

  forget(job: number, limit: number): Promise<boolean> {
    const { members, state } = this.#names;
    return this.#database.transaction(async (session) => {
      await session.query(`SELECT FROM ${state} WHERE key = $1 FOR UPDATE`, [jobKey(job)]);
      await session.query(
        `DELETE FROM ${members} WHERE job = $1::bigint AND item_id = ANY (ARRAY(
           SELECT item_id FROM ${members} WHERE job = $1::bigint ORDER BY item_id LIMIT $2::int4
         ))`,
        [job, countOf(limit)],
      );
      const left = await session.query(`SELECT FROM ${members} WHERE job = $1::bigint LIMIT 1`, [
        job,
      ]);
      if (left.length > 0) return false;
      await session.query(`DELETE FROM ${state} WHERE key = $1`, [jobKey(job)]);
      return true;
    });
  }
}

/** Writes what became of members beside them, except of those that are done: they are nearly all. */
export async function markMembers(
  session: Session,
  names: Names,
  job: number,
  ids: readonly number[],
  results: readonly ActResult[],
): Promise<void> {
  const undone = ids.flatMap((id, i) =>
    results[i] === 'done' ? [] : [[id, results[i]!] as const],
  );
  if (undone.length === 0) return;
  // The last word where one is there twice.
  const last = new Map(undone);
  const params = new Params();
  const source = rowsOf(
    [
      { name: 'item_id', type: 'int8', values: [...last.keys()] },
      { name: 'result', type: 'text', values: [...last.values()] },
    ],
    params,
  );
  await session.query(
    `UPDATE ${names.members} AS member SET result = u.result
     FROM (${few(`(${source})`, 'n')}) AS u
     WHERE member.job = ${params.add(job)}::bigint AND member.item_id = ANY (ARRAY[u.item_id])`,
    params.values,
  );
}
