import { type JobHold, jobKey } from '../../ports/inbox.ts';
import type { Session } from './connection/database.ts';
import type { Names } from './names.ts';
import { numberOf } from './rows.ts';

/** Keeps others from writing the document of a job until the commit. False: it has another version. */
export async function holdJob(
  session: Session,
  names: Names,
  { job, version }: Pick<JobHold<never>, 'job' | 'version'>,
): Promise<boolean> {
  const [row] = await session.query(
    `SELECT version FROM ${names.state} WHERE key = $1 FOR UPDATE`,
    [jobKey(job)],
  );
  return (row ? numberOf(row[0]) : 0) === version;
}

/** The next version of a document that is held. False: there was none, and somebody else was faster. */
export async function writeJob(
  session: Session,
  names: Names,
  { job, version }: Pick<JobHold<never>, 'job' | 'version'>,
  value: unknown,
): Promise<boolean> {
  const rows = await session.query(
    `INSERT INTO ${names.state} AS state (key, version, value) VALUES ($1, $2::bigint + 1, $3)
     ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value
     WHERE state.version = $2::bigint RETURNING 1`,
    [jobKey(job), version, JSON.stringify(value)],
  );
  return rows.length === 1;
}
