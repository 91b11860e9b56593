import type { Failure } from 'redrive';
import type { Group, GroupQuery } from '../../../ports/inbox.ts';
import type { Reason } from '../../../model/task.ts';
import { encodeArray } from '../arrays.ts';
import { Params } from '../batch.ts';
import { boundedMs, countOf } from '../bounds.ts';
import type { Database, Session } from '../connection/database.ts';
import { type Names, quoteText } from '../names.ts';
import { numberOf, parsed, timeOf } from '../rows.ts';
import { msOf, timeAt } from '../times.ts';

const FOLD_AT_ONCE = 1000;
/** More than anybody leaves lying, and a bound. */
const MAX_FOLDS = 1000;
/** Who looks does not wait for a whole outage to be counted, some 20 ms at most: the rest is housekeeping's, at the next poll. */
const FOLDS_OF_READER = 1;
const SWEEP = 1000;

/** Groups of items, counted by what the triggers of the inbox appended. */
export class GroupTable {
  readonly #database: Database;
  readonly #names: Names;
  /** Where the next look for groups without items begins. */
  #after = '';

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async list({ fingerprint, lane, all, before, limit }: GroupQuery): Promise<Group[]> {
    await this.fold(FOLDS_OF_READER);
    const params = new Params();
    const filters = [
      ...(all ? [] : ['open > 0']),
      ...(fingerprint === undefined ? [] : [`fingerprint = ${params.add(fingerprint)}`]),
      ...(lane === undefined ? [] : [`lane = ${params.add(lane)}`]),
    ];
    if (before) {
      const seen = timeAt(`${params.add(boundedMs(before.lastSeenMs))}::float8`);
      filters.push(`(last_seen, fingerprint) < (${seen}, ${params.add(before.fingerprint)})`);
    }
    const rows = await this.#database.queryAgain(
      `SELECT fingerprint, lane, reason, failure, open, ${msOf('first_seen')}, ${msOf('last_seen')}, note, owner
       FROM ${this.#names.groups} ${filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''}
       ORDER BY last_seen DESC, fingerprint DESC LIMIT ${params.add(countOf(limit))}::int4`,
      params.values,
    );
    return rows.map(([name, way, reason, failure, open, first, last, note, owner]) => ({
      fingerprint: name as string,
      lane: way as string,
      reason: reason as Reason,
      failure: parsed(failure) as Failure,
      open: numberOf(open),
      firstSeenMs: timeOf(first),
      lastSeenMs: timeOf(last),
      ...(note === null ? {} : { note: note as string }),
      ...(owner === null ? {} : { owner: owner as string }),
    }));
  }

  async annotate(
    fingerprint: string,
    { note, owner }: { note?: string; owner?: string },
  ): Promise<boolean> {
    await this.fold();
    const rows = await this.#database.queryAgain(
      `UPDATE ${this.#names.groups} SET note = nullif(coalesce($2::text, note), ''),
         owner = nullif(coalesce($3::text, owner), '') WHERE fingerprint = $1 RETURNING 1`,
      [fingerprint, note ?? null, owner ?? null],
    );
    return rows.length > 0;
  }

  /** Adds to the groups what is committed and not counted yet, the oldest first. */
  async fold(steps = MAX_FOLDS): Promise<void> {
    for (let step = 0; step < steps; step++) {
      const [row] = await this.#database.queryAgain(`SELECT FROM ${this.#names.deltas} LIMIT 1`);
      if (!row) return;
      const count = await this.#database.transaction((session) => foldSome(session, this.#names));
      if (count < FOLD_AT_ONCE) return;
    }
  }

  /** Deletes groups that have neither items nor notes: among these, and a few more with every call. */
  async prune(fingerprints: readonly string[]): Promise<void> {
    const rows = await this.#database.queryAgain(
      `SELECT fingerprint FROM ${this.#names.groups} WHERE fingerprint > $1 ORDER BY fingerprint LIMIT $2::int4`,
      [this.#after, SWEEP],
    );
    const looked = rows.map(([fingerprint]) => fingerprint as string);
    this.#after = looked.length < SWEEP ? '' : looked.at(-1)!;
    const all = [...new Set([...fingerprints, ...looked])];
    if (all.length === 0) return;
    await this.#database.transaction(async (session) => {
      await beAlone(session, this.#names);
      await session.query(
        `DELETE FROM ${this.#names.groups} AS g WHERE fingerprint = ANY ($1::text[]) AND note IS NULL AND owner IS NULL
         AND NOT EXISTS (
           SELECT FROM ${this.#names.inbox} AS item WHERE item.fingerprint = g.fingerprint COLLATE "default"
         )
         AND NOT EXISTS (SELECT FROM ${this.#names.deltas} AS delta WHERE delta.fingerprint = g.fingerprint)`,
        [encodeArray('text', all)],
      );
    });
  }
}

/** Takes the texts out of the samples of these groups, and of what is not counted yet. */
export async function stripSamples(
  session: Session,
  names: Names,
  fingerprints: readonly string[],
): Promise<void> {
  if (fingerprints.length === 0) return;
  await beAlone(session, names);
  for (const table of [names.deltas, names.groups]) {
    await session.query(
      `UPDATE ${table} SET failure = json_strip_nulls(
         json_build_object('class', failure -> 'class', 'code', failure -> 'code'))
       WHERE fingerprint = ANY ($1::text[]) AND failure IS NOT NULL`,
      [encodeArray('text', fingerprints)],
    );
  }
}

/** One at a time: what one appended is then counted before what another one appended about the same item. */
async function beAlone(session: Session, { schema }: Names): Promise<void> {
  await session.query(
    `SELECT pg_advisory_xact_lock(hashtextextended(${quoteText(`redrive groups:${schema}`)}, 0))`,
  );
}

/** How many were folded. */
async function foldSome(session: Session, names: Names): Promise<number> {
  await beAlone(session, names);
  const isNewer = 'excluded.newest > g.newest';
  const newer = (name: string) =>
    `${name} = CASE WHEN ${isNewer} THEN excluded.${name} ELSE g.${name} END`;
  const [row] = await session.query(
    `WITH taken AS MATERIALIZED (SELECT id FROM ${names.deltas} ORDER BY id LIMIT ${FOLD_AT_ONCE}),
     gone AS (DELETE FROM ${names.deltas} WHERE id = ANY (ARRAY(SELECT id FROM taken)) RETURNING *),
     total AS MATERIALIZED (
       SELECT fingerprint, sum(open) AS open, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
         max(newest) AS newest
       FROM gone GROUP BY fingerprint ORDER BY fingerprint
     ),
     fresh AS (
       INSERT INTO ${names.groups} AS g (fingerprint, lane, reason, failure, newest, open, first_seen, last_seen)
       SELECT total.fingerprint, gone.lane, gone.reason, gone.failure, total.newest, total.open, total.first_seen,
         total.last_seen
       FROM total JOIN gone ON gone.newest = total.newest ORDER BY total.fingerprint
       ON CONFLICT (fingerprint) DO UPDATE SET open = g.open + excluded.open,
         first_seen = least(g.first_seen, excluded.first_seen), last_seen = greatest(g.last_seen, excluded.last_seen),
         newest = greatest(g.newest, excluded.newest), ${['lane', 'reason', 'failure'].map(newer).join(', ')}
     ),
     changed AS (
       UPDATE ${names.groups} AS g SET open = g.open + total.open, last_seen = greatest(g.last_seen, total.last_seen)
       FROM total WHERE g.fingerprint = ANY (ARRAY[total.fingerprint]) AND total.newest IS NULL
     )
     SELECT count(*) FROM taken`,
  );
  return numberOf(row![0]);
}
