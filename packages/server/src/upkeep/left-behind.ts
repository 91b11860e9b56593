/** What a change from a file to PostgreSQL leaves behind, and the sign that it is on its way. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Store } from '@redrive/engine';
import { databaseFile } from '../settings/data-dir.ts';
import type { Settings } from '../settings/settings.ts';

/** The document in the file's own store: from the first moment on in which a part of it may be elsewhere. */
export const MOVING = 'moving';

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
  const folder = dirname(file);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(file)}.moved-`))
    .sort();
}

/** Whether somebody has begun to move this store: nobody may deliver from it any more. */
export async function moveBegun(store: Pick<Store, 'readState'>): Promise<boolean> {
  const { documents } = await store.readState(MOVING);
  return documents.some(({ key }) => key === MOVING);
}

/** Tasks and items that still stand in the data folder; undefined: there is nothing to take along. */
export async function leftBehind(
  settings: Settings,
): Promise<{ pending: number; open: number } | undefined> {
  const { sqlite } = await import('@redrive/engine/sqlite');
  const store = sqlite(databaseFile(settings));
  await store.open();
  try {
    const { pending, open } = await store.census();
    const items = Object.values(open).reduce((sum, count) => sum + count, 0);
    return pending + items === 0 ? undefined : { pending, open: items };
  } finally {
    await store.close();
  }
}
