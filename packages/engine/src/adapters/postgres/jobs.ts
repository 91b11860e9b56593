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
} from '../../ports/inbox.ts';
import { few, Params, rowsOf } from './batch.ts';
import { countOf } from './bounds.ts';
import { type Database, Restart, type Session } from './database.ts';
import { holdJob, writeJob } from './documents.ts';
import { isPossible, MAX_SCANNED, nextOf, pageText } from './item-query.ts';
import { membersText } from './members-text.ts';
import type { Names } from './names.ts';
import { numberOf, parsed, timeOf } from './rows.ts';
import { msOf } from './times.ts';

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
    const { members } = this.#names;
    const parts = pageText(this.#names, filter, { before, limit }, params, MAX_SCANNED);
    const number = `${params.add(job)}::bigint`;
    const insert = `INSERT INTO ${members} (job, item_id) SELECT ${number}, id FROM page`;
    // The pages of a job hardly ever overlap: to look for a conflict with each would cost as much as to insert it.
    const [row] = await session.query(
      `WITH ${parts},
       page AS MATERIALIZED (SELECT id FROM found ORDER BY id DESC LIMIT ${params.add(countOf(limit))}::int4),
       overlap AS MATERIALIZED (
         SELECT FROM ${members} WHERE (job, item_id) >= (${number}, (SELECT min(id) FROM page))
           AND (job, item_id) <= (${number}, (SELECT max(id) FROM page)) LIMIT 1
       ),
       fresh AS (${insert} WHERE NOT EXISTS (SELECT FROM overlap) ORDER BY id),
       other AS (${insert} WHERE EXISTS (SELECT FROM overlap) ORDER BY id ON CONFLICT DO NOTHING)
       SELECT (SELECT count(*) FROM found) AS found, (SELECT count(*) FROM scanned) AS scanned,
         (SELECT min(id) FROM scanned) AS lowest, (SELECT count(*) FROM page) AS added, (SELECT min(id) FROM page) AS last`,
      params.values,
    );
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

  /** In one statement, so that nothing is counted twice or not at all on its way from one to the other. */
  async tally(job: number, most: number): Promise<JobTally> {
    const { queue, inbox } = this.#names;
    const tasks = (status: string) =>
      `FROM ${queue} WHERE job = $1::bigint AND status = '${status}' AND status <> 'done'`;
    const [row] = await this.#database.queryAgain(
      `SELECT (SELECT count(*) FROM (SELECT ${tasks('pending')} LIMIT $2::int4) AS task),
         (SELECT count(*) FROM (SELECT ${tasks('pending')} AND blocked LIMIT $2::int4) AS task),
         (SELECT count(*) FROM (SELECT ${tasks('retried')} LIMIT $2::int4) AS task),
         (SELECT ${msOf('max(finished_at)')} ${tasks('retried')}),
         (SELECT count(*) ${tasks('cancelled')}),
         (SELECT count(*) FROM ${inbox} WHERE job = $1::bigint),
         (SELECT failure FROM ${inbox} WHERE job = $1::bigint ORDER BY job DESC, id DESC LIMIT 1)`,
      [job, countOf(most)],
    );
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
