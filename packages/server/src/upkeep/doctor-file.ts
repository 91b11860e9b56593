/** A look at the SQLite file. It is only read. */
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Finding, findingsAbout, sizeOf } from './finding.ts';
import { heldBy, rescuedFiles } from './left-behind.ts';

const finding = findingsAbout('database');
/** To read through more would take a while. */
const CHECKED_BYTES = 256 * 1024 * 1024;
const OTHERS = 0o077;

export async function examineFile(file: string): Promise<Finding[]> {
  if (!existsSync(file)) {
    const none = finding('note', `There is no ${file} yet.`, 'The next redrive serve makes it.');
    return [none, ...rescuedBeside(file)];
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
    ...rescuedBeside(file),
    ...ofFolder(dirname(file)),
  ];
}

/** What nobody delivers while PostgreSQL is in use. */
export async function leftInFile(file: string): Promise<Finding[]> {
  if (!existsSync(file)) return [];
  const { tasks, items } = await heldBy(file);
  if (tasks === 0 && items === 0) return [];
  const what = `${file} still has ${tasks} tasks and ${items} open items, which nobody sees to while DATABASE_URL is set.`;
  return [finding('warning', what, 'Take them along: redrive move.')];
}

async function wellText(file: string, bytes: number, hasTables: boolean): Promise<Finding> {
  if (!hasTables) {
    return finding('note', `${file} has no tables yet.`, 'The next redrive serve makes them.');
  }
  const { tasks, items } = await heldBy(file);
  const holds = `tasks that wait: ${tasks}, open items: ${items}`;
  return finding('fine', `${file} answers: ${sizeOf(bytes)}, ${holds}.`);
}

/** Copies of a file that was deleted or replaced while a service had it open. */
function rescuedBeside(file: string): Finding[] {
  return rescuedFiles(file).map((copy) =>
    finding(
      'warning',
      `${copy} is a copy of a database file that was deleted or replaced under a running service. Nobody delivers what it holds.`,
      `Stop the service, move ${file}, ${file}-wal and ${file}-shm away, and rename the copy to ${file}. Delete the copy if you do not need it.`,
    ),
  );
}

/** Payloads may be anything. */
function ofFolder(folder: string): Finding[] {
  if (process.platform === 'win32' || (statSync(folder).mode & OTHERS) === 0) return [];
  const what = `Others on this machine may look into ${folder}, where payloads are kept.`;
  return [finding('warning', what, `chmod 700 ${folder}`)];
}
