/** A look at the SQLite file. It is only read. */
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Finding, Level } from './finding.ts';

const about = 'database';
const MiB = 1024 * 1024;
/** To read through more would take a while. */
const CHECKED_BYTES = 256 * MiB;
const OTHERS = 0o077;

export async function examineFile(file: string): Promise<Finding[]> {
  if (!existsSync(file)) {
    return [finding('note', `There is no ${file} yet.`, 'The next redrive serve makes it.')];
  }
  const { adviceOn, examine } = await import('@redrive/engine/sqlite');
  let findings: Awaited<ReturnType<typeof examine>>;
  try {
    findings = await examine(file, { integrity: statSync(file).size <= CHECKED_BYTES });
  } catch (error) {
    const { message } = error as Error;
    return [
      finding(
        'broken',
        message,
        'If it is damaged, put back a copy, or name another folder with REDRIVE_DATA_DIR. If it is not yours, run this as its owner.',
      ),
    ];
  }
  const { schema, damage = [], fileBytes, logBytes } = findings;
  const hasTables = schema.version !== undefined && schema.version > 0;
  // The disk is looked at apart from this, and the service makes the tables when it starts.
  const rest = {
    ...findings,
    freeBytes: Infinity,
    ...(hasTables ? {} : { schema: { version: schema.known, oldest: 0, known: schema.known } }),
  };
  return [
    ...adviceOn(rest).map(({ level, text }) =>
      finding(level === 'problem' ? 'broken' : 'warning', text),
    ),
    ...(damage.length > 0 ? [] : [await wellText(file, fileBytes + logBytes, hasTables)]),
    ...ofFolder(dirname(file)),
  ];
}

/** What nobody delivers while PostgreSQL is in use. */
export async function leftInFile(file: string): Promise<Finding[]> {
  if (!existsSync(file)) return [];
  const { tasks, items } = await countIn(file);
  if (tasks === 0 && items === 0) return [];
  const what = `${file} still has ${tasks} tasks and ${items} open items, which nobody sees to while DATABASE_URL is set.`;
  return [finding('warning', what, 'Take them along: redrive move.')];
}

async function wellText(file: string, bytes: number, hasTables: boolean): Promise<Finding> {
  if (!hasTables) {
    return finding('note', `${file} has no tables yet.`, 'The next redrive serve makes them.');
  }
  const { tasks, items } = await countIn(file);
  const size = bytes < MiB ? `${Math.ceil(bytes / 1024)} KiB` : `${Math.round(bytes / MiB)} MiB`;
  return finding('fine', `${file} answers: ${size}, ${tasks} tasks wait, ${items} items are open.`);
}

/** Payloads may be anything. */
function ofFolder(folder: string): Finding[] {
  if (process.platform === 'win32' || (statSync(folder).mode & OTHERS) === 0) return [];
  const what = `Others on this machine may look into ${folder}, where payloads are kept.`;
  return [finding('warning', what, `chmod 700 ${folder}`)];
}

async function countIn(file: string): Promise<{ tasks: number; items: number }> {
  const { DatabaseSync } = await import('node:sqlite');
  const url = pathToFileURL(file);
  // A reader of a file that nobody has open would leave a log beside it.
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log === undefined || log.size === 0) url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  const count = (table: string, condition: string): number => {
    const known = db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table);
    const sql = `SELECT count(*) AS number FROM ${table} WHERE ${condition}`;
    return known ? Number(db.prepare(sql).get()?.['number']) : 0;
  };
  try {
    return {
      tasks: count('retry_queue', `status = 'pending'`),
      items: count('redrive_inbox', `state = 'open'`),
    };
  } finally {
    db.close();
  }
}

function finding(level: Level, what: string, advice?: string): Finding {
  return { about, level, what, ...(advice === undefined ? {} : { advice }) };
}
