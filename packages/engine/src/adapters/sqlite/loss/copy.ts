import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { nodeSqlite } from '../node-sqlite.ts';

/** 8 MB: a step blocks whoever uses the connection meanwhile. */
const PAGES_PER_STEP = 2000;
const MAX_TRIES = 10;
/** No error, SQLITE_BUSY, SQLITE_LOCKED. */
const PASSING: readonly number[] = [0, 5, 6];

/**
 * Copies all that an open connection holds into a new file beside `path`, or into the folder for temporary files where
 * there is no room or no right. Answers its name. Never overwrites a file.
 */
export async function copyToNewFile(
  db: DatabaseSync,
  path: string,
  nowMs: number,
): Promise<string> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return await copyInto(dirname(path), db, path, nowMs);
  } catch (error) {
    try {
      return await copyInto(tmpdir(), db, path, nowMs);
    } catch {
      // The folder of the database is the one to mend.
      throw error;
    }
  }
}

/**
 * Copies again into a file of `copyToNewFile`. The new copy takes the place of the former one in one step: whenever the
 * process dies, the file is whole, and needs no log beside it.
 */
export async function copyAgain(db: DatabaseSync, copy: string): Promise<void> {
  await copyVia(reserve(`${copy}.new`), db, copy);
}

async function copyInto(
  folder: string,
  db: DatabaseSync,
  path: string,
  nowMs: number,
): Promise<string> {
  const name = join(folder, `${basename(path)}.rescued-${timeText(nowMs)}`);
  for (let number = 1; ; number++) {
    const copy = number === 1 ? name : `${name}-${number}`;
    // Only a whole copy gets this name. An empty file would be taken for the copy after a crash.
    const fresh = reserve(`${copy}.new`);
    if (fresh === `${copy}.new` && !existsSync(copy)) {
      await copyVia(fresh, db, copy);
      return copy;
    }
    // Somebody else has made this one, or is making it.
    rmSync(fresh, { force: true });
  }
}

/** By way of a file of its own, which takes the name of the copy in one step. */
async function copyVia(fresh: string, db: DatabaseSync, copy: string): Promise<void> {
  try {
    await backup(db, fresh);
    renameSync(fresh, copy);
  } catch (error) {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(fresh + end, { force: true });
    throw error;
  }
}

/** A write of this process that a step meets ends it with an error that says nothing (0), or that it is busy. */
async function backup(db: DatabaseSync, fresh: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await nodeSqlite().backup(db, fresh, { rate: PAGES_PER_STEP });
      return;
    } catch (error) {
      const { errcode } = error as { errcode?: number };
      const isPassing = errcode !== undefined && PASSING.includes(errcode & 0xff);
      if (!isPassing || tries === MAX_TRIES) throw error;
    }
  }
}

/** An empty file with a name that nobody had, for its owner only: payloads may be anything. */
function reserve(name: string): string {
  for (let number = 1; ; number++) {
    const file = number === 1 ? name : `${name}-${number}`;
    try {
      closeSync(openSync(file, 'wx', 0o600));
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** `20260301T123005Z`: a name of a file may not have colons everywhere. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '');
}
