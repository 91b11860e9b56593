/** What a change from a file to PostgreSQL leaves behind, and the sign that it is on its way. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Store } from '@redrive/engine';

/** The document in the file's own store: from the first moment on in which a part of it may be elsewhere. */
export const MOVING = 'moving';

/** Whether somebody has begun to move this store: nobody may deliver from it any more. */
export async function moveBegun(store: Pick<Store, 'readState'>): Promise<boolean> {
  const { documents } = await store.readState(MOVING);
  return documents.some(({ key }) => key === MOVING);
}

/** The same of a file that nobody has opened yet. One that cannot be read now has not said so. */
export async function moveBegunIn(file: string): Promise<boolean> {
  if (!existsSync(file)) return false;
  const { DatabaseSync } = await import('node:sqlite');
  try {
    const db = new DatabaseSync(file, { timeout: 100 });
    try {
      return db.prepare('SELECT 1 FROM redrive_state WHERE key = ?').get(MOVING) !== undefined;
    } finally {
      db.close();
    }
  } catch {
    // In use, damaged, or not a store yet: whoever opens it in earnest says what is wrong.
    return false;
  }
}

/** What is left of files that were moved: their names, the newest last. */
export function movedFiles(file: string): string[] {
  return namesBeside(file).filter((name) => name.startsWith(`${basename(file)}.moved-`));
}

/** Copies that were made when the file was deleted or replaced under a running service: their paths, the newest last. */
export function rescuedFiles(file: string): string[] {
  const start = `${basename(file)}.rescued-`;
  return namesBeside(file)
    .filter((name) => name.startsWith(start) && /^\w+Z(-\d+)?$/.test(name.slice(start.length)))
    .map((name) => join(dirname(file), name));
}

function namesBeside(file: string): string[] {
  const folder = dirname(file);
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

/** Tasks that wait and items that are open in the file. It is only read: nobody may have asked for its new tables. */
export async function heldBy(file: string): Promise<{ tasks: number; items: number }> {
  const { DatabaseSync } = await import('node:sqlite');
  const url = pathToFileURL(file);
  // A reader of a file that nobody has open would leave a log beside it.
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log === undefined || log.size === 0) url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true });
  const has = (table: string) =>
    db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== undefined;
  const count = (table: string, condition: string): number => {
    const sql = `SELECT count(*) AS number FROM ${table} WHERE ${condition}`;
    return has(table) ? Number(db.prepare(sql).get()?.['number']) : 0;
  };
  try {
    return {
      tasks: count('retry_queue', `status = 'pending'`),
      // Up to schema 4 an item said so itself.
      items: has('redrive_open')
        ? count('redrive_open', 'true')
        : count('redrive_inbox', `state = 'open'`),
    };
  } finally {
    db.close();
  }
}
